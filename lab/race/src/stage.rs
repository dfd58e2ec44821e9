//! The machine, the tasks and the groups of a race.

use std::collections::BTreeMap;

use warmq_kernel::{BootError, GroupId, TaskSpec};
use warmq_machine::{MachineDescription, builtin, read_toml};
use warmq_sched_ext::interleaved::Interleaved;
use warmq_units::{CpuId, Seed, TaskId};

use crate::plan::Setup;
use crate::{MOST_CPUS, Race};

/// A shipped machine whose CPUs are all under one cache.
const MACHINE: &str = "guest-8cpu";

/// So many CPUs under one cache.
pub(crate) fn machine(cpus: u16) -> MachineDescription {
    let text = builtin(MACHINE).expect("a shipped machine");
    let mut machine = read_toml(MACHINE, text).expect("a test reads all of them");
    let cpus = usize::from(cpus.clamp(1, MOST_CPUS));
    machine.cpus.truncate(cpus);
    for cache in &mut machine.caches {
        cache.cpus.retain(|cpu| cpu.index() < cpus);
    }
    machine.caches.retain(|cache| !cache.cpus.is_empty());
    machine
}

/// What a plan is played on.
pub(crate) struct Stage {
    pub(crate) kernel: Interleaved,
    pub(crate) cpus: u16,
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) groups: Vec<GroupId>,
    /// How many places the longest path of each kind had where others may come in.
    pub(crate) places: BTreeMap<&'static str, u64>,
}

impl Stage {
    pub(crate) fn new(race: &Race<'_>, setup: &Setup) -> Result<Stage, BootError> {
        let machine = machine(race.cpus);
        let mut kernel = Interleaved::new(race.loaded, &machine, Seed(setup.seed))?;
        let cpus = machine.cpus.len() as u16;
        let mut groups = vec![GroupId::ROOT];
        let mut tasks = Vec::new();
        for (number, group) in (0..).zip(&setup.groups_of) {
            // ops.init runs before the first task; groups come after it.
            let group = groups.get(usize::from(*group)).copied();
            let group = group.filter(|_| number > 0).unwrap_or(GroupId::ROOT);
            let spec = TaskSpec::new(&format!("task {number}"), None).group(group);
            tasks.push(kernel.fork(spec, CpuId(number % cpus))?);
            if number == 0 {
                let numbers = 1..=setup.groups;
                let make = |number| kernel.group(&format!("g{number}"), GroupId::ROOT);
                groups.extend(numbers.map(make));
            }
        }
        Ok(Stage {
            kernel,
            cpus,
            tasks,
            groups,
            places: BTreeMap::new(),
        })
    }

    pub(crate) fn cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus).map(CpuId)
    }

    /// Tasks that wait for a CPU.
    pub(crate) fn waiting(&self) -> Vec<TaskId> {
        let tasks = self.tasks.iter().copied();
        tasks
            .filter(|task| self.kernel.waits_for_cpu(*task))
            .collect()
    }
}
