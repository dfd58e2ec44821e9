//! Times that /sys does not have.

use warmq_machine::{Flaw, MachineDescription};
use warmq_units::{Cycles, Duration};

/// Load-to-use latencies, as a walk over more and more memory measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// A hit in level 1.
    pub l1: Cycles,
    /// A hit in level 2.
    pub l2: Cycles,
    /// A hit in level 3 or, where there is one, level 4.
    pub l3: Cycles,
    /// From a CPU's load to the data when all caches miss.
    pub memory: Duration,
}

/// Puts measured latencies in place of the assumed ones; `source` says who measured them.
///
/// # Errors
/// Latencies that fall from one level to the next; the machine is then as it was.
pub fn set_latencies(
    machine: &mut MachineDescription,
    latencies: &Latencies,
    source: &str,
) -> Result<(), Flaw> {
    let mut measured = machine.clone();
    for cache in &mut measured.caches {
        cache.latency = match cache.level {
            1 => latencies.l1,
            2 => latencies.l2,
            _ => latencies.l3,
        };
        let key = format!("cache.l{}.latency", cache.level);
        measured.sources.insert(key, source.to_owned());
    }
    measured.memory.latency = latencies.memory;
    measured
        .sources
        .insert("memory.latency".to_owned(), source.to_owned());
    measured.check()?;
    *machine = measured;
    Ok(())
}
