//! The bandwidth of one group: its pool, what each CPU's queue of it has taken from there, and what
//! `cpu.stat` counts. It knows no tasks and no timers: what it needs of them it is given, and it
//! says when its timers are to expire.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use warmq_units::{CpuId, Duration, Instant};

use crate::words::Limits;

/// What `cpu.stat` counts of a group since it has a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Periods at whose end the timer ran (`nr_periods`).
    pub(crate) periods: u64,
    /// Those at whose end a queue was throttled (`nr_throttled`).
    pub(crate) throttled: u64,
    /// For how long queues with tasks were throttled, summed over CPUs (`throttled_usec`).
    pub(crate) span: Duration,
}

/// A CPU's queue of the group (`struct cfs_rq`).
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// What it may run before it asks the pool again, in picoseconds; negative after an overrun
    /// (`runtime_remaining`).
    remaining: i64,
    /// Queued tasks in the group and in the groups in it.
    tasks: u32,
    throttled: bool,
    /// Since when a task waits for the end of that (`throttled_clock`).
    since: Option<Instant>,
}

/// How queues get their time from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Handing {
    /// All CPUs share one queue, which takes all of the pool and keeps nothing of it for the next
    /// period.
    #[default]
    Whole,
    /// Each CPU's queue takes so much at once (`sched_cfs_bandwidth_slice()`).
    Slices(Duration),
}

/// The bandwidth of a group (`struct cfs_bandwidth`).
///
/// Invariant: `throttled` names each throttled queue once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bandwidth {
    limits: Limits,
    handing: Handing,
    /// When the first period begins.
    first: Instant,

    // The pool.
    /// What no queue has taken, in picoseconds.
    runtime: i64,
    /// Whether no queue has taken anything since the last refill.
    idle: bool,
    /// When the period timer expires; `None` while it is stopped.
    refills: Option<Instant>,
    /// The same, where nobody armed it yet.
    unarmed: Option<Instant>,
    /// Whether the slack timer runs, and when it expires where nobody armed it yet.
    slack: bool,
    unarmed_slack: Option<Instant>,

    queues: Vec<Queue>,
    /// The places of throttled queues, the first to be unthrottled first (`throttled_cfs_rq`).
    throttled: VecDeque<usize>,
    /// By CPU: up to when its current task was charged.
    charged: Vec<Instant>,
    stat: Stat,
}

/// In picoseconds.
fn signed(span: Duration) -> i64 {
    i64::try_from(span.0).unwrap_or(i64::MAX)
}

/// The least that a queue needs to run: 1 ns.
const LEAST: i64 = 1_000;

impl Bandwidth {
    pub(crate) fn new(
        limits: Limits,
        handing: Handing,
        cpus: usize,
        (first, now): (Instant, Instant),
    ) -> Bandwidth {
        let limits = limits.at_least_something();
        let queues = match handing {
            Handing::Whole => 1,
            Handing::Slices(_) => cpus,
        };
        Bandwidth {
            limits,
            handing,
            first,
            runtime: signed(limits.quota),
            queues: vec![Queue::default(); queues],
            charged: vec![now; cpus],
            ..Bandwidth::default()
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn stat(&self) -> Stat {
        self.stat
    }

    /// When timers expire that are to be armed now: that of the period, that of slack.
    pub(crate) fn take_unarmed(&mut self) -> [Option<Instant>; 2] {
        [self.unarmed.take(), self.unarmed_slack.take()]
    }

    fn place(&self, cpu: CpuId) -> usize {
        match self.handing {
            Handing::Whole => 0,
            Handing::Slices(_) => cpu.index(),
        }
    }

    pub(crate) fn is_throttled(&self, cpu: CpuId) -> bool {
        self.queues[self.place(cpu)].throttled
    }

    /// Whether the end of the throttling of `other` concerns who waits on `cpu`.
    pub(crate) fn shares_queue(&self, cpu: CpuId, other: usize) -> bool {
        self.place(cpu) == other
    }

    pub(crate) fn has_slices(&self) -> bool {
        self.handing != Handing::Whole
    }

    /// The CPUs whose current tasks are charged before a refill: those that run although their
    /// queue is throttled, which matters for what they are given (`distribute_cfs_runtime()` of
    /// 7.3).
    pub(crate) fn charged_at_refill(&self) -> Vec<CpuId> {
        let all = (0..self.charged.len() as u16).map(CpuId);
        all.filter(|cpu| !self.has_slices() || self.is_throttled(*cpu))
            .collect()
    }

    // Charges.

    /// From now on a task in the group runs on `cpu`: sees to it that the queue has time
    /// (`set_next_task_fair()`). True if it is throttled now and was not.
    pub(crate) fn begin(&mut self, cpu: CpuId, now: Instant) -> bool {
        self.charged[cpu.index()] = now;
        self.account(self.place(cpu), Duration::ZERO, now)
    }

    /// Charges what the current task of `cpu`, which is in the group, ran since the last charge.
    /// True if the queue is throttled now and was not.
    pub(crate) fn charge(&mut self, cpu: CpuId, now: Instant) -> bool {
        let until = std::mem::replace(&mut self.charged[cpu.index()], now);
        self.account(self.place(cpu), now.since(until), now)
    }

    /// `account_cfs_rq_runtime()`, and what follows at the next pick where there is no time left
    /// (`check_cfs_rq_runtime()`).
    fn account(&mut self, place: usize, ran: Duration, now: Instant) -> bool {
        let queue = &mut self.queues[place];
        queue.remaining = queue.remaining.saturating_sub(signed(ran));
        if queue.remaining > 0 || queue.throttled {
            return false;
        }
        let has_time = self.assign(place, now);
        if !has_time {
            self.queues[place].throttled = true;
            self.throttled.push_back(place);
        }
        !has_time
    }

    /// Gives the queue what it lacks and a slice, or what is left (`__assign_cfs_rq_runtime()`).
    /// True if it has time now.
    fn assign(&mut self, place: usize, now: Instant) -> bool {
        self.start(now);
        let slice = match self.handing {
            Handing::Whole => i64::MAX,
            Handing::Slices(slice) => signed(slice),
        };
        let queue = &mut self.queues[place];
        let wanted = slice.saturating_sub(queue.remaining);
        let amount = wanted.min(self.runtime).max(0);
        if self.runtime > 0 {
            self.idle = false;
        }
        self.runtime -= amount;
        queue.remaining += amount;
        queue.remaining > 0
    }

    /// Starts the period timer if it is stopped (`start_cfs_bandwidth()`).
    fn start(&mut self, now: Instant) {
        if self.refills.is_none() {
            self.refills = Some(self.ends(now));
            self.unarmed = self.refills;
        }
    }

    /// When the period ends in which `now` is.
    fn ends(&self, now: Instant) -> Instant {
        let period = self.limits.period;
        match now.0.checked_sub(self.first.0) {
            Some(since) => self.first + period * (since / period.0 + 1),
            None => self.first,
        }
    }

    // Who is queued where.

    /// A task of the group joins the queue of `cpu`. A queue that was empty, and of which no task
    /// `runs`, is checked (`check_enqueue_throttle()`).
    pub(crate) fn join(&mut self, cpu: CpuId, runs: bool, now: Instant) {
        self.check(cpu, runs, now);
        let place = self.place(cpu);
        self.queues[place].tasks += 1;
    }

    /// A task of the group is about to join the queue of `cpu`: see [`Bandwidth::join`].
    pub(crate) fn check(&mut self, cpu: CpuId, runs: bool, now: Instant) {
        let place = self.place(cpu);
        if self.has_slices() && self.queues[place].tasks == 0 && !runs {
            self.account(place, Duration::ZERO, now);
        }
    }

    /// A task of the group leaves the queue of `cpu`. An empty queue returns what it has, but for a
    /// little (`return_cfs_rq_runtime()`).
    pub(crate) fn leave(&mut self, cpu: CpuId, now: Instant) {
        let place = self.place(cpu);
        let queue = &mut self.queues[place];
        queue.tasks = queue.tasks.saturating_sub(1);
        let Handing::Slices(slice) = self.handing else {
            return;
        };
        let slack = queue.remaining.saturating_sub(signed(MIN_LOCAL));
        if queue.tasks > 0 || slack <= 0 {
            return;
        }
        queue.remaining -= slack;
        self.runtime = self.runtime.saturating_add(slack);
        let waits = self.runtime > signed(slice) && !self.throttled.is_empty();
        if waits && !self.slack && !self.refills_within(SLACK_PERIOD + MIN_REFRESH, now) {
            self.slack = true;
            self.unarmed_slack = Some(now + SLACK_PERIOD);
        }
    }

    /// How many tasks of the group are queued on `cpu`, where that was not counted.
    pub(crate) fn set_tasks(&mut self, cpu: CpuId, tasks: u32) {
        let place = self.place(cpu);
        self.queues[place].tasks = tasks;
    }

    /// Whether the period timer is about to expire (`runtime_refresh_within()`).
    fn refills_within(&self, span: Duration, now: Instant) -> bool {
        self.refills.is_none_or(|at| at.since(now) < span)
    }

    /// A task waits on `cpu` since its queue is throttled there.
    pub(crate) fn waits(&mut self, cpu: CpuId, now: Instant) {
        let place = self.place(cpu);
        if self.queues[place].throttled {
            self.queues[place].since.get_or_insert(now);
        }
    }

    // Timers. They return the places of queues that are throttled no more, in their order.

    /// The period timer expired (`do_sched_cfs_period_timer()`).
    pub(crate) fn refill(&mut self, now: Instant) -> Vec<usize> {
        let throttled = !self.throttled.is_empty();
        self.stat.periods += 1;
        self.stat.throttled += u64::from(throttled);
        self.replenish();
        self.refills = None;
        if self.idle && !throttled {
            return Vec::new();
        }
        self.start(now);
        self.idle = !throttled;
        self.distribute(now)
    }

    /// `__refill_cfs_bandwidth_runtime()`.
    fn replenish(&mut self) {
        if self.handing == Handing::Whole {
            let queue = &mut self.queues[0];
            queue.remaining = queue.remaining.min(0);
            self.runtime = 0;
        }
        let Limits { quota, burst, .. } = self.limits;
        let most = signed(quota).saturating_add(signed(burst));
        self.runtime = self.runtime.saturating_add(signed(quota)).min(most);
    }

    /// The slack timer expired (`do_sched_cfs_slack_timer()`).
    pub(crate) fn slack_over(&mut self, now: Instant) -> Vec<usize> {
        self.slack = false;
        let slice = match self.handing {
            Handing::Whole => i64::MAX,
            Handing::Slices(slice) => signed(slice),
        };
        match self.refills_within(MIN_REFRESH, now) || self.runtime <= slice {
            true => Vec::new(),
            false => self.distribute(now),
        }
    }

    /// Gives throttled queues what they lack and 1 ns, as long as the pool lasts
    /// (`distribute_cfs_runtime()`).
    fn distribute(&mut self, now: Instant) -> Vec<usize> {
        let mut freed = Vec::new();
        for place in self.throttled.clone() {
            if self.runtime <= 0 {
                break;
            }
            let queue = &mut self.queues[place];
            let amount = self.runtime.min(LEAST.saturating_sub(queue.remaining));
            queue.remaining += amount;
            self.runtime -= amount;
            if queue.remaining > 0 {
                self.unthrottle(place, now);
                freed.push(place);
            }
        }
        freed
    }

    fn unthrottle(&mut self, place: usize, now: Instant) {
        let queue = &mut self.queues[place];
        queue.throttled = false;
        if let Some(since) = queue.since.take() {
            self.stat.span += now.since(since);
        }
        self.throttled.retain(|other| *other != place);
    }

    // Changes.

    /// Sets other limits: the pool has a new quota, and no queue stays throttled
    /// (`tg_set_cfs_bandwidth()`).
    pub(crate) fn set_limits(&mut self, limits: Limits, now: Instant) -> Vec<usize> {
        self.limits = limits.at_least_something();
        self.replenish();
        self.start(now);
        let freed: Vec<usize> = self.throttled.iter().copied().collect();
        let remaining = match self.handing {
            Handing::Whole => 0,
            Handing::Slices(_) => LEAST,
        };
        for place in 0..self.queues.len() {
            self.queues[place].remaining = remaining;
            self.unthrottle(place, now);
        }
        freed
    }

    /// `cpu` went offline: its queue is not throttled any more (`unthrottle_offline_cfs_rqs()`).
    pub(crate) fn offline(&mut self, cpu: CpuId, now: Instant) {
        if self.has_slices() && self.is_throttled(cpu) {
            let place = self.place(cpu);
            self.queues[place].remaining = LEAST;
            self.unthrottle(place, now);
        }
    }
}

impl Limits {
    fn at_least_something(self) -> Limits {
        let least = Duration(1);
        Limits {
            quota: self.quota.max(least),
            period: self.period.max(least),
            burst: self.burst,
        }
    }
}

/// What a queue without tasks keeps (`min_cfs_rq_runtime`).
const MIN_LOCAL: Duration = Duration::from_ms(1);

/// How long returned time gathers before it is handed out (`cfs_bandwidth_slack_period`).
const SLACK_PERIOD: Duration = Duration::from_ms(5);

/// What must be left until the refill for that to be worth it (`min_bandwidth_expiration`).
const MIN_REFRESH: Duration = Duration::from_ms(2);
