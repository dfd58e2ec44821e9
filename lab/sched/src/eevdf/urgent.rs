//! Real-time and deadline tasks, as [`Overload`] moves them between CPUs.

use warmq_classes::{Overload, Rank, Urgent};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::queueing::Leaving;
use super::state::State;

impl Overload for State {
    fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpu(cpu).current
    }

    fn rank(&self, task: TaskId) -> Rank {
        self.task(task).class.rank()
    }

    fn urgent(&self, cpu: CpuId) -> &Urgent {
        &self.cpu(cpu).urgent
    }

    fn distance(&self, from: CpuId, to: CpuId) -> usize {
        let domains = &self.cpu(from).domains;
        let nearest = domains.iter().position(|of| of.span.contains(&to));
        nearest.unwrap_or(domains.len())
    }

    fn put_urgent(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let from = self.task(task).cpu;
        self.sync(context, from);
        self.sync(context, to);
        self.deactivate(task, Leaving::Moves);
        self.end_idling(to);
        self.arrive(context, task, to);
    }

    fn reschedule(&mut self, _: &mut Context<'_>, cpu: CpuId) {
        self.effects.request(cpu, Urgency::Now);
    }
}
