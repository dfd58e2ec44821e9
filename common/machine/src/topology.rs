//! Topology: regular layouts, and queries about a machine's CPUs.

use std::collections::BTreeSet;

use warmq_units::{Bytes, CpuId};

use crate::observed::renumbered;
use crate::{CacheDescription, Coherence, CpuPlace, MachineDescription};

/// The distance of a memory node from itself, and from others where none is given
/// (`LOCAL_DISTANCE`, `REMOTE_DISTANCE` of Linux; the first is ACPI's).
pub(crate) const LOCAL_DISTANCE: u16 = 10;
const REMOTE_DISTANCE: u16 = 20;
/// The capacity of the fastest CPU (`SCHED_CAPACITY_SCALE`).
pub const FULL_CAPACITY: u64 = 1024;

/// A machine whose sockets are all alike.
///
/// Invariant of what [`Layout::places`] gives: CPUs are numbered as Linux numbers them on x86,
/// first the first thread of every core, then the second thread of every core, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Sockets of the machine.
    pub sockets: u64,
    /// Last-level caches of a socket.
    pub llcs_per_socket: u64,
    /// Cores that share a last-level cache.
    pub cores_per_llc: u64,
    /// Hardware threads of a core.
    pub threads_per_core: u64,
}

impl Layout {
    /// The number of CPUs, or `None` on overflow.
    pub fn cpus(&self) -> Option<u64> {
        self.sockets
            .checked_mul(self.llcs_per_socket)?
            .checked_mul(self.cores_per_llc)?
            .checked_mul(self.threads_per_core)
    }

    /// The place of each CPU. [`Layout::cpus`] must be at most 65,536.
    pub fn places(&self) -> Vec<CpuPlace> {
        let llcs = self.sockets * self.llcs_per_socket;
        let cores = llcs * self.cores_per_llc;
        (0..cores * self.threads_per_core)
            .map(|cpu| cpu % cores)
            .map(|core| CpuPlace {
                socket: (core / self.cores_per_llc / self.llcs_per_socket) as u16,
                llc: (core / self.cores_per_llc) as u16,
                core: core as u16,
            })
            .collect()
    }

    /// The order in which CPUs are numbered where the threads of a core follow one another, as in
    /// guests of KVM and on many servers of Arm: entry i is the number that CPU i has in
    /// [`Layout::places`].
    pub fn adjacent_siblings(&self) -> Vec<u64> {
        let cores = self.sockets * self.llcs_per_socket * self.cores_per_llc;
        let threads = |core| (0..self.threads_per_core).map(move |thread| thread * cores + core);
        (0..cores).flat_map(threads).collect()
    }
}

/// Numbers sockets, last-level caches and cores without gaps, in the order of their first CPUs.
pub fn number_without_gaps(cpus: &mut [CpuPlace]) {
    let sockets = renumbered(cpus.iter().map(|place| place.socket));
    let llcs = renumbered(cpus.iter().map(|place| place.llc));
    let cores = renumbered(cpus.iter().map(|place| place.core));
    for (cpu, place) in cpus.iter_mut().enumerate() {
        *place = CpuPlace {
            socket: sockets[cpu],
            llc: llcs[cpu],
            core: cores[cpu],
        };
    }
}

impl MachineDescription {
    /// The CPUs, ascending.
    pub fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len()).map(|cpu| CpuId(cpu as u16))
    }

    /// The place of a CPU.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn place(&self, cpu: CpuId) -> CpuPlace {
        self.cpus[cpu.index()]
    }

    /// The memory node of a CPU: its socket, unless nodes are others; 0 on a bus, whose memory is
    /// as far from all.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn node(&self, cpu: CpuId) -> u16 {
        match self.coherence {
            Coherence::Bus { .. } => 0,
            Coherence::Directory { .. } => self.socket_or_node(cpu),
        }
    }

    /// The memory node of each CPU, in the order of CPUs.
    pub fn nodes_of_cpus(&self) -> Vec<u16> {
        self.cpu_ids().map(|cpu| self.node(cpu)).collect()
    }

    /// The memory node of a CPU, or its socket, also on a bus.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn socket_or_node(&self, cpu: CpuId) -> u16 {
        let given = self.nodes.get(cpu.index()).copied();
        given.unwrap_or_else(|| self.place(cpu).socket)
    }

    /// How far the memory nodes of two CPUs are from each other: 10 for the same.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn distance(&self, one: CpuId, other: CpuId) -> u64 {
        let (one, other) = (self.node(one), self.node(other));
        let known = self.node_distances.get(usize::from(one));
        let known = known.and_then(|row| row.get(usize::from(other)));
        let by_default = match one == other {
            true => LOCAL_DISTANCE,
            false => REMOTE_DISTANCE,
        };
        known.copied().unwrap_or(by_default).into()
    }

    /// How many memory nodes there are.
    pub fn nodes(&self) -> usize {
        let all: BTreeSet<u16> = self.cpu_ids().map(|cpu| self.node(cpu)).collect();
        all.len()
    }

    /// The priority of a CPU; 0 where all are alike.
    pub fn priority(&self, cpu: CpuId) -> u16 {
        self.priorities.get(cpu.index()).copied().unwrap_or(0)
    }

    /// How fast `cpu` works, in 1024ths of the fastest CPU.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        let given = self.capacities.get(cpu.index()).copied();
        given.map_or(FULL_CAPACITY, u64::from)
    }

    /// Whether kernels learn how fast CPUs work. Those of Arm do from the device tree; those of
    /// x86 from intel_pstate, but only without SMT (`hybrid_init_cpu_capacity_scaling()`). With it,
    /// they learn which CPUs to prefer instead (`sched_set_itmt_support()`): a machine with
    /// priorities is scheduled by these.
    pub fn knows_capacities(&self) -> bool {
        self.priorities.is_empty() && !self.capacities.is_empty()
    }

    /// The first of the CPUs that share a level-2 cache with `cpu`; itself, if it has none.
    pub fn cluster(&self, cpu: CpuId) -> CpuId {
        let second = self.caches_of(cpu).find(|cache| cache.level == 2);
        second.map_or(cpu, |cache| cache.cpus[0])
    }

    /// The number of sockets.
    pub fn sockets(&self) -> usize {
        distinct(&self.cpus, |place| place.socket)
    }

    /// The number of last-level cache domains.
    pub fn llcs(&self) -> usize {
        distinct(&self.cpus, |place| place.llc)
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        distinct(&self.cpus, |place| place.core)
    }

    /// The CPUs that share a core with `cpu`, itself included, ascending.
    pub fn siblings(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let core = self.place(cpu).core;
        self.cpu_ids()
            .filter(move |other| self.place(*other).core == core)
    }

    /// The CPUs under a last-level cache, ascending.
    pub fn cpus_of_llc(&self, llc: u16) -> impl Iterator<Item = CpuId> + '_ {
        self.cpu_ids()
            .filter(move |cpu| self.place(*cpu).llc == llc)
    }

    /// The caches of a CPU, innermost first.
    pub fn caches_of(&self, cpu: CpuId) -> impl Iterator<Item = &CacheDescription> + '_ {
        self.caches
            .iter()
            .filter(move |cache| cache.cpus.binary_search(&cpu).is_ok())
    }

    /// The line size of every cache of the machine.
    ///
    /// # Panics
    /// When the machine has no cache, which [`MachineDescription::check`] rejects.
    pub fn line(&self) -> Bytes {
        self.caches[0].line
    }
}

fn distinct(places: &[CpuPlace], part: impl Fn(&CpuPlace) -> u16) -> usize {
    places.iter().map(part).collect::<BTreeSet<u16>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_threads_are_numbered_after_all_first_threads() {
        let layout = Layout {
            sockets: 2,
            llcs_per_socket: 2,
            cores_per_llc: 2,
            threads_per_core: 2,
        };
        let places = layout.places();
        let cores: Vec<u16> = places.iter().map(|place| place.core).collect();
        assert_eq!(cores, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(
            places[5],
            CpuPlace {
                socket: 1,
                llc: 2,
                core: 5
            }
        );
        assert_eq!(places[13], places[5]);
        let adjacent = layout.adjacent_siblings();
        assert_eq!(adjacent[..6], [0, 8, 1, 9, 2, 10]);
    }
}
