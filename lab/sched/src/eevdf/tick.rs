//! The tick, the timer that ends slices, and `sched_yield`.

use warmq_classes::Overload;
use warmq_kernel::Context;
use warmq_units::{CpuId, Duration, TaskId};

use super::deadline::SLICE_TIMER;
use super::effects::Urgency;
use super::state::State;

/// The shortest that a slice's timer is armed for, in ns (`hrtick_start()`).
const SHORTEST_HRTICK: i64 = 10_000;
/// By how much a timer must be off to be armed again (`hrtick_needs_rearm()`).
const REARM: Duration = Duration::from_us(5);

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
            if self.task(current).class.is_urgent() {
                self.tick_urgent(here, current);
            } else {
                self.tick_fair(current);
                self.plan_scan(context, current);
                self.note_misfit(context, here, current);
            }
        }
        if !self.cpu(here).domains.is_empty() && self.is_due(here) {
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

    /// SCHED_RR tasks of one priority take turns (`task_tick_rt()`, `task_tick_dl()`).
    fn tick_urgent(&mut self, here: CpuId, current: TaskId) {
        self.update_urgent_load(here);
        self.charge_urgent(current);
        let slice = self.round_robin;
        let is_over = self.task_mut(current).class.tick(slice);
        if is_over && self.cpu(here).urgent.has_equal(current) {
            self.cpu_mut(here).urgent.requeue(current);
            self.effects.request(here, Urgency::Now);
        }
    }

    /// The timer of a slice has expired on `cpu` (`hrtick()`): the same as a tick for what runs,
    /// and the CPU picks again.
    pub(super) fn slice_is_over(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).hrtick = None;
        let current = self.cpu(cpu).current;
        match current.filter(|task| self.task(*task).runnable) {
            Some(current) if !self.task(current).class.is_urgent() => {
                self.tick_fair(current);
                self.effects.request(cpu, Urgency::Now);
            }
            Some(current) => self.runtime_is_over(cpu, current),
            None => {}
        }
    }

    /// `cpu` has a task more, which was not queued in its sleep: a timer is to end the slice of the
    /// one that runs, unless one is armed, for whomever (`hrtick_update()`).
    pub(super) fn begin_hrtick(&mut self, cpu: CpuId) {
        if self.cpu(cpu).hrtick.is_some() {
            return;
        }
        match self.left_of_slice(cpu) {
            Some(left) if left < 0 => self.effects.request(cpu, Urgency::Now),
            Some(left) => self.timers.push((cpu, left)),
            None => {}
        }
    }

    /// In how many ns of CPU time the slice of the running task is over, if a timer is to end it,
    /// as the task is not alone (`hrtick_start_fair()`). Those that are still queued in their sleep
    /// count; groups above it are not asked.
    pub(super) fn left_of_slice(&self, cpu: CpuId) -> Option<i64> {
        let there = self.cpu(cpu);
        let queued = self.queues[there.root].runnable + there.delayed;
        let current = there
            .current
            .filter(|current| !self.task(*current).class.is_urgent());
        let entity = self.entity_of(current.filter(|_| self.rules.hrtick && queued > 1)?);
        let (state, weight) = (&self.entities[entity], self.virtual_weight(entity));
        let left = i128::from(state.deadline - state.vruntime) * i128::from(weight);
        Some((left >> 20) as i64)
    }

    /// The same of any task that a timer is to stop.
    pub(super) fn left_of_turn(&self, cpu: CpuId) -> Option<i64> {
        self.left_of_slice(cpu)
            .or_else(|| self.left_of_runtime(cpu))
    }

    /// Lets the timer of `cpu` expire in `span` ns. One that would expire hardly earlier or later
    /// stays (`hrtick_needs_rearm()`).
    pub(super) fn arm_hrtick(&mut self, context: &mut Context<'_>, cpu: CpuId, span: i64) {
        let at = context.now() + Duration::from_ns(span.max(SHORTEST_HRTICK) as u64);
        if let Some((timer, due)) = self.cpu(cpu).hrtick {
            let apart = at.max(due) - at.min(due);
            if apart <= REARM {
                return;
            }
            context.cancel_timer(timer);
        }
        self.cpu_mut(cpu).hrtick = Some((context.arm_timer(cpu, at, SLICE_TIMER), at));
        context.compute(self.hrtick_cost);
    }

    /// This CPU has switched to `next` (`hrtick_schedule_exit()`). Its slice begins now; if it
    /// needs no timer, that of its predecessor stays armed. An idle CPU needs none.
    pub(super) fn switched(&mut self, context: &mut Context<'_>, next: Option<TaskId>) {
        let here = context.cpu();
        if let Some(slice) = self.cpu_mut(here).hrtick_after_switch.take() {
            self.arm_hrtick(context, here, slice);
        } else if next.is_none()
            && let Some((timer, _)) = self.cpu_mut(here).hrtick.take()
        {
            context.cancel_timer(timer);
        }
        if next.is_some_and(|task| self.task(task).class.is_urgent()) {
            self.push_urgent(context, here);
        }
    }

    /// `yield_task_fair()`, `yield_task_rt()` and `yield_task_dl()`. The CPU picks again in any
    /// case. Returns whether the task was charged for that.
    pub(super) fn yields(&mut self, task: TaskId) -> bool {
        let state = self.task(task);
        let (entity, cpu, is_urgent) = (state.entity, state.cpu, state.class.is_urgent());
        if self.task_mut(task).class.yields() {
            self.charge_urgent(task);
            return true;
        }
        if is_urgent {
            self.cpu_mut(cpu).urgent.requeue(task);
            return false;
        }
        if self.running(cpu) <= 1 {
            return false;
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
        true
    }
}
