//! The same walk on the simulated caches.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use warmq_machine::{Access, Hierarchy, MachineDescription, Options, Served};
use warmq_units::{Address, CpuId, Duration, Instant};

use super::geometry::Geometry;
use super::placement::{Case, Placement};
use super::result::{WalkFacts, WalkRow};
use super::translation::Translation;

/// Walks before the one that counts.
pub(crate) const WARM_UP: u32 = 8;

/// Walks that count. More than one: a replacement that draws lots is not the same each time.
pub(crate) const COUNTED: u32 = 8;

/// A walk on the simulated caches.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SimulatedWalk {
    /// Time for a visit of one block in ns.
    pub ns_per_visit: f64,
    /// Of this, the translation of the address.
    pub translation_ns: f64,
    /// The share of first hot lines that the cache the colors are for did not have, 0 to 1.
    pub miss_ratio: f64,
}

/// Walks the list of a measured row on the simulated caches of CPU `cpu` of `machine`, once where
/// `placement` knows the sets, or else with the best and with the worst placement, in this order.
///
/// ```text
///     visit = max(chain, lines / overlap) + translation(pages)
///
///     chain := time of the line with the pointer       lines := time of all hot lines
///     overlap := misses of a CPU that overlap           pages := distinct small pages of the list
/// ```
///
/// The loads of the other hot lines wait for nothing but the pointer and hide behind the next one,
/// as long as no more of them are under way than the machine can have.
///
/// # Panics
/// When `machine` has no CPU `cpu`.
pub fn simulate_walk(
    machine: &MachineDescription,
    cpu: CpuId,
    facts: &WalkFacts,
    placement: &Placement,
    row: &WalkRow,
    translation: Option<&Translation>,
) -> Vec<SimulatedWalk> {
    let translation_ns = translation.map_or(0.0, |cost| cost.ns(u64::from(row.blocks)));
    let simulated = |case: &Case| {
        let lines = row.visits.iter().flat_map(|visit| lines(facts, *visit));
        let mut caches = Caches::new(machine, cpu, placement, lines, *case);
        let (time, missed) = counted(&mut caches, machine.miss_overlap, facts, row);
        let visits = (row.visits.len().max(1) as u64 * u64::from(COUNTED)) as f64;
        SimulatedWalk {
            ns_per_visit: time.0 as f64 / 1000.0 / visits + translation_ns,
            translation_ns,
            miss_ratio: missed as f64 / visits,
        }
    };
    placement.cases().iter().map(simulated).collect()
}

/// Time of all visits that count, and how many of them the colored cache did not have.
fn counted(caches: &mut Caches, overlap: u64, facts: &WalkFacts, row: &WalkRow) -> (Duration, u64) {
    let (mut total, mut missed) = (Duration::ZERO, 0);
    for round in 0..WARM_UP + COUNTED {
        for visit in &row.visits {
            let mut reads = lines(facts, *visit).map(|offset| caches.read(offset));
            let (chain, served) = reads.next().unwrap_or((Duration::ZERO, Served::Level(1)));
            let all = reads.fold(chain, |sum, (takes, _)| sum + takes);
            if round >= WARM_UP {
                total += chain.max(all / overlap.max(1));
                missed += u64::from(!is_within(served, facts.cache.level));
            }
        }
    }
    (total, missed)
}

/// Whether a cache at `level` or nearer had the line.
pub(crate) fn is_within(served: Served, level: u8) -> bool {
    matches!(served, Served::Level(by) if by <= level)
}

/// The caches of a CPU that reads.
///
/// The levels nearer than the colored cache are indexed by the offset in a page, which is the same
/// in every address; the colored one and those beyond by where a line is placed. With a hashed
/// index no single address has both, so that each has caches of its own: a load that the near
/// ones do not have goes to the far ones.
pub(crate) struct Caches {
    near: Option<Hierarchy>,
    far: Hierarchy,
    /// The colored cache.
    colored: Geometry,
    /// By the number of the line in the arena.
    placed: BTreeMap<u64, Address>,
    cpu: CpuId,
    now: Instant,
}

impl Caches {
    /// Those of `cpu` of `machine`, for reads of `lines` (bytes from the start of the memory).
    pub fn new(
        machine: &MachineDescription,
        cpu: CpuId,
        placement: &Placement,
        lines: impl Iterator<Item = u64>,
        case: Case,
    ) -> Caches {
        let colored = placement.cache();
        let far = levels(machine, colored.level..=u8::MAX);
        let lines: Vec<u64> = lines.collect();
        Caches {
            near: levels(machine, 1..=colored.level - 1),
            far: far.expect("the colored cache is one of the machine's"),
            colored,
            placed: placement.addresses(&lines, case),
            cpu,
            now: Instant::START,
        }
    }

    /// How long a read of the line at `offset` takes, and what serves it.
    pub fn read(&mut self, offset: u64) -> (Duration, Served) {
        let placed = self.placed[&(offset / self.colored.line.0)];
        let (cpu, now) = (self.cpu, self.now);
        let near = self.near.as_mut();
        let near = near.map(|caches| caches.access(cpu, Address(offset), Access::Read, now));
        let near = near.filter(|near| matches!(near.served, Served::Level(_)));
        let outcome = near.unwrap_or_else(|| {
            let mut far = self.far.access(cpu, placed, Access::Read, now);
            if let Served::Level(level) = &mut far.served {
                *level += self.colored.level - 1;
            }
            far
        });
        self.now += outcome.takes;
        (outcome.takes, outcome.served)
    }
}

/// The hot lines of a visit, as bytes from the start of the memory.
fn lines(facts: &WalkFacts, visit: u64) -> impl Iterator<Item = u64> + use<> {
    let line = facts.cache.line.0;
    (0..u64::from(facts.lines)).map(move |index| visit + index * line)
}

/// The caches of `machine` whose level is in `kept`, the nearest of them as a level 1.
fn levels(machine: &MachineDescription, kept: RangeInclusive<u8>) -> Option<Hierarchy> {
    let mut machine = machine.clone();
    machine.caches.retain(|cache| kept.contains(&cache.level));
    for cache in &mut machine.caches {
        cache.level -= kept.start() - 1;
    }
    let some = !machine.caches.is_empty();
    some.then(|| Hierarchy::new(&machine, Options::default()))
}
