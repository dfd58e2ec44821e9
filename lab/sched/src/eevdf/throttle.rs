//! Where kernels limit real-time tasks: what these ran, and the periods of all CPUs
//! ([`warmq_classes::Throttle`]).

use warmq_classes::Rank;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::state::State;

impl State {
    /// What they may have in a period, if that is less than all of it.
    fn rt_limit(&self) -> Option<i64> {
        let runtime = self.rules.rt_runtime;
        (1..self.rules.rt_period)
            .contains(&runtime)
            .then_some(runtime)
    }

    /// Whether `task` is a real-time one that must wait for the end of a period.
    pub(super) fn is_throttled(&self, task: TaskId) -> bool {
        let state = self.task(task);
        matches!(state.class.rank(), Rank::RealTime(_)) && self.cpu(state.cpu).throttle.holds()
    }

    /// A real-time or deadline task ran on its CPU for `ran` ns (`update_curr_rt()`,
    /// `update_curr_dl()`, `sched_rt_bandwidth_account()`).
    pub(super) fn limit_urgent(&mut self, task: TaskId, ran: i64) {
        let Some(limit) = self.rt_limit() else {
            return;
        };
        let state = self.task(task);
        let (cpu, is_real_time) = (state.cpu, matches!(state.class.rank(), Rank::RealTime(_)));
        let goes_on = self.period_ends.is_some();
        let throttle = &mut self.cpu_mut(cpu).throttle;
        if is_real_time || goes_on || throttle.ran() < limit {
            throttle.add(ran);
        }
        if is_real_time && throttle.exceeds(limit) {
            self.effects.request(cpu, Urgency::Now);
        }
    }

    /// `task` was queued: a period begins now, unless one goes on or nothing is limited
    /// (`start_rt_bandwidth()`).
    pub(super) fn begin_period(&mut self, task: TaskId) {
        let state = self.task(task);
        if matches!(state.class.rank(), Rank::RealTime(_)) && self.period_ends.is_none() {
            self.end_period(self.cpu(state.cpu).clock);
        }
    }

    /// A period ends at `now`, and another one begins if real-time tasks have run or want to
    /// (`do_sched_rt_period_timer()`).
    pub(super) fn end_period(&mut self, now: i64) {
        let Some(limit) = self.rt_limit() else {
            return;
        };
        let mut goes_on = false;
        for cpu in (0..self.cpus.len() as u16).map(CpuId) {
            let there = self.cpu_mut(cpu);
            let (released, waits) = (there.throttle.refill(limit), there.urgent.real_time() > 0);
            goes_on |= waits || there.throttle.ran() > 0;
            if released && waits {
                self.effects.request(cpu, Urgency::Now);
            }
        }
        self.period_ends = goes_on.then_some(now + self.rules.rt_period);
    }
}
