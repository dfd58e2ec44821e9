//! CPU bandwidth control: a group has so much CPU time in each period (`cpu.max`).
//!
//! ```text
//!     at a charge      left -= time that a task of the group ran since the last charge
//!                      left <= 0: the group is throttled
//!     at a refill      left = min(left, 0) + quota,  and not throttled if left > 0
//! ```
//!
//! Charges are made at the tick and at switches, as `update_curr()` makes them, so that each CPU may
//! overrun the quota by one tick; the next period pays that back. When the periods of a group begin
//! may be drawn (`Settings::staggered_periods`). Other than in Linux, all CPUs share one pool: none
//! keeps a slice of 5 ms for itself (`sched_cfs_bandwidth_slice`), and nothing is left there unused.

use std::cmp::Reverse;

use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::core::Core;
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::group::GroupId;
use crate::timer::TimerOwner;

/// The period of a group that gets a quota and has no period (`cpu.max`).
pub(crate) const DEFAULT_PERIOD: Duration = Duration::from_ms(100);

/// The bandwidth of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth {
    quota: Duration,
    period: Duration,
    /// When the first period begins.
    first: Instant,
    /// CPU time that is left in this period, in picoseconds; negative after an overrun.
    left: i64,
    pub(crate) throttled: bool,
    /// Whether the end of this period will be noticed.
    armed: bool,
}

impl Bandwidth {
    /// `quota` in each `period`, both more than zero, the first of which begins at `first`.
    fn new(quota: Duration, period: Duration, first: Instant) -> Bandwidth {
        let least = Duration(1);
        Bandwidth {
            quota: quota.max(least),
            period: period.max(least),
            first,
            left: signed(quota.max(least)),
            throttled: false,
            armed: false,
        }
    }

    /// The same with another quota, none of which is used yet.
    pub(crate) fn with_quota(self, quota: Duration) -> Bandwidth {
        Bandwidth {
            armed: self.armed,
            ..Bandwidth::new(quota, self.period, self.first)
        }
    }

    fn charge(&mut self, ran: Duration) {
        self.left = self.left.saturating_sub(signed(ran));
        self.throttled |= self.left <= 0;
    }

    fn refill(&mut self) {
        self.left = self.left.min(0).saturating_add(signed(self.quota));
        self.throttled = self.left <= 0;
    }

    /// When the period ends in which `now` is.
    fn ends(&self, now: Instant) -> Instant {
        match now.0.checked_sub(self.first.0) {
            Some(since) => {
                let periods = since / self.period.0 + 1;
                self.first + self.period * periods
            }
            None => self.first,
        }
    }
}

fn signed(span: Duration) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

impl Core {
    /// Gives `group` so much CPU time in each period.
    pub(crate) fn set_bandwidth(&mut self, group: GroupId, quota: Duration, period: Duration) {
        (self.bandwidth, self.holds) = (true, true);
        let bandwidth = self.new_bandwidth(group, quota, period);
        self.groups.set_bandwidth(group, bandwidth);
    }

    fn new_bandwidth(&self, group: GroupId, quota: Duration, period: Duration) -> Bandwidth {
        let first = match self.settings.staggered_periods {
            true => {
                let name = format!("periods of {}", group.0);
                self.settings.seed.stream(&name).below(period.0)
            }
            false => 0,
        };
        Bandwidth::new(quota, period, Instant(first))
    }

    /// Charges what the current task of `cpu` has run since the last charge to its groups.
    pub(crate) fn charge_bandwidth(&mut self, cpu: CpuId) {
        if !self.bandwidth {
            return;
        }
        let now = self.now();
        let here = self.cpu(cpu);
        let ran = now - std::mem::replace(&mut here.charged_until, now);
        let Some(current) = here.current else {
            return;
        };
        let task = self.task(current);
        if !task.kernel_thread {
            let group = task.group;
            self.groups
                .each_bandwidth(group, |_, bandwidth| bandwidth.charge(ran));
        }
    }

    /// `task` runs on `cpu` from now on: sees to it that its groups' periods end.
    pub(crate) fn arm_refills(&mut self, cpu: CpuId, task: TaskId) {
        if !self.bandwidth || self.task(task).kernel_thread {
            return;
        }
        let (group, now) = (self.task(task).group, self.now());
        let mut ends = Vec::new();
        self.groups.each_bandwidth(group, |group, bandwidth| {
            if !std::mem::replace(&mut bandwidth.armed, true) {
                ends.push((group, bandwidth.ends(now)));
            }
        });
        for (group, at) in ends {
            self.arm_timer(cpu, at, TimerOwner::Refill(group));
        }
    }

    /// Whether a task in `group`, or in a group in it, runs.
    fn runs_within(&self, group: GroupId) -> bool {
        let mut running = self.cpus.iter().filter_map(|cpu| cpu.current);
        running.any(|task| self.groups.is_within(self.task(task).group, group))
    }
}

impl Engine {
    /// The tick of `cpu` charges the current task's groups, which may have nothing left.
    pub(crate) fn tick_bandwidth(&mut self, cpu: CpuId) {
        if !self.core.bandwidth {
            return;
        }
        self.core.charge_bandwidth(cpu);
        let current = self.core.cpu(cpu).current;
        if current.is_some_and(|current| self.core.held_by(current).is_some()) {
            self.core.cpu(cpu).has_work = true;
        }
    }

    /// A period of `group` is over.
    pub(crate) fn refill(&mut self, cpu: CpuId, group: GroupId) -> Flow {
        for running in 0..self.core.cpus.len() {
            self.core.charge_bandwidth(CpuId(running as u16));
        }
        let (now, runs) = (self.core.now(), self.core.runs_within(group));
        let Some(bandwidth) = self.core.groups.bandwidth_mut(group) else {
            return Flow::Next;
        };
        let was_throttled = bandwidth.throttled;
        bandwidth.refill();
        bandwidth.armed = bandwidth.throttled || was_throttled || runs;
        let (armed, ends) = (bandwidth.armed, bandwidth.ends(now));
        if armed {
            self.core.arm_timer(cpu, ends, TimerOwner::Refill(group));
        }
        match was_throttled {
            true => {
                let mut members = self.core.members(group);
                // Who left last goes on first (`tg_unthrottle_up()` of 6.18).
                members.sort_by_key(|task| Reverse(self.core.task(*task).held_back));
                self.reconsider(cpu, members)
            }
            false => Flow::Next,
        }
    }

    /// Changes the quota of `group`.
    pub(crate) fn set_quota(&mut self, cpu: CpuId, group: GroupId, quota: Duration) -> Flow {
        let now = self.core.now();
        for index in 0..self.core.cpus.len() {
            let running = CpuId(index as u16);
            self.core.charge_bandwidth(running);
            self.core.cpu(running).charged_until = now;
        }
        (self.core.bandwidth, self.core.holds) = (true, true);
        let before = self.core.groups.bandwidth_mut(group);
        let before = before.copied();
        let bandwidth = match before {
            Some(before) => before.with_quota(quota),
            None => self.core.new_bandwidth(group, quota, DEFAULT_PERIOD),
        };
        self.core.groups.set_bandwidth(group, bandwidth);
        for index in 0..self.core.cpus.len() {
            let running = CpuId(index as u16);
            if let Some(current) = self.core.cpu(running).current {
                self.core.arm_refills(running, current);
            }
        }
        self.reconsider_group(cpu, group)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_period_ends_after_now_and_as_long_as_it_is_after_the_one_before(
            (period, first) in (1u64..1_000).prop_flat_map(|period| (Just(period), 0..period)),
            now in 0u64..10_000,
        ) {
            let it = Bandwidth::new(Duration(1), Duration(period), Instant(first));
            let ends = it.ends(Instant(now));
            prop_assert!(ends.0 > now && ends.0 <= now + period);
            prop_assert_eq!(ends.0 % period, first % period);
            prop_assert_eq!(it.ends(ends), ends + Duration(period));
        }
    }
}
