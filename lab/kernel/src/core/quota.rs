//! Who is charged for CPU time of groups with a quota, and who is out of it.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::core::Core;
use crate::core::groups::{Bandwidth, Handing};
use crate::core::time::TimerOwner;
use crate::words::{GroupId, Limits, Policy, Throttling};

impl Core {
    /// Gives `group` limits for the first time.
    pub(crate) fn set_bandwidth(&mut self, group: GroupId, limits: Limits) {
        self.record_limit(group, limits);
        if self.settings.throttling == Throttling::Scheduler {
            return self.groups.set_limits(group, Some(limits));
        }
        (self.bandwidth, self.holds) = (true, true);
        let handing = match self.settings.throttling {
            Throttling::Pool | Throttling::Scheduler => Handing::Whole,
            Throttling::Groups | Throttling::Tasks => {
                Handing::Slices(self.settings.bandwidth_slice)
            }
        };
        let begins = (self.first_period(group, limits.period), self.now());
        let mut bandwidth = Bandwidth::new(limits, handing, self.cpus.len(), begins);
        for cpu in self.cpu_ids() {
            bandwidth.set_tasks(cpu, self.tasks_queued(group, cpu));
        }
        self.groups.set_bandwidth(group, bandwidth);
        if !self.recorder.wants_details() {
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

    /// Whether any group ever had a quota.
    #[inline]
    pub(crate) fn has_bandwidth(&self) -> bool {
        self.bandwidth
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
    pub(crate) fn limits_of(&self, task: TaskId) -> Vec<GroupId> {
        match self.bandwidth && self.is_limited(task) {
            true => self.groups.limited(self.task(task).group),
            false => Vec::new(),
        }
    }

    /// Changes the bandwidth of `group`, and arms its timers on `cpu` where it asks for that.
    pub(crate) fn with_bandwidth<R>(
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

    /// Charges what the current task of `cpu` has run since the last charge to those of its groups
    /// that `concerns` names. True if one of them is throttled now and was not.
    pub(crate) fn charge_groups(
        &mut self,
        cpu: CpuId,
        concerns: impl Fn(&Core, GroupId) -> bool,
    ) -> bool {
        let Some(current) = self.cpu(cpu).current else {
            return false;
        };
        let mut throttled = false;
        for group in self.limits_of(current) {
            if concerns(self, group) {
                let charge = |bandwidth: &mut Bandwidth, now| bandwidth.charge(cpu, now);
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
            self.with_bandwidth(cpu, group, |bandwidth, now| bandwidth.begin(cpu, now));
        }
    }

    /// `task`, which is queued, is in the queues of its groups on its CPU from now on.
    pub(crate) fn join_queues(&mut self, task: TaskId) {
        self.each_queue_of(task, Bandwidth::join);
    }

    /// `task` is about to be queued on its CPU.
    pub(crate) fn check_queues(&mut self, task: TaskId) {
        self.each_queue_of(task, Bandwidth::check);
    }

    /// Calls `visit` for the bandwidth of each group of `task`, with the task's CPU and whether a
    /// task of the group runs there.
    fn each_queue_of(
        &mut self,
        task: TaskId,
        visit: impl Fn(&mut Bandwidth, CpuId, bool, Instant),
    ) {
        let cpu = self.task(task).queue;
        let current = self.cpu(cpu).current;
        let running = current.map_or(Vec::new(), |current| self.limits_of(current));
        for group in self.limits_of(task) {
            let runs = running.contains(&group);
            self.with_bandwidth(cpu, group, |quota, now| visit(quota, cpu, runs, now));
        }
    }

    /// `task` leaves the queues of its groups on its CPU.
    pub(crate) fn leave_queues(&mut self, task: TaskId) {
        let cpu = self.task(task).queue;
        for group in self.limits_of(task) {
            self.with_bandwidth(cpu, group, |bandwidth, now| bandwidth.leave(cpu, now));
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
    pub(crate) fn record_quota(&mut self, group: GroupId) {
        let Some(stat) = self.groups.bandwidth_mut(group).map(|quota| quota.stat()) else {
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

impl Core {
    /// Moves `task` to `group`; what it has run is charged to the group that it leaves.
    pub(crate) fn change_group(&mut self, task: TaskId, group: GroupId) {
        let on_cpu = self.task(task).on_cpu;
        let runs = on_cpu.filter(|cpu| self.cpu(*cpu).current == Some(task));
        if let Some(cpu) = runs {
            self.charge_bandwidth(cpu);
        }
        self.requeue(task, |core| core.task_mut(task).group = group);
        self.record_group(task);
        if let Some(cpu) = runs {
            self.begin_charges(cpu, task);
        }
    }
}
