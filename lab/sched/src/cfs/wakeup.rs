//! Whether a woken task preempts the running one (`check_preempt_curr()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::tree::EntityId;

use super::settings::{Granularity, Tunables};
use super::state::{Class, State};
use super::weights::delta_fair;

/// Whether an entity whose vruntime is `woken` preempts one whose vruntime is `running`: it must be
/// less by more than `granularity`. All in virtual ns.
pub(super) fn preempts(woken: i64, granularity: i64, running: i64) -> bool {
    woken.saturating_add(granularity) < running
}

impl State {
    /// `task` was queued on `cpu`: asks the CPU to pick again if it should run at once. Nobody asks
    /// whether the wakeup was synchronous.
    pub(super) fn check_preempt(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) {
        context.touch(self.cpu(cpu).line, Access::Read);
        let Some(current) = self.cpu(cpu).current else {
            return context.reschedule(cpu);
        };
        let (new, running) = (&self.tasks[task.index()], &self.tasks[current.index()]);
        let wins = match (new.class, running.class) {
            (_, Class::RealTime) => new.priority < running.priority,
            (Class::RealTime, Class::Fair) => true,
            (Class::Fair, Class::Fair) => {
                self.tunables.wakeup_preempt
                    && !State::is_batch(context, task)
                    && self.is_behind(context, task, current)
            }
        };
        if wins {
            context.reschedule(cpu);
        }
    }

    /// `check_preempt_wakeup()`: compares the entities of the two tasks on their common level.
    fn is_behind(&self, context: &mut Context<'_>, task: TaskId, current: TaskId) -> bool {
        let (woken, running) = self.common_level(self.entity_of(task), self.entity_of(current));
        context.touch(self.entities[woken].line, Access::Read);
        context.touch(self.entities[running].line, Access::Read);
        let granularity = match self.tunables.granularity {
            Granularity::Global => delta_fair(
                self.tunables.wakeup_granularity,
                self.entities[running].weight,
            ),
            Granularity::Local { alpha } => self.local_granularity(alpha, task),
        };
        let vruntime = |entity: EntityId| self.entities[entity].vruntime;
        preempts(vruntime(woken), granularity, vruntime(running))
    }

    /// The entities that stand for two of one CPU in the queue where their ways up meet. In the
    /// kernel all tasks are on one level, and both ways are gone in step.
    fn common_level(&self, one: EntityId, other: EntityId) -> (EntityId, EntityId) {
        let depth = |entity: EntityId| self.queues[self.entities[entity].queue].depth;
        let (mut one, mut other) = (one, other);
        while self.entities[one].queue != self.entities[other].queue {
            let (own, others) = (depth(one), depth(other));
            let up = |entity: EntityId, goes: bool| match goes {
                true => self.parent(entity).unwrap_or(entity),
                false => entity,
            };
            let above = (up(one, own >= others), up(other, others >= own));
            if above == (one, other) {
                // At the top: these would be two CPUs.
                break;
            }
            (one, other) = above;
        }
        (one, other)
    }

    /// The granularity of formula 5-1: of the woken task, in its own weight.
    fn local_granularity(&self, alpha: i64, task: TaskId) -> i64 {
        let entity = &self.entities[self.entity_of(task)];
        let period = self.tunables.period(self.queues[entity.queue].running);
        Tunables::local(
            alpha,
            self.tasks[task.index()].sleeps,
            period,
            entity.weight,
        )
    }

    /// Begins a new scheduling period of a task if the last one is over: its count of sleeps starts
    /// from 0.
    pub(super) fn begin_period(&mut self, task: TaskId, now: i64) {
        let queue = self.entities[self.entity_of(task)].queue;
        let period = self.tunables.period(self.queues[queue].running.max(1));
        let task = &mut self.tasks[task.index()];
        if now - task.period_at >= period {
            task.period_at = now;
            task.sleeps = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use warmq_config::Value;
    use warmq_units::Duration;

    use super::super::settings::tests::tunables;
    use super::*;

    const MS: i64 = 1_000_000;

    /// Decision case 19 of the starvation specification: the running task and min_vruntime are at
    /// 100 ms.
    #[test]
    fn case_19_who_preempts() {
        let table = [
            ("70, credited", 10, 70, true),
            ("95", 10, 95, false),
            ("70, granularity of one latency", 20, 70, false),
        ];
        for (name, granularity, own, expected) in table {
            let set = (
                "wakeup_granularity",
                Value::Duration(Duration::from_ms(granularity)),
            );
            let tunables = tunables(1, &[set]);
            let woken = tunables.woken(own * MS, 100 * MS, true);
            let g = delta_fair(tunables.wakeup_granularity, 1_024);
            assert_eq!(preempts(woken, g, 100 * MS), expected, "{name}");
        }
    }
}
