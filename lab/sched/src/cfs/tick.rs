//! The tick, slices, and `sched_yield`.

use warmq_kernel::{Context, Policy};
use warmq_machine::Access;
use warmq_units::TaskId;

use crate::fair::tree::EntityId;

use super::settings::Tunables;
use super::state::{Class, State, ns};
use super::weights::share;

impl Tunables {
    /// How long an entity of `weight` may run among `running` that weigh `total`, in ns
    /// (`sched_slice()`).
    pub(super) fn slice(&self, (total, running): (u64, u64), weight: u64) -> i64 {
        share(self.period(running), weight, total)
    }
}

impl State {
    /// `scheduler_tick()`.
    pub(super) fn tick(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        let raw = ns(context);
        let cpu = self.cpu_mut(here);
        context.touch(cpu.line, Access::Write);
        cpu.clock.tick(raw);
        cpu.average_load();
        if let Some(current) = self.cpu(here).current
            && self.tasks[current.index()].queued
        {
            match self.tasks[current.index()].class {
                Class::Fair => self.tick_fair(context, current),
                Class::RealTime => self.tick_real_time(context, current),
            }
        }
        let cpu = self.cpu(here);
        if !cpu.domains.is_empty() && cpu.clock.ticks() >= cpu.next_balance {
            context.raise_balance(here);
        }
    }

    /// Level by level, a slice that is used up ends (`entity_tick()`). vruntimes are not compared.
    fn tick_fair(&mut self, context: &mut Context<'_>, current: TaskId) {
        let mut next = Some(self.entity_of(current));
        while let Some(entity) = next {
            next = self.parent(entity);
            let queue = self.entities[entity].queue;
            self.charge(context, queue);
            let alone = self.queues[queue].running <= 1;
            if (!alone || !self.tunables.wakeup_preempt) && self.slice_is_over(entity) {
                context.reschedule(context.cpu());
            }
        }
    }

    /// `check_preempt_tick()`.
    fn slice_is_over(&self, entity: EntityId) -> bool {
        let state = &self.entities[entity];
        let queue = &self.queues[state.queue];
        let slice = self
            .tunables
            .slice((queue.weight, queue.running), state.weight);
        state.ran - state.ran_when_picked > slice
    }

    /// SCHED_RR tasks of one priority take turns (`task_tick_rt()`).
    fn tick_real_time(&mut self, context: &mut Context<'_>, current: TaskId) {
        self.charge_real_time(current);
        if !matches!(context.task(current).policy(), Policy::RoundRobin(_)) {
            return;
        }
        let (renewed, here) = (self.round_robin, context.cpu());
        let task = &mut self.tasks[current.index()];
        task.slice = task.slice.saturating_sub(1);
        if task.slice > 0 {
            return;
        }
        task.slice = renewed;
        if self.cpu(here).realtime.has_equal(current) {
            self.cpu_mut(here).realtime.requeue(current);
            context.reschedule(here);
        }
    }

    /// `yield_task_fair()` and `yield_task_rt()`. The CPU picks again in any case.
    pub(super) fn yields(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &self.tasks[task.index()];
        let (entity, cpu, class) = (state.entity, state.cpu, state.class);
        if class == Class::RealTime {
            return self.cpu_mut(cpu).realtime.requeue(task);
        }
        let queue = self.entities[entity].queue;
        if self.queues[queue].running <= 1 {
            return;
        }
        if !self.tunables.compat_yield && !State::is_batch(context, task) {
            self.update_clock(context, cpu);
            return self.charge(context, queue);
        }
        let last = self.queues[queue].tree.last_key();
        context.touch(self.queues[queue].line, Access::Read);
        if let Some(last) = last.filter(|last| *last >= self.entities[entity].vruntime)
            && self.queues[queue].current == Some(entity)
        {
            self.entities[entity].vruntime = last + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use warmq_kernel::weight_of_nice;

    use super::super::settings::tests::tunables;

    /// Decision case 18 of the starvation specification; ns, cut off.
    #[test]
    fn case_18_a_slice_is_the_weights_part_of_the_period() {
        let table: [(&[i8], i64); 4] = [
            (&[0, 0], 10_000_000),
            (&[0, 0, 0, 0, 0, 0], 4_000_000),
            (&[0, -5], 4_940_892),
            (&[-5, 0], 15_059_107),
        ];
        let tunables = tunables(1, &[]);
        for (tasks, slice) in table {
            let total = tasks.iter().map(|nice| weight_of_nice(*nice)).sum();
            let all = (total, tasks.len() as u64);
            assert_eq!(
                tunables.slice(all, weight_of_nice(tasks[0])),
                slice,
                "{tasks:?}"
            );
        }
    }
}
