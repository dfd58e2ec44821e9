//! What a cache holds of addresses that are visited in turn.

use serde::Serialize;
use warmq_coloring::{Blocks, Cache, LAST_LEVEL, PAGE, Spread};
use warmq_machine::MachineDescription;
use warmq_units::CpuId;

use crate::layout::Layout;
use crate::physical::Frames;

/// A level of data caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// 1 is nearest to the CPU.
    pub number: u8,
    /// The cache.
    pub cache: Cache,
}

/// The levels of CPU `cpu` of `machine`, the nearest first.
pub fn levels(machine: &MachineDescription, cpu: CpuId) -> Vec<Level> {
    let of_cpu = machine
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(&cpu));
    let level = |cache: &warmq_machine::CacheDescription| {
        let shape = Cache::new(cache.size.0, u64::from(cache.ways), cache.line.0)?;
        Some(Level {
            number: cache.level,
            cache: shape,
        })
    };
    of_cpu.filter_map(level).collect()
}

impl Level {
    /// Whether the place in a page alone chooses the set.
    pub fn is_by_offset(self) -> bool {
        self.cache.way_size() <= PAGE
    }
}

/// What a level holds of a layout, one line an address, with LRU and visits in turn.
///
/// Invariant: `least <= most <= count`, and `by_frames` lies between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// 1 is nearest to the CPU.
    pub level: u8,
    /// Capacity in bytes.
    pub size_bytes: u64,
    /// Associativity.
    pub ways: u64,
    /// How many sets the cache has.
    pub sets: u64,
    /// Lines held with the worst placement: the same line of all pages in one set. Where the place
    /// in a page chooses the set, all three are the same.
    pub least: u64,
    /// Lines held with the best placement: spread over all sets.
    pub most: u64,
    /// Lines held where the physical addresses that were read choose the set, without a hash.
    pub by_frames: Option<u64>,
    /// Sets that the lines use, where the place in a page or a physical address chooses them.
    pub used_sets: Option<u64>,
    /// The most lines in one of these sets.
    pub most_in_a_set: Option<u64>,
    /// Lines in each of these sets that has any: its number and how many.
    pub by_set: Vec<(u64, u64)>,
    /// The colors to give the blocks for this level ([`Blocks::worthwhile`]); 1 is none, and `None`
    /// that no number helps.
    pub colors: Option<u64>,
}

impl Held {
    /// What `level` holds of `layout`, whose physical pages are `frames`.
    pub fn of(level: Level, layout: &Layout, frames: &Frames) -> Held {
        let cache = level.cache;
        let lines = layout.lines(cache.line());
        let count = lines.len() as u64;
        let is_known = level.is_by_offset();
        let spread = match is_known {
            true => Some(Spread::of(cache, lines.iter().copied())),
            false => by_frames(level, &lines, frames),
        };
        let offsets = lines.iter().map(|address| address % PAGE);
        let least = held(cache, &Spread::of(cache, offsets));
        let blocks = Blocks {
            count,
            ..layout.blocks()
        };
        let of_a_core = usize::from(level.number) <= LAST_LEVEL;
        let worthwhile = blocks.worthwhile(cache);
        let worthwhile = worthwhile.filter(|colors| of_a_core || *colors == 1);
        Held {
            level: level.number,
            size_bytes: cache.size(),
            ways: cache.ways(),
            sets: cache.sets(),
            least,
            most: if is_known {
                least
            } else {
                count.min(cache.lines())
            },
            by_frames: spread
                .as_ref()
                .filter(|_| !is_known)
                .map(|spread| held(cache, spread)),
            used_sets: spread.as_ref().map(|spread| spread.used() as u64),
            most_in_a_set: spread.as_ref().map(Spread::most),
            by_set: spread.as_ref().map_or(Vec::new(), by_set),
            colors: if least == count { Some(1) } else { worthwhile },
        }
    }
}

/// How `lines` lie over the sets of `level` by their physical addresses; `None` where these are
/// not known, or choose no set.
fn by_frames(level: Level, lines: &[u64], frames: &Frames) -> Option<Spread> {
    let physical = lines.iter().map(|address| frames.physical(*address));
    let physical: Option<Vec<u64>> = physical.collect();
    let chosen = physical.filter(|_| usize::from(level.number) <= LAST_LEVEL)?;
    Some(Spread::of(level.cache, chosen))
}

/// The lines that all sets hold together: of each no more than it has ways.
fn held(cache: Cache, spread: &Spread) -> u64 {
    let held = spread
        .counts()
        .iter()
        .map(|count| (*count).min(cache.ways()));
    held.sum()
}

fn by_set(spread: &Spread) -> Vec<(u64, u64)> {
    let numbered = (0..).zip(spread.counts().iter().copied());
    numbered.filter(|(_, count)| *count > 0).collect()
}
