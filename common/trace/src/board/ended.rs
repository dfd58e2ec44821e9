//! What a board says: stretches of time that end.

use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::{Doing, Work};
use crate::Interrupt;

/// A stretch of time that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub to: Instant,
    /// What lasted.
    pub stretch: Stretch,
}

/// What lasted, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// A task did this. The rest that follows can be the same: a wakeup ends what is not known of a
    /// task, even where nothing is known after it.
    Task {
        /// The task.
        task: TaskId,
        /// What it did.
        did: Doing,
        /// What it does from now on.
        then: Doing,
    },
    /// A CPU did this, interrupts aside. Its task has the CPU until the switch, even if it exits
    /// before.
    Cpu {
        /// The CPU.
        cpu: CpuId,
        /// What it did.
        did: Work,
        /// What it does from now on.
        then: Work,
    },
    /// A CPU spent its time on this. It ends with each interrupt that begins or ends and with each
    /// switch; of nested interrupts the innermost has the time.
    Spent {
        /// The CPU.
        cpu: CpuId,
        /// The interrupt, if it was in one.
        interrupt: Option<Interrupt>,
        /// What it did beside interrupts.
        work: Work,
    },
    /// Events of some CPU were missing.
    Gap,
}

impl Ended {
    /// How much of it is in a window that begins at `from`.
    #[inline]
    pub fn since(&self, from: Instant) -> Duration {
        self.to.since(self.from.max(from))
    }

    /// How much of it is in the window between `from` and `to`.
    #[inline]
    pub fn within(&self, from: Instant, to: Instant) -> Duration {
        self.to.min(to).since(self.from.max(from))
    }
}
