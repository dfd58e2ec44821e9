//! A task of a board.

use warmq_units::{CpuId, Instant, TaskId};

use super::{Ended, Stretch};
use crate::{Cause, Context, State};

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// Nobody knows: no record has shown it yet, or events are missing.
    #[default]
    Unknown,
    /// It waits for something other than a CPU. So does a task from its fork to its first wakeup.
    Sleeps,
    /// It is runnable and waits for a CPU: in the queue of this one, if each CPU has one.
    Waits(CpuId),
    /// It runs on this CPU.
    Runs(CpuId),
    /// It is runnable, and its group is out of quota.
    Throttled,
    /// It has exited.
    Exited,
}

/// Why a task leaves its CPU, or its queue ([`Record::Block`](crate::Record::Block)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it waits for.
    pub cause: Cause,
    /// The state in which it leaves.
    pub state: State,
    /// Which object of the scenario it waits for.
    pub object: Option<u32>,
}

/// Who wakes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// When the waker set about it.
    pub at: Instant,
    /// The CPU that wakes it.
    pub cpu: CpuId,
    /// The task that runs there, if one does.
    pub waker: Option<TaskId>,
    /// What that CPU was doing.
    pub context: Context,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    pub doing: Doing,
    pub since: Instant,
    /// Since when it has waited in the queue of this CPU.
    pub queued: Instant,
    /// It leaves its CPU throttled.
    pub throttles: bool,
    pub block: Option<Block>,
    pub waking: Option<Waking>,
    /// When it was woken, if that is why it waits or runs.
    pub woken: Option<Instant>,
    /// Its wakeup follows `waking`.
    announced: bool,
}

impl Task {
    /// What it has done until `at`.
    pub fn until(&self, at: Instant, id: TaskId) -> Ended {
        Ended {
            from: self.since,
            to: at,
            stretch: Stretch::Task {
                task: id,
                did: self.doing,
                then: self.doing,
            },
        }
    }

    pub fn becomes(&mut self, at: Instant, id: TaskId, doing: Doing) -> Ended {
        let ended = Ended {
            stretch: Stretch::Task {
                task: id,
                did: self.doing,
                then: doing,
            },
            ..self.until(at, id)
        };
        match doing {
            Doing::Runs(_) => (self.block, self.throttles) = (None, false),
            // Whoever was woken waits for its CPU all the same.
            Doing::Waits(_) | Doing::Throttled => {}
            Doing::Unknown | Doing::Sleeps | Doing::Exited => self.woken = None,
        }
        (self.doing, self.since, self.queued) = (doing, at, at);
        ended
    }

    /// It is to run on `cpu`. Whoever waits waits on, in another queue.
    pub fn moves(&mut self, at: Instant, cpu: CpuId) {
        if let Doing::Waits(_) = self.doing {
            (self.doing, self.queued) = (Doing::Waits(cpu), at);
        }
    }

    pub fn announce(&mut self, waking: Waking) {
        (self.waking, self.announced) = (Some(waking), true);
    }

    /// It is woken, as `now` says unless a record announced it.
    pub fn is_woken(&mut self, now: Waking) {
        if !std::mem::take(&mut self.announced) {
            self.waking = Some(now);
        }
    }
}
