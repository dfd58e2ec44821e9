//! Which set of the colored cache each line of an arena uses, or that it is not known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use warmq_units::{Address, Seed};

use super::arena::{Arena, SMALL_PAGE};
use super::evict::Evictor;
use super::geometry::Geometry;
use super::latency::LatencyReport;
use super::sets::{self, Line, Plan, Sets, Unknown};

/// Wanted pages at most: more take longer than anybody wants to wait.
const MOST_PAGES: usize = 16_384;

/// Spare memory, in sizes of the cache: with lines of 64 bytes, the same line of all spare pages is
/// twice as many lines as the cache holds, which overflows every set however the index is hashed.
const SPARE_CACHES: u64 = 2 * SMALL_PAGE / 64;

/// The most spare memory.
const MOST_SPARE: u64 = 512 << 20;

/// Memory that a search of `cache` needs beside the wanted pages.
pub fn spare_memory(cache: Geometry) -> u64 {
    if of_the_offset(cache) {
        0
    } else {
        (SPARE_CACHES * cache.size.0).min(MOST_SPARE)
    }
}

/// How the sets are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// A way is no larger than a page: the offset in the page chooses the set.
    Offset,
    /// Found by timing which lines evict which.
    Timing,
    /// Not known: any placement of the pages is possible.
    #[default]
    Unknown,
}

/// What a search for the sets came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Search {
    /// How the sets are known.
    pub by: Known,
    /// Why they are not.
    pub why: Option<Unknown>,
    /// Small pages whose sets were wanted.
    pub pages_wanted: u64,
    /// Those of them whose sets are known.
    pub pages_known: u64,
    /// Different sets that were found.
    pub sets: u64,
    /// Different sets that the same line of all pages may use. What fits into them needs no colors.
    pub sets_at_one_line: u64,
    /// Questions asked of the cache.
    pub questions: u64,
    /// Searches begun.
    pub attempts: u32,
    /// Wall-clock time in s.
    pub seconds: f64,
}

/// Which set each line uses.
#[derive(Clone, Debug)]
pub enum Placement {
    /// By its offset in its page.
    Offset(Geometry),
    /// As it was found.
    Found(Geometry, Sets),
    /// Not known.
    Unknown(Geometry),
}

/// One of the placements that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Lines spread over all sets alike.
    Best,
    /// The same line of all pages in one set.
    Worst,
    /// Each line in a set that is drawn by lot, as a hash of its physical address does it.
    Lot,
}

impl Placement {
    /// The cache whose sets these are.
    pub(crate) fn cache(&self) -> Geometry {
        let (Placement::Offset(cache) | Placement::Found(cache, _) | Placement::Unknown(cache)) =
            self;
        *cache
    }

    /// The placement that is known without a search in `cache`: by the offset in a page, or none.
    pub(crate) fn without_search(cache: Geometry) -> Placement {
        match of_the_offset(cache) {
            true => Placement::Offset(cache),
            false => Placement::Unknown(cache),
        }
    }

    /// The set of the line at `offset` of the arena; `None` where it is not known.
    fn set(&self, offset: u64) -> Option<u64> {
        match self {
            Placement::Offset(cache) => Some(cache.set_of(offset)),
            Placement::Found(cache, sets) => sets.of(line_at(offset, *cache)).map(u64::from),
            Placement::Unknown(_) => None,
        }
    }

    /// Whether the sets of all lines of small page `page` are known.
    pub fn knows(&self, page: u64) -> bool {
        self.set(page * SMALL_PAGE).is_some()
    }

    /// The placements to simulate: one where it is known, or else the extremes.
    pub fn cases(&self) -> &'static [Case] {
        match self {
            Placement::Unknown(_) => &[Case::Best, Case::Worst],
            _ => &[Case::Best],
        }
    }

    /// Addresses that use the same sets of the cache as the lines at `offsets`, one a line, each
    /// with its line's own tag. Where the sets are not known, those of `case`.
    pub fn addresses(&self, offsets: &[u64], case: Case) -> BTreeMap<u64, Address> {
        let cache = self.cache();
        let mut lines: Vec<u64> = offsets.iter().map(|offset| offset / cache.line.0).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut lots = Seed(1).stream("sets");
        let placed = |(index, line): (usize, &u64)| {
            let index = index as u64;
            let set = self.set(line * cache.line.0).unwrap_or_else(|| match case {
                Case::Best => index % cache.sets(),
                Case::Worst => line * cache.line.0 % SMALL_PAGE / cache.line.0 % cache.sets(),
                Case::Lot => lots.below(cache.sets()),
            });
            (
                *line,
                Address(index * cache.way_size() + set * cache.line.0),
            )
        };
        lines.iter().enumerate().map(placed).collect()
    }
}

fn line_at(offset: u64, cache: Geometry) -> Line {
    Line {
        page: (offset / SMALL_PAGE) as u32,
        line: (offset % SMALL_PAGE / cache.line.0) as u32,
    }
}

fn of_the_offset(cache: Geometry) -> bool {
    cache.way_size() <= SMALL_PAGE
}

/// Finds the sets of `wanted` pages of `arena` in `cache` within `limit`. `progress` is called now
/// and then with thousandths.
pub fn search(
    arena: &Arena,
    wanted: Vec<u32>,
    cache: Geometry,
    latencies: &LatencyReport,
    (seed, limit): (Seed, Duration),
    progress: &mut dyn FnMut(u32),
) -> (Placement, Search) {
    let mut found = Search {
        pages_wanted: wanted.len() as u64,
        ..Search::default()
    };
    if of_the_offset(cache) {
        found.by = Known::Offset;
        found.pages_known = found.pages_wanted;
        (found.sets, found.sets_at_one_line) = (cache.sets(), 1);
        return (Placement::Offset(cache), found);
    }
    let start = Instant::now();
    let sets = timed(
        arena,
        &wanted,
        cache,
        latencies,
        (seed, limit),
        &mut found,
        progress,
    );
    found.seconds = start.elapsed().as_secs_f64();
    match sets {
        Ok(sets) => {
            let known = |page: &&u32| {
                sets.of(Line {
                    page: **page,
                    line: 0,
                })
                .is_some()
            };
            found.by = Known::Timing;
            found.pages_known = wanted.iter().filter(known).count() as u64;
            found.sets = u64::from(sets.count());
            found.sets_at_one_line = u64::from(sets.at_one_line());
            (Placement::Found(cache, sets), found)
        }
        Err(why) => {
            found.why = Some(why);
            (Placement::Unknown(cache), found)
        }
    }
}

/// Searches until a search succeeds or the time is over: the machine may be calmer the next time.
fn timed(
    arena: &Arena,
    wanted: &[u32],
    cache: Geometry,
    latencies: &LatencyReport,
    (seed, limit): (Seed, Duration),
    found: &mut Search,
    progress: &mut dyn FnMut(u32),
) -> Result<Sets, Unknown> {
    let end = Instant::now() + limit;
    if limit.is_zero() {
        return Err(Unknown::NotAsked);
    }
    if wanted.len() > MOST_PAGES {
        return Err(Unknown::TooManyPages);
    }
    let evictor = Evictor::new(arena, cache.line.0, cache.level, latencies);
    let mut evictor = evictor.ok_or(Unknown::NoClock)?;
    let mut random = seed.stream("search");
    let mut plan = plan(arena, wanted, cache);
    loop {
        random.shuffle(&mut plan.spare);
        found.attempts += 1;
        let mut go_on = |thousandths| {
            progress(thousandths);
            Instant::now() < end
        };
        let sets = sets::find(&mut evictor, &plan, &mut random, &mut go_on);
        found.questions = evictor.questions;
        match sets {
            // The reason of the attempt before says more than that the time is over.
            Err(Unknown::TimeUp) => return Err(found.why.unwrap_or(Unknown::TimeUp)),
            Err(why) if Instant::now() < end => found.why = Some(why),
            other => {
                found.why = None;
                return other;
            }
        }
    }
}

fn plan(arena: &Arena, wanted: &[u32], cache: Geometry) -> Plan {
    let mut is_wanted = vec![false; (arena.length() / SMALL_PAGE) as usize];
    for page in wanted {
        is_wanted[*page as usize] = true;
    }
    Plan {
        ways: cache.ways,
        sets: cache.sets() as u32,
        lines_of_page: (SMALL_PAGE / cache.line.0) as u32,
        wanted: wanted.to_vec(),
        spare: (0..is_wanted.len() as u32)
            .filter(|page| !is_wanted[*page as usize])
            .collect(),
    }
}
