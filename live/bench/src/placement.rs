//! Where pages lie as the cache to be colored sees it: their groups, found by measuring.

use warmq_units::{Address, Seed};

use crate::arena::{Arena, SMALL_PAGE};
use crate::evict::Evictor;
use crate::geometry::Geometry;
use crate::groups::Groups;

/// Pages in the pool of the search, times the number of lines of a page's group that the cache
/// holds: enough that every group is in it often enough.
const POOL: usize = 4;

/// Pages whose groups are looked for at most: about five seconds' worth.
const MOST_PAGES: usize = 65_536;

/// The share of pages, in percent, whose group must be found for the result to be believed.
const ENOUGH_PERCENT: usize = 90;

/// Which group of the cache's sets each page uses, for the pages that were asked for.
///
/// Invariant: groups count from 0 to less than `way_size / SMALL_PAGE`.
#[derive(Clone, Debug)]
pub struct Placement {
    groups: Vec<Option<u32>>,
    way_size: u64,
}

impl Placement {
    /// Finds the groups of `pages` of `arena` in `cache`. `None` where they cannot be told: no
    /// fine clock, a machine too busy, or a cache in which every page uses all sets alike.
    pub fn measure(
        arena: &Arena,
        pages: impl Iterator<Item = u64>,
        cache: Geometry,
        seed: Seed,
    ) -> Option<Placement> {
        let way_size = cache.way_size();
        let expected = (way_size / SMALL_PAGE) as usize;
        let all = (arena.length() / SMALL_PAGE) as u32;
        if expected < 2 || !way_size.is_multiple_of(SMALL_PAGE) {
            return None;
        }
        let t = std::time::Instant::now();
        let mut evictor = Evictor::new(arena)?;
        let mut pool: Vec<u32> = (0..all).collect();
        seed.stream("pool").shuffle(&mut pool);
        pool.truncate(expected * cache.ways as usize * POOL);
        let found = Groups::find(&mut evictor, pool, cache.ways, expected);
        let mut groups = vec![None; all as usize];
        let (mut asked, mut known) = (0, 0);
        for page in pages.take(MOST_PAGES) {
            let group = found.group_of(&mut evictor, page as u32);
            asked += 1;
            known += usize::from(group.is_some());
            groups[page as usize] = group;
        }
        eprintln!("{:?} count {} known {known} asked {asked}", t.elapsed(), found.count());
        found.debug(&mut evictor, all);
        let enough = found.count() == expected && known * 100 >= asked * ENOUGH_PERCENT;
        enough.then_some(Placement { groups, way_size })
    }

    /// An address that uses the same set as what lies `offset` bytes into the arena, and no other
    /// line's address. `None` where the group of its page is not known.
    pub fn address(&self, offset: u64) -> Option<Address> {
        let page = offset / SMALL_PAGE;
        let group = u64::from((*self.groups.get(page as usize)?)?);
        Some(Address(page * self.way_size + group * SMALL_PAGE + offset % SMALL_PAGE))
    }
}
