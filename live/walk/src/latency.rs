//! How long the levels of this machine's memory take: an independent measurement, not the walk.
//!
//! A chain of pointers through random lines of a buffer that fits well into one level but not into
//! the nearer ones. No two lines are meant to conflict, which is what the walk is about. What the
//! translation of addresses costs is measured apart: huge pages keep it small on bare metal, but
//! under a hypervisor that maps small pages they do not.

use serde::Serialize;
use warmq_machine::MachineDescription;
use warmq_units::{Bytes, CpuId, Cycles, Duration};

use super::arena::SMALL_PAGE;
use super::geometry::Geometry;
use super::prober::Prober;
use super::translation::Translation;
use crate::error::WalkError;
use crate::thread::Pinned;

/// The largest buffer: memory is measured only where that is more than twice the last cache.
const LARGEST_BUFFER: u64 = 256 << 20;

/// How many times what level 2 can hold must miss in it nearly always, whatever it replaces.
const OVERLOAD: u64 = 4;

/// The most pages for which the cost of translation is measured.
const MOST_PAGES: u64 = 16 << 10;

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

impl LatencyReport {
    /// The latency of `level` in ns, if it was measured.
    pub fn level_ns(&self, level: u8) -> Option<f64> {
        self.levels
            .iter()
            .find(|measured| measured.level == level)
            .map(|measured| measured.ns)
    }

    /// The measured times in the terms of `machine`. Where memory could not be measured, `machine`
    /// keeps its assumption, or where that is less than a cache's latency, gets twice the latter.
    /// Where noise made a farther level seem faster than a nearer one, it gets the nearer one's
    /// time.
    pub fn for_machine(&self, machine: &MachineDescription) -> warmq_host::Latencies {
        let clock = machine.clock;
        let half_cycle = clock.time_of(Cycles(1)) / 2;
        let cycles = |ns: f64| clock.cycles_in(picoseconds(ns) + half_cycle);
        let last = self.levels.last().map_or(0.0, |measured| measured.ns);
        let level = |number: u8| cycles(self.level_ns(number).unwrap_or(last)).max(Cycles(1));
        let l1 = level(1);
        let l2 = level(2).max(l1);
        let l3 = level(3).max(l2);
        let assumed = machine.memory.latency;
        let beyond = if assumed > picoseconds(last) {
            assumed
        } else {
            picoseconds(2.0 * last)
        };
        let memory = self.memory_ns.map_or(beyond, picoseconds);
        warmq_host::Latencies {
            l1,
            l2,
            l3,
            memory: memory.max(clock.time_of(l3)),
        }
    }
}

fn picoseconds(ns: f64) -> Duration {
    Duration((ns * 1000.0).round().max(0.0) as u64)
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
) -> Result<LatencyReport, WalkError> {
    let pinned = Pinned::to(cpu)?;
    let at = |level| Geometry::at(machine, pinned.cpu(), level);
    let Some(first) = at(1) else {
        let problem = "the machine's description gives it no cache";
        return Err(WalkError::setting(
            "cpu",
            pinned.cpu(),
            problem,
            "describe the machine anew",
        ));
    };
    let second = at(2);
    let last = at(3).or(second).unwrap_or(first).size.0;
    let beyond = (2 * last <= LARGEST_BUFFER).then_some(2 * last);
    let stride = Bytes(stride.0.max(SMALL_PAGE));
    let pages = MOST_PAGES.min(LARGEST_BUFFER / stride.0);
    let size = Bytes((pages * stride.0).max(beyond.unwrap_or(0)));
    let mut prober = Prober::new(size, first.line)?;

    let mut levels = vec![prober.level(1, first.size.0 / 2)];
    let Some(second) = second else {
        let translation = Translation {
            stride,
            table: Vec::new(),
        };
        let memory_ns = beyond.map(|buffer| prober.random_lines(buffer));
        return Ok(LatencyReport {
            cpu: pinned.cpu().0,
            levels,
            memory_ns,
            translation,
        });
    };
    // Little more than level 1 can hold: few pages.
    levels.push(prober.level(2, (3 * first.size.0).min(second.size.0 / 2)));
    let base = levels[1].ns;
    let dense = prober.translation(Bytes(SMALL_PAGE), base, first, second);
    let translation = prober.translation(stride, base, first, second);
    if at(3).is_some() {
        let pages = OVERLOAD * second.size.0 / SMALL_PAGE;
        let ns = prober.few_lines_of(pages) - dense.ns(pages);
        levels.push(LevelLatency {
            level: 3,
            ns,
            buffer: Bytes(pages * SMALL_PAGE),
        });
    }
    let memory = |buffer: u64| prober.random_lines(buffer) - dense.ns(buffer / SMALL_PAGE);
    let memory_ns = beyond.map(memory);
    Ok(LatencyReport {
        cpu: pinned.cpu().0,
        levels,
        memory_ns,
        translation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_never_fall_from_one_level_to_the_next() {
        let machine = warmq_machine::builtin("p3xeon-8way").unwrap();
        let machine = warmq_machine::read_toml("p3xeon-8way", machine).unwrap();
        let level = |(level, ns)| LevelLatency {
            level,
            ns,
            buffer: Bytes(1),
        };
        let translation = Translation {
            stride: Bytes(8192),
            table: Vec::new(),
        };
        let report = LatencyReport {
            cpu: 0,
            levels: [(1, 9.0), (2, 8.0), (3, 0.0)].map(level).to_vec(),
            memory_ns: Some(5.0),
            translation,
        };
        let found = report.for_machine(&machine);
        assert!(found.l1.0 > 0 && found.l1 == found.l2 && found.l2 == found.l3);
        assert_eq!(found.memory, machine.clock.time_of(found.l3));
    }
}
