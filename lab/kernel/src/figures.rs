//! Counters of a run that no other part of the core keeps.

use warmq_units::{Duration, Instant};

/// Walks over run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Walks {
    /// How many.
    pub walks: u64,
    /// Entries visited, in all.
    pub visits: u64,
    /// Entries visited by the longest.
    pub longest: u64,
    /// How often all time slices were computed anew.
    pub recalculations: u64,
}

/// How many tasks are runnable, added up over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunnableClock {
    tasks: u64,
    since: Instant,
    /// Tasks times picoseconds, up to `since`.
    pub(crate) area: u128,
}

impl RunnableClock {
    pub(crate) fn charge(&mut self, now: Instant) {
        self.area += u128::from(self.tasks) * u128::from((now - self.since).0);
        self.since = now;
    }

    /// From `now` on the mean is anew.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.charge(now);
        self.area = 0;
    }

    pub(crate) fn joins(&mut self, now: Instant) {
        self.charge(now);
        self.tasks += 1;
    }

    pub(crate) fn leaves(&mut self, now: Instant) {
        self.charge(now);
        self.tasks -= 1;
    }
}

/// CPU time in user mode and in the kernel. Interrupts and softirqs are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// In the program.
    pub user: Duration,
    /// In the kernel on its behalf, spinning for locks included.
    pub system: Duration,
}

impl CpuTime {
    /// Both.
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

impl std::ops::AddAssign for CpuTime {
    fn add_assign(&mut self, other: CpuTime) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// What `time -v` would say of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskFigures {
    /// How long it had a CPU, interrupts included, up to the last switch.
    pub ran: Duration,
    /// Its CPU time, exact, up to now.
    pub exact: CpuTime,
    /// Its CPU time as the tick samples it, a whole tick at a time.
    pub sampled: CpuTime,
    /// Switches because it slept.
    pub voluntary_switches: u64,
    /// Switches though it could have gone on.
    pub involuntary_switches: u64,
}
