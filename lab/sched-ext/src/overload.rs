//! Real-time and deadline tasks, as [`Overload`] moves them between CPUs.

use warmq_classes::{Overload, Rank, Urgent};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::run_queue::Machine;

impl Overload for Machine {
    fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.state.runs(cpu)
    }

    fn rank(&self, task: TaskId) -> Rank {
        self.state.rank(task)
    }

    fn urgent(&self, cpu: CpuId) -> &Urgent {
        self.state.urgent(cpu)
    }

    fn distance(&self, from: CpuId, to: CpuId) -> usize {
        let node = |cpu| self.state.cpu(cpu).node;
        match self.state.idle.shares_cache(from, to) {
            true => 0,
            false => 1 + usize::from(node(from) != node(to)),
        }
    }

    fn put_urgent(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let mut here = self.here(context);
        here.remove_urgent(task);
        here.add_urgent(task, to);
        here.preempt_for(task, to);
    }

    fn reschedule(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        context.reschedule(cpu);
    }
}
