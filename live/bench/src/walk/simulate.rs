//! The same walk on the simulated caches.

use warmq_machine::{Access, Hierarchy, MachineDescription, Options};
use warmq_units::{Address, CpuId, Duration, Instant};

use super::result::{WalkFacts, WalkRow};
use super::translation::Translation;

/// Walks before the one that counts.
const WARM_UP: u32 = 8;

/// Walks that count. More than one: a replacement that draws lots is not the same each time.
const COUNTED: u32 = 8;

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

/// Walks the list of a measured row on the simulated caches of CPU `cpu` of `machine`.
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
    row: &WalkRow,
    translation: Option<&Translation>,
) -> SimulatedWalk {
    let mut caches = Hierarchy::new(machine, Options::default());
    let mut walk = Walk {
        caches: &mut caches,
        cpu,
        now: Instant::START,
    };
    let lines = |first: &Address| {
        let (first, line) = (*first, facts.cache.line.0);
        (0..u64::from(facts.lines)).map(move |index| first + index * line)
    };
    let (mut total, mut missed) = (Duration::ZERO, 0);
    for round in 0..WARM_UP + COUNTED {
        for visit in &row.visits {
            let mut times = lines(visit).map(|address| walk.read(address));
            let (chain, level) = times.next().unwrap_or((Duration::ZERO, 0));
            let all = times.fold(chain, |sum, (takes, _)| sum + takes);
            if round >= WARM_UP {
                total += chain.max(all / machine.miss_overlap.max(1));
                missed += u64::from(level > facts.cache.level);
            }
        }
    }
    let visits = (row.visits.len().max(1) as u64 * u64::from(COUNTED)) as f64;
    let translation_ns = translation.map_or(0.0, |cost| cost.ns(u64::from(row.blocks)));
    SimulatedWalk {
        ns_per_visit: total.0 as f64 / 1000.0 / visits + translation_ns,
        translation_ns,
        miss_ratio: missed as f64 / visits,
    }
}

/// A CPU that reads.
struct Walk<'caches> {
    caches: &'caches mut Hierarchy,
    cpu: CpuId,
    now: Instant,
}

impl Walk<'_> {
    /// How long a read takes, and which level answers: 255 beyond all caches.
    fn read(&mut self, address: Address) -> (Duration, u8) {
        let outcome = self
            .caches
            .access(self.cpu, address, Access::Read, self.now);
        self.now += outcome.takes;
        let level = match outcome.served {
            warmq_machine::Served::Level(level) => level,
            warmq_machine::Served::Cache | warmq_machine::Served::Memory => u8::MAX,
        };
        (outcome.takes, level)
    }
}
