//! A machine derived from another: another cache size, fewer CPUs.

use std::collections::BTreeMap;

use warmq_units::{Bytes, CpuId};

use crate::description::MachineDescription;
use crate::error::Flaw;
use crate::topology::number_without_gaps;

/// The properties of a machine that a sweep can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Sizes of caches, by level.
    pub cache_sizes: BTreeMap<u8, Bytes>,
    /// How many CPUs, the first ones; all where it is `None`.
    pub cpus: Option<u16>,
}

impl Overrides {
    /// The same with another size of the level-`level` caches.
    pub fn cache(mut self, level: u8, size: Bytes) -> Overrides {
        self.cache_sizes.insert(level, size);
        self
    }

    /// The same with the first `cpus` CPUs only.
    pub fn first_cpus(mut self, cpus: u16) -> Overrides {
        self.cpus = Some(cpus);
        self
    }
}

impl MachineDescription {
    /// This machine with other cache sizes (ways, line and latency as they are) and fewer CPUs.
    ///
    /// # Errors
    /// A level or CPUs that the machine does not have, with the key `l2` or `cpus`; a machine that
    /// [`MachineDescription::check`] rejects.
    pub fn with_overrides(&self, overrides: &Overrides) -> Result<MachineDescription, Flaw> {
        let mut machine = self.clone();
        for (level, size) in &overrides.cache_sizes {
            machine.resize(*level, *size)?;
        }
        if let Some(cpus) = overrides.cpus {
            machine.keep_first(cpus)?;
        }
        machine.check().map(|()| machine)
    }

    fn resize(&mut self, level: u8, size: Bytes) -> Result<(), Flaw> {
        let levels = self.caches.last().map_or(0, |cache| cache.level);
        if !(1..=levels).contains(&level) {
            let problem = format!("{} has no level-{level} cache", self.name);
            let help = format!("give a level from 1 to {levels}");
            return Err(Flaw::new(format!("l{level}"), problem, help));
        }
        for cache in self.caches.iter_mut().filter(|cache| cache.level == level) {
            cache.size = size;
        }
        Ok(())
    }

    fn keep_first(&mut self, cpus: u16) -> Result<(), Flaw> {
        if !(1..=self.cpus.len()).contains(&usize::from(cpus)) {
            let problem = format!("{} has {} CPUs, not {cpus}", self.name, self.cpus.len());
            let help = format!("give a number from 1 to {}", self.cpus.len());
            return Err(Flaw::new("cpus", problem, help));
        }
        let kept = self.nodes_of_first(cpus);
        self.cpus.truncate(usize::from(cpus));
        self.priorities.truncate(usize::from(cpus));
        self.capacities.truncate(usize::from(cpus));
        self.nodes.truncate(usize::from(cpus));
        for cache in &mut self.caches {
            cache.cpus.retain(|cpu| cpu.0 < cpus);
        }
        self.caches.retain(|cache| !cache.cpus.is_empty());
        number_without_gaps(&mut self.cpus);
        if !self.node_distances.is_empty() {
            let of_kept = |row: &Vec<u16>| kept.iter().map(|node| row[*node]).collect();
            let rows = kept.iter().map(|node| &self.node_distances[*node]);
            self.node_distances = rows.map(of_kept).collect();
        }
        Ok(())
    }

    /// The memory nodes of the first `cpus` CPUs, in the order in which they are numbered anew.
    fn nodes_of_first(&self, cpus: u16) -> Vec<usize> {
        let mut nodes = Vec::new();
        for cpu in (0..cpus).map(CpuId) {
            let node = usize::from(self.node(cpu));
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }
}
