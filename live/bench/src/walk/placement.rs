//! Where pages lie as the cache to be colored sees it: their groups, found by measuring.

use std::time::{Duration, Instant};

use warmq_units::{Address, Seed};

use super::arena::{Arena, SMALL_PAGE};
use super::evict::Evictor;
use super::geometry::Geometry;
use super::groups::Groups;

/// Pages in the pool of the search, times the number of lines of a page's group that the cache
/// holds: enough that every group is in it often enough.
const POOL: usize = 4;

/// Pages whose groups are looked for at most: about five seconds' worth.
const MOST_PAGES: usize = 65_536;

/// The share of pages, in percent, whose group must be found for the result to be believed.
const ENOUGH_PERCENT: usize = 70;

/// How often the search is begun anew, and how long one search may last: most take a second, and
/// one that takes longer is on a machine too busy to come to an end.
const ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(3);

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
    pub fn measure(arena: &Arena, pages: &[u64], cache: Geometry, seed: Seed) -> Option<Placement> {
        let way_size = cache.way_size();
        let pages = &pages[..pages.len().min(MOST_PAGES)];
        if way_size < 2 * SMALL_PAGE || !way_size.is_multiple_of(SMALL_PAGE) {
            return None;
        }
        let mut shuffled = seed.stream("pool");
        (0..ATTEMPTS).find_map(|_| {
            let mut pool: Vec<u32> = (0..(arena.length() / SMALL_PAGE) as u32).collect();
            shuffled.shuffle(&mut pool);
            Placement::attempt(arena, pages, cache, pool)
        })
    }

    fn attempt(
        arena: &Arena,
        pages: &[u64],
        cache: Geometry,
        mut pool: Vec<u32>,
    ) -> Option<Placement> {
        let way_size = cache.way_size();
        let expected = (way_size / SMALL_PAGE) as usize;
        let mut evictor = Evictor::new(arena)?;
        let mut groups = vec![None; pool.len()];
        pool.truncate(expected * cache.ways as usize * POOL);
        let start = Instant::now();
        let give_up = || start.elapsed() > PATIENCE;
        let found = Groups::find(&mut evictor, pool, cache.ways, expected, &give_up);
        if found.count() != expected {
            return None;
        }
        for page in pages {
            groups[*page as usize] = found.group_of(&mut evictor, *page as u32);
        }
        let known = groups.iter().flatten().count();
        (known * 100 >= pages.len() * ENOUGH_PERCENT).then_some(Placement { groups, way_size })
    }

    /// An address that uses the same set as what lies `offset` bytes into the arena, and no other
    /// line's address. `None` where the group of its page is not known.
    pub fn address(&self, offset: u64) -> Option<Address> {
        let page = offset / SMALL_PAGE;
        let group = u64::from((*self.groups.get(page as usize)?)?);
        Some(Address(
            page * self.way_size + group * SMALL_PAGE + offset % SMALL_PAGE,
        ))
    }
}
