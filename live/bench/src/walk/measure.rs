//! The run-queue walk on this machine's own caches.

use warmq_units::{Address, Bytes, CpuId};

use super::arena::{Arena, SMALL_PAGE};
use super::geometry::Geometry;
use super::layout::{Layout, list_order, needed_colors};
use super::pages::{self, Frames};
use super::placement::Placement;
use super::result::{Known, WalkFacts, WalkReport, WalkRow};
use super::settings::WalkSettings;
use super::timing::{self, Stops, Timed};
use crate::compare::Spread;
use crate::error::BenchError;
use crate::thread::Pinned;

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Single measurements done.
    pub done: u64,
    /// Single measurements in all.
    pub total: u64,
}

/// Measures every count of blocks with every number of colors, all in turn in each repetition, so
/// that whatever else happens on the machine meets all of them alike.
///
/// `cache` is the one that the colors are for ([`Geometry::to_color`]). `progress` is called after
/// each single measurement.
///
/// # Errors
/// Settings that make no sense, a CPU that this thread may not use, no memory.
pub fn measure(
    settings: &WalkSettings,
    cache: Geometry,
    progress: &mut dyn FnMut(Progress),
) -> Result<WalkReport, BenchError> {
    settings.check(cache)?;
    let pinned = Pinned::to(settings.cpu)?;
    let mut place = Place::new(settings, cache)?;
    let facts = facts(settings, cache, pinned.cpu(), &place);
    let mut cases = cases(settings, cache, &place);
    let total = cases.len() as u64 * u64::from(settings.repetitions);
    let mut done = 0;
    for _ in 0..settings.repetitions {
        for case in &mut cases {
            let timed = case.time(&mut place.arena, settings.min_time.as_ns());
            case.measured.push(timed);
            done += 1;
            progress(Progress { done, total });
        }
    }
    let rows = cases.into_iter().map(|case| case.into_row(cache)).collect();
    Ok(WalkReport { facts, rows })
}

/// The memory of a measurement, and what is known of where it lies.
struct Place {
    arena: Arena,
    frames: Option<Frames>,
    placement: Option<Placement>,
    /// Where the blocks start, in bytes from the arena's start, ascending.
    blocks: Vec<u64>,
}

impl Place {
    /// Room for the longest list and some more: for blocks whose sets cannot be told, and for the
    /// search for the sets, which needs more memory than the cache holds.
    fn new(settings: &WalkSettings, cache: Geometry) -> Result<Place, BenchError> {
        let list = settings.largest_list().0;
        let arena = Arena::new(
            Bytes((list + list / 2).max(4 * cache.size.0)),
            settings.huge_pages,
        )?;
        let most_colors = settings.colors.iter().copied().max().unwrap_or(1);
        let hot = settings.layout(most_colors, cache).end_of_hot();
        let block = settings.block_size.0;
        let all = (0..arena.length() / block).map(|index| index * block);
        let mut pages: Vec<u64> = all.clone().flat_map(|start| pages_of(start, hot)).collect();
        pages.dedup();
        let placement = Placement::measure(&arena, &pages, cache, settings.seed);
        let is_known = |start: &u64| match &placement {
            Some(known) => pages_of(*start, hot).all(|p| known.address(p * SMALL_PAGE).is_some()),
            None => true,
        };
        let blocks: Vec<u64> = all.filter(is_known).collect();
        let frames = Frames::of(&arena);
        let enough = blocks.len() as u64 * block >= list;
        if enough {
            return Ok(Place {
                arena,
                frames,
                placement,
                blocks,
            });
        }
        let blocks = (0..arena.length() / block)
            .map(|index| index * block)
            .collect();
        Ok(Place {
            arena,
            frames,
            placement: None,
            blocks,
        })
    }

    /// The address from whose bits a block takes its color: what its kernel takes for physical, as
    /// far as that can be read.
    fn block_address(&self, start: u64) -> Address {
        let address = self.arena.start() + start;
        self.frames
            .as_ref()
            .map_or(Address(address), |frames| frames.physical(address))
    }

    /// The address, as the caches index it, of what lies `offset` bytes into the arena.
    fn address(&self, offset: u64) -> Address {
        let measured = self
            .placement
            .as_ref()
            .and_then(|known| known.address(offset));
        measured.unwrap_or_else(|| self.block_address(offset))
    }

    fn known(&self) -> Known {
        match (&self.placement, &self.frames) {
            (Some(_), _) => Known::Measured,
            (None, Some(_)) => Known::Physical,
            (None, None) => Known::Virtual,
        }
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
    offsets: Vec<u64>,
    visits: Vec<Address>,
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
        let hot = |index: &u32| {
            let start = place.blocks[*index as usize];
            start + layout.offset_in_block(place.block_address(start))
        };
        let offsets: Vec<u64> = order.iter().map(hot).collect();
        let visits = offsets
            .iter()
            .map(|offset| place.address(*offset))
            .collect();
        Case {
            blocks,
            layout,
            offsets,
            visits,
            measured: Vec::new(),
        }
    }

    fn time(&self, arena: &mut Arena, min_ns: u64) -> Timed {
        let Layout { lines, line, .. } = self.layout;
        let mut ring = arena.link(&self.offsets, u64::from(lines - 1) * line.0 + 8);
        let stops = Stops {
            count: u64::from(self.blocks),
            lines,
            line: line.0,
        };
        timing::time(&mut ring, stops, min_ns)
    }

    fn into_row(self, cache: Geometry) -> WalkRow {
        let times: Vec<f64> = self
            .measured
            .iter()
            .map(|timed| timed.ns_per_step)
            .collect();
        WalkRow {
            blocks: self.blocks,
            colors: self.layout.colors,
            needed_colors: needed_colors(self.blocks, cache.size, self.layout.block_size),
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
        color_bits: settings.layout(1, cache).color_bits,
        huge_pages_asked: settings.huge_pages,
        pages: pages::backing(&place.arena),
        addresses: place.known(),
        colors_from_physical: place.frames.is_some(),
        seed: settings.seed.0,
        min_time_ns: settings.min_time.as_ns(),
    }
}
