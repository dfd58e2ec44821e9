//! Counters of a run that no other part of the core keeps.

use warmq_units::Duration;

/// Walks over run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Walks {
    /// How many.
    pub walks: u64,
    /// Entries visited, in all.
    pub visits: u64,
    /// Entries visited by the longest.
    pub longest: u64,
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

/// The CPU time of a task, by two ways of accounting. What else `time -v` would say is in the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskCpuTime {
    /// Exact, up to now.
    pub exact: CpuTime,
    /// As the tick samples it, a whole tick at a time.
    pub sampled: CpuTime,
}
