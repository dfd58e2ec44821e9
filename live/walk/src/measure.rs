//! The run-queue walk on this machine's own caches.

use warmq_coloring::needed_colors;
use warmq_units::{Address, Bytes, CpuId};

use super::arena::{Arena, SMALL_PAGE};
use super::geometry::Geometry;
use super::latency::LatencyReport;
use super::layout::{Layout, list_order};
use super::pages;
use super::placement::{self, Known, Placement, Search, spare_memory};
use super::result::{WalkFacts, WalkReport, WalkRow};
use super::sets::Unknown;
use super::settings::WalkSettings;
use super::timing::{self, Stops, Timed};
use crate::error::WalkError;
use crate::spread::Spread;
use crate::thread::Pinned;

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The search for the sets, in thousandths; more than one search may be needed.
    Searching(u32),
    /// The walks.
    Walking {
        /// Single measurements done.
        done: u64,
        /// Single measurements in all.
        total: u64,
    },
}

/// Measures every count of blocks with every number of colors, all in turn in each repetition, so
/// that whatever else happens on the machine meets all of them alike.
///
/// `cache` is the one that the colors are for ([`Geometry::to_color`]), `latencies` are those of
/// the same CPU. `progress` is called now and then during the search for the sets, and after each
/// single measurement.
///
/// # Errors
/// Settings that make no sense, a CPU that this thread may not use, no memory.
pub fn measure(
    settings: &WalkSettings,
    cache: Geometry,
    latencies: &LatencyReport,
    progress: &mut dyn FnMut(Progress),
) -> Result<WalkReport, WalkError> {
    settings.check(cache)?;
    let pinned = Pinned::to(settings.cpu)?;
    let mut place = Place::new(settings, cache, latencies, progress)?;
    let facts = facts(settings, cache, pinned.cpu(), &place);
    let mut cases = cases(settings, cache, &place);
    let total = cases.len() as u64 * u64::from(settings.repetitions);
    let mut done = 0;
    for _ in 0..settings.repetitions {
        for case in &mut cases {
            let timed = case.time(&mut place.arena, settings.min_time.as_ns());
            case.measured.push(timed);
            done += 1;
            progress(Progress::Walking { done, total });
        }
    }
    let fit = facts.fit_without_colors;
    Ok(WalkReport {
        facts,
        placement: place.placement,
        rows: cases.into_iter().map(|case| case.into_row(fit)).collect(),
    })
}

/// The memory of a measurement, and what is known of the sets that it uses.
struct Place {
    arena: Arena,
    placement: Placement,
    search: Search,
    /// Where the blocks start, in bytes from the arena's start, ascending.
    blocks: Vec<u64>,
}

impl Place {
    /// Room for the longest list and half as much, for blocks whose sets cannot be found, and for
    /// the search.
    fn new(
        settings: &WalkSettings,
        cache: Geometry,
        latencies: &LatencyReport,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Place, WalkError> {
        let (list, block) = (settings.largest_list().0, settings.block_size.0);
        let room = list + list / 2;
        let limit = settings.search_time.as_ns();
        let spare = if limit == 0 { 0 } else { spare_memory(cache) };
        let arena = Arena::new(Bytes(room + spare), settings.huge_pages)?;
        let most_colors = settings.colors.iter().copied().max().unwrap_or(1);
        let hot = settings.layout(most_colors, cache).end_of_hot();
        let all = (0..room / block).map(|index| index * block);
        let pages = all.clone().flat_map(|start| pages_of(start, hot));
        let mut pages: Vec<u32> = pages.map(|page| page as u32).collect();
        pages.dedup();
        let how = (settings.seed, std::time::Duration::from_nanos(limit));
        let mut searching = |part| progress(Progress::Searching(part));
        let (mut placement, mut search) =
            placement::search(&arena, pages, cache, latencies, how, &mut searching);
        let is_known = |start: &u64| pages_of(*start, hot).all(|page| placement.knows(page));
        let mut blocks: Vec<u64> = all.clone().filter(is_known).collect();
        if blocks.len() as u64 * block < list {
            if search.why.is_none() {
                search.why = Some(Unknown::TooFew);
            }
            search.by = Known::Unknown;
            placement = Placement::Unknown(cache);
            blocks = all.collect();
        }
        Ok(Place {
            arena,
            placement,
            search,
            blocks,
        })
    }

    /// How many blocks have hot lines that fit into the cache without colors.
    fn fit(&self, settings: &WalkSettings, cache: Geometry) -> u64 {
        if self.search.by == Known::Timing {
            return self.search.sets_at_one_line * u64::from(cache.ways);
        }
        cache.fit(settings.block_size)
    }
}

/// The small pages that the first `length` bytes from `start` on touch.
fn pages_of(start: u64, length: u64) -> impl Iterator<Item = u64> {
    start / SMALL_PAGE..(start + length).div_ceil(SMALL_PAGE)
}

/// One count of blocks with one number of colors.
struct Case {
    blocks: u32,
    layout: Layout,
    /// The first hot word of each block in the order of the walk: bytes from the arena's start.
    visits: Vec<u64>,
    measured: Vec<Timed>,
}

fn cases(settings: &WalkSettings, cache: Geometry, place: &Place) -> Vec<Case> {
    let pairs = settings.blocks.iter().flat_map(|blocks| {
        settings
            .colors
            .iter()
            .map(move |colors| (*blocks, settings.layout(*colors, cache)))
    });
    pairs
        .map(|(blocks, layout)| Case::new(settings, blocks, layout, place))
        .collect()
}

impl Case {
    fn new(settings: &WalkSettings, blocks: u32, layout: Layout, place: &Place) -> Case {
        let order = list_order(blocks, settings.seed);
        let starts: Vec<Address> = place.blocks.iter().copied().map(Address).collect();
        let visits = layout.visits(&starts, &order).into_iter();
        Case {
            blocks,
            layout,
            visits: visits.map(|visit| visit.0).collect(),
            measured: Vec::new(),
        }
    }

    fn time(&self, arena: &mut Arena, min_ns: u64) -> Timed {
        let Layout { lines, line, .. } = self.layout;
        let mut ring = arena.link(&self.visits, u64::from(lines - 1) * line.0 + 8);
        let stops = Stops {
            count: u64::from(self.blocks),
            lines,
            line: line.0,
        };
        timing::time(&mut ring, stops, min_ns)
    }

    fn into_row(self, fit: u64) -> WalkRow {
        let times = self.measured.iter().map(|timed| timed.ns_per_step);
        let times: Vec<f64> = times.collect();
        WalkRow {
            blocks: self.blocks,
            colors: self.layout.colors,
            needed_colors: u32::try_from(needed_colors(u64::from(self.blocks), fit))
                .unwrap_or(u32::MAX),
            ns_per_visit: Spread::of(&times).expect("at least one repetition was checked"),
            repetitions: self.measured.len() as u32,
            disturbed: self.measured.iter().filter(|timed| timed.disturbed).count() as u32,
            visits: self.visits,
        }
    }
}

fn facts(settings: &WalkSettings, cache: Geometry, cpu: CpuId, place: &Place) -> WalkFacts {
    WalkFacts {
        cpu: cpu.0,
        block_size: settings.block_size,
        lines: settings.lines,
        cache,
        first_free_bit: cache.first_free_bit(),
        fit_without_colors: place.fit(settings, cache),
        color_bits: settings.layout(1, cache).color_bits,
        huge_pages_asked: settings.huge_pages,
        pages: pages::backing(&place.arena),
        sets: place.search.clone(),
        seed: settings.seed.0,
        min_time_ns: settings.min_time.as_ns(),
    }
}
