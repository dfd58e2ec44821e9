//! Time slices of Linux 2.4: a counter of ticks for each task of the system.

use warmq_kernel::{Attach, Context, Policy, UnknownCost};
use warmq_machine::Access;
use warmq_units::{CpuId, Cycles, TaskId};

use super::goodness::{Candidate, ticks};
use super::layout::Layout;

/// The counters of all tasks, and who of them lives.
pub(crate) struct Slices {
    counters: Vec<i32>,
    yielded: Vec<bool>,
    /// Every task of the system, runnable or not, in the order of creation.
    living: Vec<TaskId>,
    /// What a new slice costs, but for its misses.
    cost_of_one: Cycles,
}

impl Slices {
    pub(crate) fn new(attach: &Attach<'_>) -> Result<Slices, UnknownCost> {
        let cost_of_one = attach.cost("recalculate_per_task")?;
        let (counters, yielded, living) = Default::default();
        Ok(Slices {
            counters,
            yielded,
            living,
            cost_of_one,
        })
    }

    /// How many tasks there ever were.
    #[cfg(test)]
    pub(crate) fn known(&self) -> u32 {
        self.counters.len() as u32
    }

    pub(crate) fn counter(&self, task: TaskId) -> i32 {
        self.counters[task.index()]
    }

    /// The child gets half of what the parent has left, and the parent keeps the other half.
    pub(crate) fn fork(&mut self, context: &Context<'_>, parent: Option<TaskId>, child: TaskId) {
        let counter = match parent {
            Some(parent) => {
                let left = self.counters[parent.index()];
                self.counters[parent.index()] = left / 2;
                (left + 1) / 2
            }
            None => ticks(context.task(child).nice()),
        };
        // Forks on two CPUs may be told of in another order than that of their numbers.
        let known = self.counters.len().max(child.index() + 1);
        self.counters.resize(known, 0);
        self.yielded.resize(known, false);
        self.counters[child.index()] = counter;
        self.living.push(child);
    }

    pub(crate) fn exit(&mut self, task: TaskId) {
        self.living.retain(|living| *living != task);
    }

    /// `task` gives way to everybody; a real-time task does not (`sys_sched_yield()`).
    pub(crate) fn yields(&mut self, context: &Context<'_>, task: TaskId) {
        let policy = context.task(task).policy();
        self.yielded[task.index()] = matches!(policy, Policy::Other | Policy::Batch | Policy::Idle);
    }

    pub(crate) fn has_yielded(&self, task: TaskId) -> bool {
        self.yielded[task.index()]
    }

    pub(crate) fn forget_yield(&mut self, task: TaskId) {
        self.yielded[task.index()] = false;
    }

    /// One tick of `task`'s slice is over. True when it was the last.
    pub(crate) fn charge_tick(&mut self, task: TaskId) -> bool {
        let counter = &mut self.counters[task.index()];
        *counter = (*counter - 1).max(0);
        *counter == 0
    }

    /// A round-robin task whose slice is over gets a new one. True when it did.
    pub(crate) fn renew_round_robin(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let view = context.task(task);
        let used_up =
            matches!(view.policy(), Policy::RoundRobin(_)) && self.counters[task.index()] == 0;
        if used_up {
            self.counters[task.index()] = ticks(view.nice());
        }
        used_up
    }

    /// Every task of the system keeps half of what it has and gets a new slice on top. The loop
    /// goes over the list of all tasks, whose links lie in another line than the counter.
    pub(crate) fn recalculate(&mut self, context: &mut Context<'_>, layout: &Layout) {
        context.recalculated();
        for task in &self.living {
            context.touch(layout.next_task(*task), Access::Read);
            context.touch(layout.counter(*task), Access::Write);
            context.compute(self.cost_of_one);
            let nice = context.task(*task).nice();
            let counter = &mut self.counters[task.index()];
            *counter = *counter / 2 + ticks(nice);
        }
    }

    /// What `cpu` would weigh of `task`, were it to follow a task with `mm`.
    pub(crate) fn candidate(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
        mm: Option<warmq_kernel::Mm>,
    ) -> Candidate {
        let (counter, yielded) = (self.counters[task.index()], self.yielded[task.index()]);
        Candidate::new(context.task(task), counter, yielded, cpu, mm)
    }

    /// What a CPU where `task` never ran would weigh of it.
    pub(crate) fn candidate_anywhere(&self, context: &Context<'_>, task: TaskId) -> Candidate {
        let view = context.task(task);
        let (counter, yielded) = (self.counters[task.index()], self.yielded[task.index()]);
        let here = Candidate::new(view, counter, yielded, view.last_cpu(), view.mm());
        Candidate {
            last_here: false,
            same_mm: false,
            ..here
        }
    }
}
