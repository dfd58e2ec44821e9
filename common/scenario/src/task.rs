//! Who does what.

use std::sync::Arc;

use warmq_units::Duration;

use crate::amount::Amount;
use crate::expr::{Expr, Spot};
use crate::place::Place;
use crate::step::{Reference, Step};

/// A table of tasks, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKindId(pub u32);

/// A scheduling policy.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// SCHED_OTHER.
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO with its priority, 1 to 99.
    Fifo(u8),
    /// SCHED_RR with its priority, 1 to 99.
    RoundRobin(u8),
    /// SCHED_DEADLINE.
    Deadline(Deadline),
}

/// What a task of SCHED_DEADLINE asks for: `runtime` of CPU time in each `period`, within
/// `deadline` of its beginning. None is shorter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// CPU time in a period.
    pub runtime: Duration,
    /// Until when it is due, from the beginning of the period.
    pub deadline: Duration,
    /// From one period to the next.
    pub period: Duration,
}

impl Deadline {
    /// Kernels take no shorter runtime (`__checkparam_dl()`: `1 << DL_SCALE`).
    const LEAST_RUNTIME: Duration = Duration::from_ns(1 << 10);
    /// Kernels take no shorter and no longer period (`sched_deadline_period_min_us` and `_max_us`,
    /// unless they are set).
    const PERIODS: std::ops::RangeInclusive<Duration> =
        Duration::from_us(100)..=Duration::from_us(1 << 22);

    /// What a task asks for; none: kernels do not take it (`__checkparam_dl()`).
    pub(crate) fn new(runtime: Duration, deadline: Duration, period: Duration) -> Option<Deadline> {
        let ascends =
            Deadline::LEAST_RUNTIME <= runtime && runtime <= deadline && deadline <= period;
        (ascends && Deadline::PERIODS.contains(&period)).then_some(Deadline {
            runtime,
            deadline,
            period,
        })
    }
}

/// A task, or as many as the product of its dimensions; the first index is the slowest.
#[derive(Clone, Debug)]
pub struct TaskKind {
    /// The key of its table.
    pub key: String,
    /// What the kernel calls it, at most 15 bytes.
    pub name: String,
    /// How many there are; empty for a single one.
    pub dimensions: Vec<Expr>,
    /// True if only a step starts it, not the beginning of time.
    pub spawned: bool,
    /// True if a run ends without it once all others have ended.
    pub background: bool,
    /// Its address space; none: its own, or its spawner's if a `spawn` starts it.
    pub process: Option<Reference>,
    /// Its nice value; none: 0.
    pub nice: Option<Expr>,
    /// Its policy.
    pub policy: Policy,
    /// The slice it asks for.
    pub slice: Option<Expr>,
    /// As what utilization it counts at least, in 1024ths of the fastest CPU
    /// (`sched_attr::sched_util_min`).
    pub uclamp_min: Option<Expr>,
    /// And at most (`sched_attr::sched_util_max`).
    pub uclamp_max: Option<Expr>,
    /// The CPUs it may use.
    pub cpus: Option<Place>,
    /// Its cgroup or autogroup; none: the root's, or the autogroup of the task that starts it.
    pub group: Option<Reference>,
    /// The fragment it names before it starts.
    pub fragment: Option<Expr>,
    /// When it starts; none: at once.
    pub start: Option<Amount>,
    /// When it is stopped for good.
    pub end: Option<Expr>,
    /// How long after the last round began the next one begins.
    pub every: Option<Amount>,
    /// Rounds of the body; none: without end.
    pub times: Option<Expr>,
    /// What it does once, before the first round.
    pub setup: Vec<Step>,
    /// What it does in each round.
    pub body: Vec<Step>,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

impl TaskKind {
    /// The steps of setup and body, and all within them, in the order of the text.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        let mut lists = vec![self.body.iter(), self.setup.iter()];
        std::iter::from_fn(move || {
            let step = loop {
                match lists.last_mut()?.next() {
                    Some(step) => break step,
                    None => _ = lists.pop(),
                }
            };
            lists.push(step.inner().iter());
            Some(step)
        })
    }
}
