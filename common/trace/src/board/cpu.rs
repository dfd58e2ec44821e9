//! A CPU of a board.

use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::{Ended, Stretch};
use crate::Interrupt;

/// What a CPU does, interrupts aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nobody knows: it has not switched yet, or events of it are missing.
    #[default]
    Unknown,
    /// It runs the idle task.
    Idle,
    /// It is offline.
    Offline,
    /// It runs this task.
    Runs(TaskId),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    pub work: Work,
    pub since: Instant,
    /// The interrupts that it is serving, outermost first.
    pub open: Vec<Interrupt>,
    pub offline: bool,
    /// Since when it has been in the innermost of them, or in none.
    spent_since: Instant,
    /// For how long it had been in interrupts by then.
    interrupted: Duration,
}

impl Cpu {
    /// One that has done `work` from the start on.
    pub fn at_first(work: Work) -> Cpu {
        Cpu {
            work,
            ..Cpu::default()
        }
    }

    /// What it has done until `at`.
    pub fn until(&self, at: Instant, id: CpuId) -> Ended {
        Ended {
            from: self.since,
            to: at,
            stretch: Stretch::Cpu {
                cpu: id,
                did: self.work,
                then: self.work,
            },
        }
    }

    pub fn works(&mut self, at: Instant, id: CpuId, work: Work) -> Ended {
        let ended = Ended {
            stretch: Stretch::Cpu {
                cpu: id,
                did: self.work,
                then: work,
            },
            ..self.until(at, id)
        };
        (self.work, self.since) = (work, at);
        ended
    }

    /// On what it has spent its time until `at`.
    pub fn spent(&self, at: Instant, id: CpuId) -> Ended {
        Ended {
            from: self.spent_since,
            to: at,
            stretch: Stretch::Spent {
                cpu: id,
                interrupt: self.open.last().copied(),
                work: self.work,
            },
        }
    }

    /// It spends its time on something else from now on.
    pub fn spend(&mut self, at: Instant, id: CpuId) -> Option<Ended> {
        let spent = self.spent(at, id);
        self.interrupted = self.interrupted(at);
        self.spent_since = at;
        (spent.from < spent.to).then_some(spent)
    }

    /// For how long interrupts have had it until `at`.
    pub fn interrupted(&self, at: Instant) -> Duration {
        let open = match self.open.is_empty() {
            true => Duration::ZERO,
            false => at.since(self.spent_since),
        };
        Duration(self.interrupted.0.saturating_add(open.0))
    }
}
