//! Switching a machine on: the state, the scheduler, the workload's first tasks, and time.

use warmq_machine::{FULL_CAPACITY, Hierarchy, MachineDescription, PhysicalMemory};
use warmq_trace::Observer;
use warmq_units::CpuId;

use crate::core::{Core, Hardware, Memory, Recorder, Speeds};
use crate::face::{Attach, Boot, BootError, MakeScheduler, Workload};
use crate::paths::System;
use crate::run::kernel::Kernel;
use crate::words::{Costs, Settings, Times};

impl<O: Observer> Kernel<O> {
    /// Switches `machine` on under `scheduler` and starts `workload`. No time has passed yet.
    ///
    /// # Errors
    /// When the machine's table lacks a cost, or its memory does not hold the workload.
    pub fn boot(
        machine: &MachineDescription,
        costs: &Costs,
        settings: Settings,
        scheduler: MakeScheduler,
        workload: &dyn Workload,
        observer: O,
    ) -> Result<Kernel<O>, BootError> {
        let times = Times::new(costs, machine.clock)?;
        let recorder = Recorder::new(O::LISTENS, O::LISTENS && O::DETAIL);
        let mut core = Core::new(hardware(machine, &settings), settings, times, recorder);
        let scheduler = scheduler(&mut Attach::new(&mut core, costs))?;
        core.locks.end_of_scheduler();
        workload.start(&mut Boot::new(&mut core))?;
        core.create_ksoftirqds()?;
        core.name_outside();
        let mut system = System { core, scheduler };
        system.core.start_steals(&machine.steals);
        system.start_time(system.core.settings.skewed_ticks || machine.steals.is_empty());
        if let Some(full) = system.core.memory_full() {
            return Err(BootError::Memory(full));
        }
        let mut kernel = Kernel::new(system, observer);
        kernel.hand_records_on();
        Ok(kernel)
    }
}

pub(crate) fn hardware(machine: &MachineDescription, settings: &Settings) -> (Hardware, Memory) {
    let hierarchy = settings
        .caches
        .then(|| Hierarchy::new(machine, settings.counting));
    let pages = settings.seed.stream("pages");
    let physical = PhysicalMemory::new(&machine.memory, settings.fragmentation, pages);
    let line = machine.caches[0].line;
    let page = machine.memory.page;
    let memory = Memory::new(hierarchy, physical, page, line, machine.miss_overlap);
    let memory = memory.waited_for_by(machine);
    let known_capacity = |cpu| match machine.knows_capacities() {
        true => machine.capacity(cpu),
        false => FULL_CAPACITY,
    };
    let hardware = Hardware {
        clock: machine.clock,
        places: machine.cpus.clone(),
        nodes: machine.nodes_of_cpus(),
        sockets_or_nodes: machine
            .cpu_ids()
            .map(|cpu| machine.socket_or_node(cpu))
            .collect(),
        distances: distances(machine),
        clusters: machine.cpu_ids().map(|cpu| machine.cluster(cpu)).collect(),
        priorities: machine.cpu_ids().map(|cpu| machine.priority(cpu)).collect(),
        card: machine.card,
        way_sizes: way_sizes(machine),
        speeds: Speeds::of(machine),
        capacities: machine.cpu_ids().map(known_capacity).collect(),
    };
    (hardware, memory)
}

/// The distances of the memory nodes from one another.
fn distances(machine: &MachineDescription) -> Vec<Vec<u64>> {
    let first_of = |node: u16| machine.cpu_ids().find(|cpu| machine.node(*cpu) == node);
    let firsts: Vec<CpuId> = (0..machine.nodes() as u16).filter_map(first_of).collect();
    let row = |from: &CpuId| {
        firsts
            .iter()
            .map(|to| machine.distance(*from, *to))
            .collect()
    };
    firsts.iter().map(row).collect()
}

/// Size divided by associativity of the caches that CPU 0 uses, innermost first.
fn way_sizes(machine: &MachineDescription) -> Vec<u64> {
    let mut caches: Vec<_> = machine
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(&CpuId(0)))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
        .iter()
        .map(|cache| cache.size.0 / u64::from(cache.ways))
        .collect()
}
