//! The rules of sharing: chains of caches from a CPU outwards, and domains that nest.

use std::collections::BTreeMap;

use warmq_units::CpuId;

use super::cache::cache_key;
use super::demand;
use crate::description::{Inclusion, MachineDescription};
use crate::error::Flaw;

impl MachineDescription {
    /// The caches of each CPU, innermost first, as indices into `self.caches`.
    pub(super) fn chains(&self) -> Result<Vec<Vec<usize>>, Flaw> {
        let mut chains = vec![Vec::new(); self.cpus.len()];
        for (index, cache) in self.caches.iter().enumerate() {
            for cpu in &cache.cpus {
                let chain: &mut Vec<usize> = &mut chains[cpu.index()];
                demand(chain.len() + 1 == usize::from(cache.level), || {
                    gap(cache.level, *cpu, chain.len())
                })?;
                chain.push(index);
            }
        }
        match chains.iter().position(Vec::is_empty) {
            None => Ok(chains),
            Some(cpu) => {
                let problem = format!("cpu{cpu} has no level-1 cache");
                Err(Flaw::new("cache", problem, "add a cache with `level = 1`"))
            }
        }
    }

    /// Checks that, from a CPU outwards, latency never falls, and inclusive caches are large enough
    /// for the inner ones.
    pub(super) fn check_chains(&self, chains: &[Vec<usize>]) -> Result<(), Flaw> {
        for chain in chains {
            for pair in chain.windows(2) {
                let (near, far) = (&self.caches[pair[0]], &self.caches[pair[1]]);
                demand(near.latency <= far.latency, || {
                    let (near_hit, far_hit) = (near.latency.0, far.latency.0);
                    let problem = format!(
                        "a hit in level {} takes {far_hit} cycles, less than the {near_hit} of \
                         level {}",
                        far.level, near.level
                    );
                    Flaw::new(
                        cache_key(far, "latency"),
                        problem,
                        "give load-to-use latencies",
                    )
                })?;
                let includes = far.inclusion == Inclusion::Inclusive;
                demand(!includes || near.size <= far.size, || {
                    let problem = format!(
                        "{} cannot include the {} of level {}",
                        far.size, near.size, near.level
                    );
                    Flaw::new(
                        cache_key(far, "size"),
                        problem,
                        "enlarge it, or drop `inclusion = \"inclusive\"`",
                    )
                })?;
            }
            let outermost = &self.caches[chain[chain.len() - 1]];
            demand(
                self.clock.time_of(outermost.latency) <= self.memory.latency,
                || {
                    let hit = self.clock.time_of(outermost.latency);
                    let problem = format!(
                        "memory answers in {}, before the level-{} cache ({hit})",
                        self.memory.latency, outermost.level
                    );
                    Flaw::new(
                        "memory.latency",
                        problem,
                        "give the latency from a CPU's load to the data",
                    )
                },
            )?;
        }
        Ok(())
    }

    /// Checks that sharing nests: a core within every cache, a cache within the next one, and the
    /// CPUs of one `llc` number are those under one outermost cache.
    pub(super) fn check_sharing(&self, chains: &[Vec<usize>]) -> Result<(), Flaw> {
        for cache in &self.caches {
            let outward = |cpu: &CpuId| chains[cpu.index()].get(usize::from(cache.level));
            let first = outward(&cache.cpus[0]);
            demand(cache.cpus.iter().all(|cpu| outward(cpu) == first), || {
                let problem = format!(
                    "CPUs that share a level-{} cache do not share level {}",
                    cache.level,
                    cache.level + 1
                );
                let help = "let an outer cache serve at least the CPUs of an inner one";
                Flaw::new(format!("cache.l{}.sharing", cache.level + 1), problem, help)
            })?;
        }
        let outermost = |cpu: usize| chains[cpu][chains[cpu].len() - 1];
        self.agree(
            |cpu| usize::from(self.cpus[cpu].core),
            |cpu| (chains[cpu][0], self.cpus[cpu].socket),
            "cache.l1.sharing",
            "threads of one core do not share its level-1 cache and socket",
            "share every cache at least per core",
        )?;
        let help =
            "make llcs_per_socket and cores_per_llc match the sharing of the outermost cache";
        let problem = "the outermost caches are not the last-level caches of the topology";
        self.agree(
            |cpu| usize::from(self.cpus[cpu].llc),
            outermost,
            "topology",
            problem,
            help,
        )?;
        self.agree(
            outermost,
            |cpu| self.cpus[cpu].llc,
            "topology",
            problem,
            help,
        )
    }

    /// Checks that CPUs with the same `group` have the same `value`.
    fn agree<V: PartialEq>(
        &self,
        group: impl Fn(usize) -> usize,
        value: impl Fn(usize) -> V,
        key: &str,
        problem: &str,
        help: &str,
    ) -> Result<(), Flaw> {
        let mut first = BTreeMap::new();
        for cpu in 0..self.cpus.len() {
            let known = *first.entry(group(cpu)).or_insert(cpu);
            demand(value(known) == value(cpu), || {
                Flaw::new(key, format!("{problem} (cpu{known}, cpu{cpu})"), help)
            })?;
        }
        Ok(())
    }
}

fn gap(level: u8, cpu: CpuId, levels: usize) -> Flaw {
    let problem = if levels < usize::from(level) {
        format!(
            "{cpu} has a level-{level} cache but none of level {}",
            levels + 1
        )
    } else {
        format!("{cpu} has two level-{level} caches")
    };
    Flaw::new(
        format!("cache.l{level}.level"),
        problem,
        "number the levels from 1 without a gap",
    )
}
