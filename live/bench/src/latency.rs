//! How long the levels of this machine's memory take: an independent measurement, not the walk.
//!
//! A chain of pointers through random lines of a buffer that fits well into one level but not into
//! the nearer ones. No two lines are meant to conflict, which is what the walk is about. What the
//! translation of addresses costs is measured apart: huge pages keep it small on bare metal, but
//! under a hypervisor that maps small pages they do not.

use serde::Serialize;
use warmq_machine::description::MachineDescription;
use warmq_units::{Bytes, CpuId, Hertz, Seed};

use crate::arena::{Arena, SMALL_PAGE};
use crate::error::BenchError;
use crate::geometry::Geometry;
use crate::statistics::Spread;
use crate::thread::Pinned;
use crate::timing::{self, Stops};

/// The largest buffer: memory is measured only where that is more than twice the last cache.
const LARGEST_BUFFER: u64 = 256 << 20;

/// How many times what level 2 can hold must miss in it nearly always, whatever it replaces.
const OVERLOAD: u64 = 4;

/// Lines of a page that are used to overload level 2.
const LINES_OF_A_PAGE: u64 = 8;

/// The most pages for which the cost of translation is measured.
const MOST_PAGES: u64 = 16 << 10;

/// Measurements of each point; the median counts.
const REPETITIONS: usize = 5;

/// The shortest time of one of them.
const MIN_NS: u64 = 2_000_000;

/// How long loads of one CPU take, in ns from one load to the next that needs it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyReport {
    /// The pinned CPU.
    pub cpu: u16,
    /// The levels, nearest first: a level 1, 2 and, if there is one, 3.
    pub levels: Vec<LevelLatency>,
    /// Beyond all caches; `None` where the last cache is too large to be left behind.
    pub memory_ns: Option<f64>,
    /// What the translation of addresses adds to a load.
    pub translation: Translation,
}

/// A load that one level answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelLatency {
    /// The level; 1 is nearest.
    pub level: u8,
    /// Load to use in ns, without the cost of translation.
    pub ns: f64,
    /// The buffer that it was measured on, in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub buffer: Bytes,
}

/// What a load pays for the translation of its address when so many small pages are visited in
/// turn, all the same distance apart: the reach of the TLBs and the price of a page walk, as a
/// table of measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Translation {
    /// Distance between the pages in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub stride: Bytes,
    /// (pages, ns a load), ascending.
    pub table: Vec<(u64, f64)>,
}

impl Translation {
    /// What a load pays when `pages` pages are visited in turn: between the two measured points
    /// around it, on a scale of logarithms; outside of them the nearest.
    pub fn ns(&self, pages: u64) -> f64 {
        let above = self.table.partition_point(|(measured, _)| *measured < pages);
        match (above.checked_sub(1).map(|below| self.table[below]), self.table.get(above).copied()) {
            (None, None) => 0.0,
            (None, Some((_, ns))) | (Some((_, ns)), None) => ns,
            (Some((low, low_ns)), Some((high, high_ns))) => {
                let log = |pages: u64| (pages as f64).log2();
                let share = (log(pages) - log(low)) / (log(high) - log(low));
                low_ns + (high_ns - low_ns) * share
            }
        }
    }
}

impl LatencyReport {
    /// The latency of `level` in ns, if it was measured.
    pub fn level_ns(&self, level: u8) -> Option<f64> {
        self.levels.iter().find(|measured| measured.level == level).map(|measured| measured.ns)
    }

    /// The measured times in the terms of `machine`. Where memory could not be measured, `machine`
    /// keeps its assumption.
    pub fn for_machine(&self, machine: &MachineDescription) -> warmq_host::Latencies {
        let cycles = |ns: f64| machine.clock.cycles_in(picoseconds(ns) + half_cycle(machine.clock));
        let last = self.levels.last().map_or(0.0, |measured| measured.ns);
        let level = |number: u8| cycles(self.level_ns(number).unwrap_or(last));
        warmq_host::Latencies {
            l1: level(1),
            l2: level(2),
            l3: level(3),
            memory: self.memory_ns.map_or(machine.memory.latency, picoseconds),
        }
    }
}

fn picoseconds(ns: f64) -> warmq_units::Duration {
    warmq_units::Duration((ns * 1000.0).round().max(0.0) as u64)
}

fn half_cycle(clock: Hertz) -> warmq_units::Duration {
    clock.time_of(warmq_units::Cycles(1)) / 2
}

/// Measures the latencies of `cpu` (the last one allowed if `None`), whose caches are those of
/// CPU `described` of `machine`, and the cost of translation for pages `stride` apart.
///
/// # Errors
/// A CPU that this thread may not use or that has no cache; no memory.
pub fn measure_latencies(
    machine: &MachineDescription,
    cpu: Option<CpuId>,
    stride: Bytes,
) -> Result<LatencyReport, BenchError> {
    let pinned = Pinned::to(cpu)?;
    let caches: Vec<Geometry> =
        (1..=3).map_while(|level| Geometry::at(machine, pinned.cpu(), level)).collect();
    let Some(first) = caches.first() else {
        let problem = "the machine's description gives it no cache";
        return Err(BenchError::setting("cpu", pinned.cpu(), problem, "describe the machine anew"));
    };
    let stride = Bytes(stride.0.max(SMALL_PAGE));
    let last = caches.last().map_or(0, |cache| cache.size.0);
    let memory = (2 * last <= LARGEST_BUFFER).then_some(2 * last);
    let pages = MOST_PAGES.min(LARGEST_BUFFER / stride.0);
    let arena = Arena::new(Bytes((pages * stride.0).max(memory.unwrap_or(0))), true)?;
    let mut prober = Prober { arena, line: first.line.0, seed: Seed(1) };
    let second = caches.get(1).copied().unwrap_or(*first);
    // Half of level 1, and little more than level 1 can hold: both are few pages.
    let nearest = prober.random_lines(first.size.0 / 2);
    let buffer = (3 * first.size.0).min(second.size.0 / 2).max(first.size.0 / 2);
    let level_2 = prober.random_lines(buffer);
    let mut levels = vec![LevelLatency { level: 1, ns: nearest, buffer: Bytes(first.size.0 / 2) }];
    if caches.len() > 1 {
        levels.push(LevelLatency { level: 2, ns: level_2, buffer: Bytes(buffer) });
    }
    let lines_of_level_2 = second.size.0 / second.line.0;
    let mut table = |stride: u64| prober.translation(stride, level_2, first, lines_of_level_2);
    let translation = Translation { stride, table: table(stride.0) };
    let dense = Translation { stride: Bytes(SMALL_PAGE), table: table(SMALL_PAGE) };
    if caches.len() > 2 {
        let pages = OVERLOAD * second.size.0 / SMALL_PAGE;
        let ns = prober.few_lines_of(pages) - dense.ns(pages);
        let buffer = Bytes(pages * SMALL_PAGE);
        levels.push(LevelLatency { level: 3, ns, buffer });
    }
    let memory_ns =
        memory.map(|buffer| prober.random_lines(buffer) - dense.ns(buffer / SMALL_PAGE));
    Ok(LatencyReport { cpu: pinned.cpu().0, levels, memory_ns, translation })
}

/// Chases pointers through an arena.
struct Prober {
    arena: Arena,
    line: u64,
    seed: Seed,
}

impl Prober {
    /// Time of a load in ns on a chain through all lines of the first `buffer` bytes.
    fn random_lines(&mut self, buffer: u64) -> f64 {
        let buffer = buffer.min(self.arena.length());
        let mut lines: Vec<u64> = (0..buffer / self.line).map(|index| index * self.line).collect();
        self.seed.stream("lines").shuffle(&mut lines);
        self.time(&lines)
    }

    /// Time of a load in ns on a chain through the same few lines of each of `pages` pages. They
    /// share few sets, so that a cache must miss whose ways are that often outnumbered, wherever
    /// the pages lie; and they take little room in the next level, which others use too.
    fn few_lines_of(&mut self, pages: u64) -> f64 {
        let pages = pages.min(self.arena.length() / SMALL_PAGE);
        let in_page = SMALL_PAGE / self.line;
        let apart = (in_page / LINES_OF_A_PAGE).max(1);
        let of_page = |page: u64| {
            (0..in_page).step_by(apart as usize).map(move |line| (page, line))
        };
        let lines = (0..pages).flat_map(of_page);
        let mut lines: Vec<u64> =
            lines.map(|(page, line)| page * SMALL_PAGE + line * self.line).collect();
        self.seed.stream("few lines").shuffle(&mut lines);
        self.time(&lines)
    }

    /// What loads pay beyond `base` ns when they go through pages `stride` apart, for more and more
    /// pages, each time through other lines of them, so that level 2 answers all and level 1 none.
    fn translation(
        &mut self,
        stride: u64,
        base: f64,
        first: &Geometry,
        most_lines: u64,
    ) -> Vec<(u64, f64)> {
        let fits = |pages: u64| pages * stride <= self.arena.length() && pages <= most_lines / 2;
        let counts: Vec<u64> = (5..)
            .flat_map(|power| [1 << power, 3 << (power - 1)])
            .take_while(|pages| fits(*pages))
            .collect();
        let most_in_level_1 = 4 * first.size.0 / self.line;
        let mut table = Vec::new();
        for pages in counts {
            let rounds = most_in_level_1.div_ceil(pages);
            if rounds > SMALL_PAGE / self.line {
                table.push((pages, 0.0));
                continue;
            }
            let chain = self.page_chain(pages, stride, rounds);
            table.push((pages, (self.time(&chain) - base).max(0.0)));
        }
        table
    }

    /// `rounds` times all of `pages` pages in one random order, in each round another line.
    fn page_chain(&self, pages: u64, stride: u64, rounds: u64) -> Vec<u64> {
        let lines_in_page = SMALL_PAGE / self.line;
        let mut random = self.seed.stream("pages");
        let mut order: Vec<(u64, u64)> =
            (0..pages).map(|page| (page * stride, random.below(lines_in_page))).collect();
        random.shuffle(&mut order);
        let round = |round: u64| {
            let line = move |first: u64| (first + round) % lines_in_page * self.line;
            order.iter().map(move |(page, first)| page + line(*first))
        };
        (0..rounds).flat_map(round).collect()
    }

    fn time(&mut self, offsets: &[u64]) -> f64 {
        let mut ring = self.arena.link(offsets, 8);
        let stops = Stops { count: offsets.len() as u64, lines: 1, line: self.line };
        let times: Vec<f64> = (0..REPETITIONS)
            .map(|_| timing::time(&mut ring, stops, MIN_NS).ns_per_step)
            .collect();
        Spread::of(&times).map_or(0.0, |spread| spread.median)
    }
}
