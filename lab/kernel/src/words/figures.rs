//! Counters of a run that belong to no other part of the core.

use warmq_units::Duration;

/// Walks over run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Walks {
    /// How many walks.
    pub walks: u64,
    /// Entries visited by all of them.
    pub visits: u64,
    /// Entries visited by the longest one.
    pub longest: u64,
}

/// CPU time in user mode and in the kernel, without interrupts and softirqs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, derive_more::AddAssign)]
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

/// The CPU time of a task, accounted in two ways. The other figures of `time -v` are computed from
/// records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskCpuTime {
    /// Exact, up to now.
    pub exact: CpuTime,
    /// As sampled by the tick, a whole tick at a time.
    pub sampled: CpuTime,
}
