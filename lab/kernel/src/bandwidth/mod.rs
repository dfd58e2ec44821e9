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
//! quota may not be used though a task waits for it. Each of the groups that a task is in is charged.
//! Charges are made where `update_curr()` makes them: at the tick, at switches, and when a task of
//! the same group is woken on that CPU; so each CPU may overrun the quota by a tick, which is paid back.
//! Real-time tasks and threads of the kernel are neither charged nor throttled.
//!
//! Who has no such queues ([`Throttling::Pool`]) lets all CPUs draw from the pool directly. When the
//! periods of a group begin may be drawn (`Settings::staggered_periods`).
//!
//! Not modelled: that slices expire with their period, as before Linux 5.4; that 7.3 takes 1 ns instead of a
//! slice for a queue in which nobody runs; that the unthrottling of another CPU's queue takes an
//! interrupt there; periods that the kernel prolongs since they are too short for it.

mod pool;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::core::Core;
use crate::cpu::NeedResched;
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::timer::TimerOwner;
use crate::words::ending::Waiting;
use crate::words::group::{GroupId, Limits};
use crate::words::settings::Throttling;
use crate::words::spec::Policy;

pub(crate) use self::pool::{Bandwidth, Handing};

/// The period of a group that gets a quota and has no period (`cpu.max`).
const DEFAULT_PERIOD: Duration = Duration::from_ms(100);

/// What a queue without tasks keeps (`min_cfs_rq_runtime`).
const MIN_LOCAL: Duration = Duration::from_ms(1);

/// How long returned time gathers before it is handed out (`cfs_bandwidth_slack_period`).
const SLACK_PERIOD: Duration = Duration::from_ms(5);

/// What must be left until the refill for that to be worth it (`min_bandwidth_expiration`).
const MIN_REFRESH: Duration = Duration::from_ms(2);

impl Core {
    /// Gives `group` limits for the first time.
    pub(crate) fn set_bandwidth(&mut self, group: GroupId, limits: Limits) {
        (self.bandwidth, self.holds) = (true, true);
        let handing = match self.settings.throttling {
            Throttling::Pool => Handing::Whole,
            Throttling::Groups | Throttling::Tasks => {
                Handing::Slices(self.settings.bandwidth_slice)
            }
        };
        let begins = (self.first_period(group, limits.period), self.now());
        let mut bandwidth = Bandwidth::new(limits, handing, self.cpus.len(), begins);
        for index in 0..self.cpus.len() {
            let cpu = CpuId(index as u16);
            bandwidth.set_tasks(cpu, self.tasks_queued(group, cpu));
        }
        self.groups.set_bandwidth(group, bandwidth);
        if !self.detail {
            // Its name is needed by whoever gets what is counted of it.
            self.record(self.cgroup(group));
        }
    }

    fn first_period(&self, group: GroupId, period: Duration) -> Instant {
        let name = format!("periods of {}", group.0);
        Instant(match self.settings.staggered_periods {
            true => self.settings.seed.stream(&name).below(period.0.max(1)),
            false => 0,
        })
    }

    fn tasks_queued(&self, group: GroupId, cpu: CpuId) -> u32 {
        let queued = (0..self.tasks.len() as u32).map(TaskId).filter(|task| {
            let task = self.task(*task);
            task.queued && task.queue == cpu && self.groups.is_within(task.group, group)
        });
        queued.filter(|task| self.is_limited(*task)).count() as u32
    }

    /// Whether quotas of its groups concern `task`.
    pub(crate) fn is_limited(&self, task: TaskId) -> bool {
        let task = self.task(task);
        let fair = matches!(task.policy, Policy::Other | Policy::Batch | Policy::Idle);
        fair && !task.kernel_thread
    }

    /// Whether a group that `task` is in, or would be in, is out of quota on `cpu`.
    pub(crate) fn is_throttled(&self, task: TaskId, cpu: CpuId) -> bool {
        self.bandwidth
            && self.is_limited(task)
            && self.groups.is_throttled(self.task(task).group, cpu)
    }

    /// The groups with a quota that `task` is in, the innermost first.
    fn limits_of(&self, task: TaskId) -> Vec<GroupId> {
        match self.bandwidth && self.is_limited(task) {
            true => self.groups.limited(self.task(task).group),
            false => Vec::new(),
        }
    }

    /// Changes the bandwidth of `group`, and arms its timers on `cpu` where it asks for that.
    fn with_bandwidth<R>(
        &mut self,
        cpu: CpuId,
        group: GroupId,
        change: impl FnOnce(&mut Bandwidth, Instant) -> R,
    ) -> Option<R> {
        let now = self.now();
        let bandwidth = self.groups.bandwidth_mut(group)?;
        let result = change(bandwidth, now);
        let [refill, slack] = bandwidth.take_unarmed();
        for (at, owner) in [
            (refill, TimerOwner::Refill(group)),
            (slack, TimerOwner::Slack(group)),
        ] {
            if let Some(at) = at {
                self.arm_timer(cpu, at, owner);
            }
        }
        Some(result)
    }

    /// Charges what the current task of `cpu` has run since the last charge to those of its groups that
    /// `concerns` names. True if one of them is throttled now and was not.
    fn charge_groups(&mut self, cpu: CpuId, concerns: impl Fn(&Core, GroupId) -> bool) -> bool {
        let Some(current) = self.cpu(cpu).current else {
            return false;
        };
        let mut throttled = false;
        for group in self.limits_of(current) {
            if concerns(self, group) {
                let charge = |it: &mut Bandwidth, now| it.charge(cpu, now);
                throttled |= self.with_bandwidth(cpu, group, charge) == Some(true);
            }
        }
        throttled
    }

    /// The same for all of its groups.
    pub(crate) fn charge_bandwidth(&mut self, cpu: CpuId) -> bool {
        self.charge_groups(cpu, |_, _| true)
    }

    /// `task` runs on `cpu` from now on.
    pub(crate) fn begin_charges(&mut self, cpu: CpuId, task: TaskId) {
        for group in self.limits_of(task) {
            self.with_bandwidth(cpu, group, |it, now| it.begin(cpu, now));
        }
    }

    /// `task`, which is queued, is in the queues of its groups on its CPU from now on.
    pub(crate) fn join_queues(&mut self, task: TaskId) {
        self.each_queue_of(task, |it, (cpu, runs), now| it.join(cpu, runs, now));
    }

    /// `task` is about to be queued on its CPU.
    pub(crate) fn check_queues(&mut self, task: TaskId) {
        self.each_queue_of(task, |it, (cpu, runs), now| it.check(cpu, runs, now));
    }

    /// Calls `visit` for the bandwidth of each group of `task`, with the task's CPU and whether a task of the group
    /// runs there.
    fn each_queue_of(
        &mut self,
        task: TaskId,
        visit: impl Fn(&mut Bandwidth, (CpuId, bool), Instant),
    ) {
        let cpu = self.task(task).queue;
        let current = self.cpu(cpu).current;
        let running = current.map_or(Vec::new(), |current| self.limits_of(current));
        for group in self.limits_of(task) {
            let on = (cpu, running.contains(&group));
            self.with_bandwidth(cpu, group, |it, now| visit(it, on, now));
        }
    }

    /// `task` leaves the queues of its groups on its CPU.
    pub(crate) fn leave_queues(&mut self, task: TaskId) {
        let cpu = self.task(task).queue;
        for group in self.limits_of(task) {
            self.with_bandwidth(cpu, group, |it, now| it.leave(cpu, now));
        }
    }

    /// Changes something of `task` by which it is in other queues of groups.
    pub(crate) fn requeue(&mut self, task: TaskId, change: impl FnOnce(&mut Core)) {
        let counts = self.bandwidth && self.task(task).queued;
        if counts {
            self.leave_queues(task);
        }
        change(self);
        if counts {
            self.join_queues(task);
        }
    }

    /// `task` belongs to the queue of `cpu` from now on.
    pub(crate) fn set_queue(&mut self, task: TaskId, cpu: CpuId) {
        if self.task(task).queue != cpu {
            self.requeue(task, |core| core.task_mut(task).queue = cpu);
        }
    }

    /// `task` waits for the end of a throttling of its queue.
    pub(crate) fn waits_for_quota(&mut self, task: TaskId) {
        let (cpu, now) = (self.task(task).queue, self.now());
        for group in self.limits_of(task) {
            if let Some(bandwidth) = self.groups.bandwidth_mut(group) {
                bandwidth.waits(cpu, now);
            }
        }
    }

    /// Records what `cpu.stat` of `group` says now.
    fn record_quota(&mut self, group: GroupId) {
        let Some(stat) = self.groups.bandwidth_mut(group).map(|it| it.stat()) else {
            return;
        };
        self.record(Record::Quota {
            group: group.0,
            periods: stat.periods,
            throttled: stat.throttled,
            span: stat.span,
        });
    }
}

impl Engine {
    /// The tick of `cpu` charges the current task's groups, which may have nothing left.
    pub(crate) fn tick_bandwidth(&mut self, cpu: CpuId) {
        self.core.charge_bandwidth(cpu);
        let current = self.core.cpu(cpu).current;
        if current.is_some_and(|current| self.core.held_by(current).is_some()) {
            self.throttled_current(cpu, cpu);
        }
    }

    /// `cpu` wakes `task` on `target`, whose current task is charged to the groups that both are in: the
    /// enqueue calls `update_curr()` for their queues. Returns how long that takes.
    pub(crate) fn charge_before_enqueue(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        target: CpuId,
    ) -> Duration {
        let charges = self.core.bandwidth
            && self.core.settings.throttling != Throttling::Pool
            && self.core.is_limited(task);
        let own = self.core.task(task).group;
        let both = |core: &Core, group| core.groups.is_within(own, group);
        match charges && self.core.charge_groups(target, both) {
            true => self.throttled_current(cpu, target),
            false => Duration::ZERO,
        }
    }

    /// A group of the current task of `there` is out of quota there, as `cpu` found out. Returns how long it takes
    /// to let it know.
    fn throttled_current(&mut self, cpu: CpuId, there: CpuId) -> Duration {
        if self.core.settings.throttling == Throttling::Groups {
            self.core.cpu(there).need_resched = NeedResched::Now;
        }
        let current = self.core.cpu(there).current;
        current.map_or(Duration::ZERO, |current| self.notify(cpu, current))
    }

    /// `schedule()` charges the current task, and may find that its groups have nothing left. Before Linux 6.18
    /// it leaves then, also within the kernel (`check_cfs_rq_runtime()` in `put_prev_entity()`).
    pub(crate) fn charge_at_pick(&mut self, cpu: CpuId) {
        let throttling = self.core.settings.throttling;
        if !self.core.bandwidth || throttling == Throttling::Pool {
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
        let running = running.map(|it| it.charged_at_refill());
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

    /// The queues `freed` of `group` are not throttled any more. Who waits there goes on: who left last is first
    /// (`tg_unthrottle_up()` of 6.18).
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
        for index in 0..self.core.cpus.len() {
            self.core.charge_bandwidth(CpuId(index as u16));
        }
        let known = self.core.groups.bandwidth_mut(group).map(|it| it.limits());
        match known {
            Some(known) => {
                let limits = change(known);
                let set = |it: &mut Bandwidth, now| it.set_limits(limits, now);
                self.core.with_bandwidth(cpu, group, set);
            }
            None => {
                let none = Limits {
                    quota: Duration::ZERO,
                    period: DEFAULT_PERIOD,
                    burst: Duration::ZERO,
                };
                self.core.set_bandwidth(group, change(none));
                self.begin_charges_within(group);
            }
        }
        self.reconsider_group(cpu, group)
    }

    /// `group` has a quota from now on, and its running tasks use it.
    fn begin_charges_within(&mut self, group: GroupId) {
        for index in 0..self.core.cpus.len() {
            let cpu = CpuId(index as u16);
            let current = self.core.cpu(cpu).current;
            let within = |task: &TaskId| self.core.limits_of(*task).contains(&group);
            if current.filter(within).is_some() {
                self.core
                    .with_bandwidth(cpu, group, |it, now| it.begin(cpu, now));
            }
        }
    }

    /// `target` went offline: no queue stays throttled there.
    pub(crate) fn unthrottle_offline(&mut self, cpu: CpuId, target: CpuId) {
        if !self.core.bandwidth {
            return;
        }
        for group in self.core.groups.all_limited() {
            self.core
                .with_bandwidth(cpu, group, |it, now| it.offline(target, now));
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
