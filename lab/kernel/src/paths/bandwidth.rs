//! CPU bandwidth control: a group has so much CPU time in each period (`cpu.max`).
//!
//! ```text
//!     at a charge      remaining -= time that a task of the group ran here since the last charge
//!                      remaining <= 0: takes what it lacks and a slice from the pool;
//!                                      if that has nothing, the queue is throttled
//!     idle             the queue returns all but 1 ms to the pool; where others wait for it, the
//!                      slack timer hands that out after 5 ms
//!     at a refill      pool = min(pool + quota, quota + burst); throttled queues are given what they
//!                      lack and 1 ns, in the order in which they were throttled
//!
//!     remaining := of the group's queue on one CPU
//! ```
//!
//! A group may thus be throttled on one CPU while it has time left on another one, and a period's
//! quota may not be used though a task waits for it. Each of the groups that a task is in is
//! charged. Charges are made where `update_curr()` makes them: at the tick, at switches, and when a
//! task of the same group is woken on that CPU; so each CPU may overrun the quota by a tick, which
//! is paid back. Real-time tasks and threads of the kernel are neither charged nor throttled.
//!
//! Who has no such queues ([`Throttling::Pool`]) lets all CPUs draw from the pool directly. When
//! the periods of a group begin may be drawn (`Settings::staggered_periods`).
//!
//! Not modelled: that slices expire with their period, as before Linux 5.4; that 7.3 takes 1 ns
//! instead of a slice for a queue in which nobody runs; that the unthrottling of another CPU's
//! queue takes an interrupt there; periods that the kernel prolongs since they are too short for
//! it.

use std::cmp::Reverse;

use warmq_units::{CpuId, Duration, TaskId};

use crate::core::{Bandwidth, Core, NeedResched};
use crate::paths::{Flow, System};
use crate::words::{GroupId, Limits, Step, Throttling, Waiting};

/// The period of a group that gets a quota and has no period (`cpu.max`).
const DEFAULT_PERIOD: Duration = Duration::from_ms(100);

/// Of a group of which nothing was set yet.
const NO_LIMITS: Limits = Limits {
    quota: Duration::ZERO,
    period: DEFAULT_PERIOD,
    burst: Duration::ZERO,
};

impl System {
    /// The tick of `cpu` charges the current task's groups, which may have nothing left.
    pub(crate) fn tick_bandwidth(&mut self, cpu: CpuId) {
        self.core.charge_bandwidth(cpu);
        let current = self.core.cpu(cpu).current;
        if current.is_some_and(|current| self.core.held_by(current).is_some()) {
            self.throttled_current(cpu, cpu);
        }
    }

    /// `cpu` wakes `task` on `target`, whose current task is charged to the groups that both are
    /// in: the enqueue calls `update_curr()` for their queues. Returns how long that takes.
    pub(crate) fn charge_before_enqueue(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        target: CpuId,
    ) -> Duration {
        let charges = self.core.has_bandwidth()
            && self.core.settings.throttling != Throttling::Pool
            && self.core.is_limited(task);
        let own = self.core.task(task).group;
        let both = |core: &Core, group| core.groups.is_within(own, group);
        match charges && self.core.charge_groups(target, both) {
            true => self.throttled_current(cpu, target),
            false => Duration::ZERO,
        }
    }

    /// A group of the current task of `there` is out of quota there, as `cpu` found out. Returns
    /// how long it takes to let it know.
    fn throttled_current(&mut self, cpu: CpuId, there: CpuId) -> Duration {
        if self.core.settings.throttling == Throttling::Groups {
            self.core.cpu(there).need_resched = NeedResched::Now;
        }
        let current = self.core.cpu(there).current;
        current.map_or(Duration::ZERO, |current| self.notify(cpu, current))
    }

    /// `schedule()` charges the current task, and may find that its groups have nothing left.
    /// Before Linux 6.18 it leaves then, also within the kernel (`check_cfs_rq_runtime()` in
    /// `put_prev_entity()`).
    pub(crate) fn charge_at_pick(&mut self, cpu: CpuId) {
        let throttling = self.core.settings.throttling;
        if !self.core.has_bandwidth() || throttling == Throttling::Pool {
            return;
        }
        if self.core.charge_bandwidth(cpu) {
            self.core.cpu(cpu).has_work = true;
        }
        let Some(current) = self.core.cpu(cpu).current else {
            return;
        };
        let groups = throttling == Throttling::Groups;
        let runnable = self.core.task(current).is_runnable();
        if groups && runnable && self.core.held_by(current) == Some(Waiting::Quota) {
            self.core.hold_back(current, Waiting::Quota);
            self.core.record_block(cpu, current, Waiting::Quota);
        }
    }

    /// A period of `group` is over.
    pub(crate) fn refill(&mut self, cpu: CpuId, group: GroupId) -> Flow {
        let running = self.core.groups.bandwidth_mut(group);
        let running = running.map(|running| running.charged_at_refill());
        for running in running.unwrap_or_default() {
            self.core.charge_bandwidth(running);
        }
        let freed = self.core.with_bandwidth(cpu, group, Bandwidth::refill);
        self.core.record_quota(group);
        self.unthrottled(cpu, group, &freed.unwrap_or_default())
    }

    /// Queues of `group` have returned time to the pool.
    pub(crate) fn hand_out_slack(&mut self, cpu: CpuId, group: GroupId) -> Flow {
        let freed = self.core.with_bandwidth(cpu, group, Bandwidth::slack_over);
        self.unthrottled(cpu, group, &freed.unwrap_or_default())
    }

    /// The queues `freed` of `group` are not throttled any more. Who waits there goes on: who left
    /// last is first (`tg_unthrottle_up()` of 6.18).
    fn unthrottled(&mut self, cpu: CpuId, group: GroupId, freed: &[usize]) -> Flow {
        let Some(bandwidth) = self.core.groups.bandwidth_mut(group).cloned() else {
            return Flow::Next;
        };
        let turn = |task: &TaskId| {
            let on = self.core.task(*task).queue;
            freed
                .iter()
                .position(|place| bandwidth.shares_queue(on, *place))
        };
        let mut waiting = self.core.members(group);
        waiting.retain(|task| turn(task).is_some());
        waiting.sort_by_key(|task| (turn(task), Reverse(self.core.task(*task).held_back)));
        match waiting.is_empty() {
            true => Flow::Next,
            false => self.reconsider(cpu, waiting),
        }
    }

    /// Changes the limits of `group`.
    pub(crate) fn set_limits(
        &mut self,
        cpu: CpuId,
        group: GroupId,
        change: impl FnOnce(Limits) -> Limits,
    ) -> Flow {
        if self.core.settings.throttling == Throttling::Scheduler {
            let limits = self.core.groups.get(group).limits.unwrap_or(NO_LIMITS);
            let limits = change(limits);
            self.core.record_limit(group, limits);
            self.core.groups.set_limits(group, Some(limits));
            self.core.cpu(cpu).stack.push(Step::SetGroupWeight(group));
            return Flow::Next;
        }
        for cpu in self.core.cpu_ids() {
            self.core.charge_bandwidth(cpu);
        }
        match self.core.groups.bandwidth_mut(group) {
            Some(bandwidth) => {
                let limits = change(bandwidth.limits());
                self.core.record_limit(group, limits);
                let set = |bandwidth: &mut Bandwidth, now| bandwidth.set_limits(limits, now);
                self.core.with_bandwidth(cpu, group, set);
            }
            None => {
                self.core.set_bandwidth(group, change(NO_LIMITS));
                self.begin_charges_within(group);
            }
        }
        self.reconsider_group(cpu, group)
    }

    /// `group` has a quota from now on, and its running tasks use it.
    fn begin_charges_within(&mut self, group: GroupId) {
        for cpu in self.core.cpu_ids() {
            let current = self.core.cpu(cpu).current;
            let within = |task: &TaskId| self.core.limits_of(*task).contains(&group);
            if current.filter(within).is_some() {
                self.core
                    .with_bandwidth(cpu, group, |bandwidth, now| bandwidth.begin(cpu, now));
            }
        }
    }

    /// `target` went offline: no queue stays throttled there.
    pub(crate) fn unthrottle_offline(&mut self, cpu: CpuId, target: CpuId) {
        if !self.core.has_bandwidth() {
            return;
        }
        for group in self.core.groups.all_limited() {
            self.core
                .with_bandwidth(cpu, group, |bandwidth, now| bandwidth.offline(target, now));
        }
        let waiting = (0..self.core.tasks.len() as u32).map(TaskId);
        let there = |task: &TaskId| {
            let task = self.core.task(*task);
            task.held_back.is_some() && task.queue == target
        };
        let waiting: Vec<TaskId> = waiting.filter(there).collect();
        self.reconsider(cpu, waiting);
    }
}
