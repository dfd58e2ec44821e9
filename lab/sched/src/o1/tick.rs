//! The tick: slices, expiration and the starvation clock (`scheduler_tick()`).

use warmq_kernel::{Context, Policy};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::release::Release;
use super::rules::{Expired, Follows, static_priority};
use super::statistics::{EXPIRATIONS, PRIORITY, REINSERTIONS, SLICES_USED_UP};

impl O1 {
    /// A jiffy of the slice of `running` is over.
    pub(super) fn charge_tick(&mut self, context: &mut Context<'_>, running: TaskId) {
        let here = context.cpu();
        let state = self.task(running);
        context.touch(state.slice_line(), Access::Write);
        if state.array != Some(self.queue(here).active) || state.cpu != here {
            // It has expired, or yielded, and is still here; or it sleeps, and leaves anyway.
            if state.array.is_some() {
                context.reschedule(here);
            }
            return;
        }
        match state.policy {
            Policy::Fifo(_) => {}
            Policy::RoundRobin(_) => self.charge_round_robin(context, running),
            Policy::Other | Policy::Batch | Policy::Idle | Policy::Deadline(_) => {
                self.charge_slice(context, running)
            }
        }
    }

    fn charge_round_robin(&mut self, context: &mut Context<'_>, running: TaskId) {
        if self.uses_up(running) {
            self.renew(running);
            context.reschedule(context.cpu());
            self.requeue(context, running);
        }
    }

    /// Takes a jiffy off the slice of `task`. True if that was the last.
    fn uses_up(&mut self, task: TaskId) -> bool {
        let state = self.task_mut(task);
        state.slice = state.slice.saturating_sub(1);
        state.slice == 0
    }

    /// Gives `task` a full slice.
    fn renew(&mut self, task: TaskId) {
        let full = self.rules.slice(self.task(task).nice);
        let state = self.task_mut(task);
        state.slice = full;
        state.first_slice = false;
    }

    fn charge_slice(&mut self, context: &mut Context<'_>, running: TaskId) {
        if self.uses_up(running) {
            self.expire(context, running);
        } else if self.goes_behind_equals(context, running) {
            self.go_behind_equals(context, running);
            context.reschedule(context.cpu());
        }
    }

    /// Puts `running` at the end of its list. In 2.6.4 its priority is computed again first.
    fn go_behind_equals(&mut self, context: &mut Context<'_>, running: TaskId) {
        if self.rules.release == Release::V2_6_16 {
            return self.requeue(context, running);
        }
        if let Some(array) = self.remove(context, running) {
            let priority = self.task(running).effective_priority(&self.rules);
            self.task_mut(running).priority = priority;
            context.statistic(PRIORITY, running, priority as u64);
            self.add_last(context, running, array);
        }
    }

    /// Whether an interactive task has used up another part of its slice, after which the others
    /// of its list have their turn.
    fn goes_behind_equals(&self, context: &Context<'_>, running: TaskId) -> bool {
        let state = self.task(running);
        if !self.rules.is_interactive(state.nice, state.priority) {
            return false;
        }
        let mut cpus = (0..context.cpus()).map(CpuId);
        let online = cpus.by_ref().filter(|cpu| context.is_online(*cpu)).count();
        let granularity = self
            .rules
            .granularity(state.sleep_avg, online.max(1) as u64);
        let full = self.rules.slice(state.nice);
        self.rules.requeues(full, state.slice, granularity)
    }

    /// The slice of `running` is used up: it gets a new one and goes to the end of its list, in the
    /// expired array unless it is interactive and nobody starves there.
    fn expire(&mut self, context: &mut Context<'_>, running: TaskId) {
        let (here, rules) = (context.cpu(), self.rules);
        self.remove(context, running);
        context.reschedule(here);
        let state = self.task_mut(running);
        state.priority = state.effective_priority(&rules);
        context.statistic(PRIORITY, running, state.priority as u64);
        context.statistic(SLICES_USED_UP, running, 1);
        self.renew(running);
        if self.options.starvation_clock == Follows::Source {
            self.start_starvation_clock(context);
        }
        let state = self.task(running);
        let interactive = rules.is_interactive(state.nice, state.priority);
        if interactive && !self.starves(context, running) {
            context.statistic(REINSERTIONS, running, 1);
            self.add_active(context, running);
            return;
        }
        context.statistic(EXPIRATIONS, running, 1);
        self.start_starvation_clock(context);
        let expired = self.queue(here).expired();
        self.add_last(context, running, expired);
        let fixed = static_priority(self.task(running).nice);
        let queue = self.queue_mut(here);
        queue.best_expired = queue.best_expired.min(fixed);
    }

    fn start_starvation_clock(&mut self, context: &Context<'_>) {
        let jiffies = self.clock.jiffies(context.now());
        let queue = self.queue_mut(context.cpu());
        queue.expired_since = queue.expired_since.or(Some(jiffies));
    }

    /// Whether tasks of the expired array starve beside `running`, which is in no list now
    /// (`EXPIRED_STARVING`).
    fn starves(&self, context: &Context<'_>, running: TaskId) -> bool {
        let queue = self.queue(context.cpu());
        let jiffies = self.clock.jiffies(context.now());
        let waited = queue
            .expired_since
            .map(|since| jiffies.saturating_sub(since));
        self.rules.starves(&Expired {
            waited,
            // `nr_running` counts the running task also while it is in no list.
            runnable: queue.running() as u64 + 1,
            running: static_priority(self.task(running).nice),
            best: queue.best_expired,
        })
    }

    /// `sched_yield()`: `task` goes to the expired array; a real-time task to the end of its list.
    pub(super) fn expire_yielding(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.task(task);
        let target = match state.is_real_time() {
            true => self.queue(state.cpu).active,
            false => self.queue(state.cpu).expired(),
        };
        if self.remove(context, task).is_some() {
            self.add_last(context, task, target);
        }
    }
}
