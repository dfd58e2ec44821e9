//! Where an entity that joins a queue stands: `place_entity()` of 2.6.24, and what follows at a
//! fork.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::fair::tree::EntityId;

use super::settings::Tunables;
use super::state::{Class, State, What};
use super::weights::{NICE_0, share};

impl Tunables {
    /// The vruntime of a woken entity: its own, but no more than the credit behind `min_vruntime`.
    /// Sleep up to one latency does not count; groups get no credit.
    pub(super) fn woken(&self, own: i64, min_vruntime: i64, is_task: bool) -> i64 {
        let credit = match is_task && self.fair_sleepers {
            true => self.latency,
            false => 0,
        };
        own.max(min_vruntime - credit)
    }

    /// The vruntime of a new task of `weight` in a queue of `running` entities that weigh `total`:
    /// the period is promised to those that are there, so it starts one slice later
    /// (`sched_vslice_add()`).
    pub(super) fn new_task(
        &self,
        min_vruntime: i64,
        (total, running): (u64, u64),
        weight: u64,
    ) -> i64 {
        if !self.start_debit {
            return min_vruntime;
        }
        min_vruntime + share(self.period(running + 1), NICE_0, total + weight)
    }
}

impl State {
    /// Places an entity that slept.
    pub(super) fn place_woken(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let is_task = matches!(state.what, What::Task(_));
        let least = self.queues[state.queue].min_vruntime;
        let placed = self.tunables.woken(state.vruntime, least, is_task);
        self.entities[entity].vruntime = placed;
    }

    /// A new task joins the queue of `cpu`, and asks for it at once (`wake_up_new_task()`,
    /// `task_new_fair()`). On its parent's CPU it takes over the vruntime of a parent that has
    /// less.
    ///
    /// Tasks without a parent are those that a run begins with. They start where their queue is.
    pub(super) fn start(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let state = &self.tasks[task.index()];
        let (entity, forked) = (state.entity, state.parent.is_some());
        if state.class == Class::RealTime {
            self.activate(context, task, false);
            return self.check_preempt(context, cpu, task);
        }
        let queue = self.entities[entity].queue;
        self.charge(context, queue);
        let there = &self.queues[queue];
        let least = there.min_vruntime;
        if forked {
            let (others, weight) = ((there.weight, there.running), self.entities[entity].weight);
            let vruntime = self.tunables.new_task(least, others, weight);
            self.entities[entity].vruntime = vruntime;
            if self.tunables.child_runs_first && context.cpu() == cpu {
                self.swap_with_current(entity);
            }
        } else {
            self.entities[entity].vruntime = least;
        }
        self.activate(context, task, false);
        context.reschedule(cpu);
    }

    /// Exchanges the vruntimes of a new entity and the running one of its queue, if that has less.
    fn swap_with_current(&mut self, entity: EntityId) {
        let Some(current) = self.queues[self.entities[entity].queue].current else {
            return;
        };
        let (mine, other) = (
            self.entities[entity].vruntime,
            self.entities[current].vruntime,
        );
        if other < mine {
            self.entities[entity].vruntime = other;
            self.entities[current].vruntime = mine;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::tunables;

    const MS: i64 = 1_000_000;

    /// Decision case 18 of the starvation specification: a fork beside one running task of nice 0.
    #[test]
    fn case_18_a_child_starts_one_slice_after_min_vruntime() {
        let tunables = tunables(1, &[]);
        assert_eq!(tunables.new_task(100 * MS, (1_024, 1), 1_024), 110 * MS);
    }

    /// Decision case 19, where sleepers are placed; running and min_vruntime are 100 ms.
    #[test]
    fn case_19_a_sleeper_is_credited_with_one_latency_at_most() {
        let tunables = tunables(1, &[]);
        for (own, placed) in [(70, 80), (95, 95), (120, 120)] {
            let vruntime = tunables.woken(own * MS, 100 * MS, true);
            assert_eq!(vruntime, placed * MS, "a sleeper at {own}");
        }
        assert_eq!(
            tunables.woken(70 * MS, 100 * MS, false),
            100 * MS,
            "groups get none"
        );
    }
}
