//! The tick, the timer that ends slices, and `sched_yield`.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::state::{Class, State};

/// The shortest that a slice's timer is armed for, in ns (`hrtick_start()`).
const SHORTEST_HRTICK: i64 = 10_000;

impl State {
    /// `sched_tick()`.
    pub(super) fn tick(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        self.effects.write(self.cpu(here).line);
        if let Some(current) = self
            .cpu(here)
            .current
            .filter(|task| self.task(*task).runnable)
        {
            match self.task(current).class {
                Class::Fair => self.tick_fair(current),
                Class::RealTime => self.tick_real_time(here, current),
            }
        }
        let cpu = self.cpu(here);
        if !cpu.domains.is_empty() && cpu.clock >= cpu.next_balance {
            context.raise_balance(here);
        }
        self.kick_idle(context);
    }

    /// Level by level, what runs is charged, and weights follow the load (`entity_tick()`).
    pub(super) fn tick_fair(&mut self, current: TaskId) {
        let mut next = Some(self.entity_of(current));
        while let Some(entity) = next {
            self.charge(self.entities[entity].queue);
            self.update_load(entity, true);
            self.update_shares(entity);
            next = self.parent(entity);
        }
        self.refresh_flat_weight(self.entity_of(current));
    }

    /// SCHED_RR tasks of one priority take turns (`task_tick_rt()`).
    fn tick_real_time(&mut self, here: CpuId, current: TaskId) {
        self.update_real_time_load(here);
        self.charge_real_time(current);
        let renewed = self.round_robin;
        let state = self.task_mut(current);
        if !state.round_robin {
            return;
        }
        state.rr_slice = state.rr_slice.saturating_sub(1);
        if state.rr_slice > 0 {
            return;
        }
        state.rr_slice = renewed;
        if self.cpu(here).realtime.has_equal(current) {
            self.cpu_mut(here).realtime.requeue(current);
            self.effects.request(here, Urgency::Now);
        }
    }

    /// The timer of a slice has expired on `cpu` (`hrtick()`): the same as a tick for what runs, and
    /// the CPU picks again.
    pub(super) fn slice_is_over(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).hrtick = None;
        let current = self.cpu(cpu).current.filter(|task| {
            let state = self.task(*task);
            state.runnable && state.class == Class::Fair
        });
        if let Some(current) = current {
            self.tick_fair(current);
            self.effects.request(cpu, Urgency::Now);
        }
    }

    /// `cpu` has a task more: a timer is to end the slice of the one that runs, unless one will
    /// (`hrtick_update()`).
    pub(super) fn begin_hrtick(&mut self, cpu: CpuId) {
        if self.cpu(cpu).hrtick.is_none() {
            self.plan_hrtick(cpu);
        }
    }

    /// When the slice of the running task is to be ended by a timer: when it has run up to its
    /// deadline, if it is not alone (`hrtick_start_fair()`), where those that are still queued in their
    /// sleep count. Groups above it are not asked.
    pub(super) fn plan_hrtick(&mut self, cpu: CpuId) {
        let there = self.cpu(cpu);
        let queued = self.queues[there.root].runnable + there.delayed;
        if !self.rules.hrtick || queued <= 1 {
            return;
        }
        let Some(current) = self.cpu(cpu).current else {
            return;
        };
        if self.task(current).class != Class::Fair {
            return;
        }
        let entity = self.entity_of(current);
        let (state, weight) = (&self.entities[entity], self.virtual_weight(entity));
        let left = i128::from(state.deadline - state.vruntime) * i128::from(weight);
        let left = (left >> 20) as i64;
        self.timers.push((cpu, left.max(SHORTEST_HRTICK)));
    }

    /// `yield_task_fair()` and `yield_task_rt()`. The CPU picks again in any case.
    pub(super) fn yields(&mut self, task: TaskId) {
        let state = self.task(task);
        let (entity, cpu, class) = (state.entity, state.cpu, state.class);
        if class == Class::RealTime {
            return self.cpu_mut(cpu).realtime.requeue(task);
        }
        if self.running(cpu) <= 1 {
            return;
        }
        self.clear_buddies(entity);
        self.charge(self.entities[entity].queue);
        if !self.rules.yield_forfeits {
            let slice = self.virtual_time(entity, self.entities[entity].slice);
            self.entities[entity].deadline += slice;
        } else if self.is_eligible(entity) {
            let state = &mut self.entities[entity];
            state.vruntime = state.deadline;
            self.renew_deadline(entity);
        }
    }
}
