//! Time slices of Linux 2.4: a counter of ticks for each task of the system.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, Policy, UnknownCost};
use warmq_machine::Access;
use warmq_units::{CpuId, Cycles, Duration, TaskId};

use super::goodness::{Candidate, renewed, ticks};
use super::layout::Layout;

/// 1 / HZ.
const TICK: Duration = Duration::from_ms(10);

/// The counters of all tasks, and who of them lives.
pub(crate) struct Slices {
    counters: Vec<i32>,
    yielded: Vec<bool>,
    /// Every task of the system, runnable or not, in the order of creation.
    living: Vec<TaskId>,
    /// What a new slice costs, but for its misses.
    cost_of_one: Cycles,
    /// A fork halves what the parent has left; else the child gets it all.
    share: bool,
}

impl Slices {
    pub(crate) fn new(attach: &Attach<'_>, chosen: &Chosen) -> Result<Slices, UnknownCost> {
        let (counters, yielded, living) = Default::default();
        Ok(Slices {
            counters,
            yielded,
            living,
            cost_of_one: attach.cost("recalculate_per_task")?,
            share: chosen.flag("share"),
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

    /// The child gets what the parent has left, or half of it.
    pub(crate) fn fork(&mut self, context: &Context<'_>, parent: Option<TaskId>, child: TaskId) {
        let counter = match parent {
            Some(parent) => {
                let left = self.counters[parent.index()];
                let (kept, given) = divide(left, self.share);
                self.counters[parent.index()] = kept;
                given
            }
            None => ticks(context.task(child).nice()),
        };
        // Forks on two CPUs may be reported in another order than that of their numbers.
        let known = self.counters.len().max(child.index() + 1);
        self.counters.resize(known, 0);
        self.yielded.resize(known, false);
        self.counters[child.index()] = counter;
        self.living.push(child);
    }

    pub(crate) fn exit(&mut self, task: TaskId) {
        self.living.retain(|living| *living != task);
    }

    /// The machine has been up for long: of the ticks that all tasks have, only so many are left as
    /// `cpus` busy CPUs use up in `span`, spread evenly. No task gets more than it has.
    pub(crate) fn leave_ticks(&mut self, span: Duration, cpus: u16) {
        let left = span.0 / TICK.0 * u64::from(cpus);
        let tasks = self.living.len().max(1) as u64;
        for (index, task) in (0..).zip(&self.living) {
            let share = (left * (index + 1) / tasks - left * index / tasks) as i32;
            let counter = &mut self.counters[task.index()];
            *counter = share.min(*counter);
        }
    }

    /// `task` gives way to everybody; a real-time task does not (`sys_sched_yield()`).
    pub(crate) fn yields(&mut self, context: &Context<'_>, task: TaskId) {
        let policy = context.task(task).policy();
        self.yielded[task.index()] = matches!(
            policy,
            Policy::Other | Policy::Batch | Policy::Idle | Policy::Deadline(_)
        );
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
            context.touch(layout.links(*task), Access::Read);
            context.touch(layout.hot(*task), Access::Write);
            context.compute(self.cost_of_one);
            let nice = context.task(*task).nice();
            let counter = &mut self.counters[task.index()];
            *counter = renewed(*counter, nice);
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

    /// What any CPU would weigh of `task`, without the bonuses for having run there and for its
    /// address space.
    pub(crate) fn without_bonuses(&self, context: &Context<'_>, task: TaskId) -> i32 {
        let view = context.task(task);
        let (counter, yielded) = (self.counters[task.index()], self.yielded[task.index()]);
        let candidate = Candidate::new(view, counter, yielded, view.last_cpu(), view.mm());
        candidate.without_bonuses().goodness()
    }
}

/// What a parent with `left` ticks keeps at a fork, and what the child gets. In 2.4.4 alone the
/// child got everything.
fn divide(left: i32, share: bool) -> (i32, i32) {
    match share {
        true => (left / 2, (left + 1) / 2),
        false => (0, left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 10 of the coloring paper's specification.
    #[test]
    fn a_fork_gives_all_away_in_2_4_4_and_half_elsewhere() {
        let table = [
            (6, false, (0, 6)),
            (6, true, (3, 3)),
            (5, true, (2, 3)),
            (1, true, (0, 1)),
        ];
        for (left, share, expected) in table {
            assert_eq!(divide(left, share), expected, "{left} {share}");
        }
    }
}
