//! Orders of execution: given by hand, or by bins.

use warmq_units::TaskId;

use crate::cpu::Cpu;
use crate::model::{FragmentId, Instance, Run};
use crate::schedule::Schedule;

/// Who runs on each CPU, in order: of every task that becomes ready, all runs, each once. The first
/// task is not in it.
pub type Order = Vec<Vec<(TaskId, Run)>>;

/// Plays `order`, which has an entry a CPU. No CPU waits: the tasks have one run each.
pub fn replay(instance: &Instance, order: &Order) -> Schedule {
    let mut cpus = Cpu::all(instance);
    for (cpu, runs) in cpus.iter_mut().zip(order) {
        for (task, run) in runs {
            cpu.run(0, *task, run);
        }
    }
    Cpu::finish(cpus)
}

/// The order in which one CPU is done soonest: a bin for each fragment, bin after bin, and the bin
/// of `warm`, whose fragment the cache holds, first. Runs without a fragment come last.
///
/// Every fragment that is used is filled once, and is written back once if it gets dirty. No order
/// does with less, so this one is optimal under both penalties.
pub fn by_fragment(runs: &mut [(TaskId, Run)], warm: Option<FragmentId>) {
    runs.sort_by_key(|(_, run)| match run.fragment {
        None => (true, false, None),
        fragment => (false, fragment != warm, fragment),
    });
}

/// How often the fragment changes in `order`: so many times is the penalty g charged.
pub fn switches(order: impl IntoIterator<Item = FragmentId>) -> u64 {
    let mut order = order.into_iter();
    let mut last = order.next();
    let changes = order.filter(|fragment| last.replace(*fragment) != Some(*fragment));
    changes.count() as u64
}
