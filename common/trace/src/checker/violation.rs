//! The violation of an invariant, as a value.

use std::fmt;

use warmq_units::{CpuId, Instant, LockId, TaskId};

use crate::Interrupt;

/// How an invariant was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// The previous record has a later time.
    #[error("time runs backwards: the previous record is of {before}")]
    TimeWentBack {
        /// The time of the previous record.
        before: Instant,
    },
    /// The task was not forked, or has exited.
    #[error("the task was not forked, or has exited")]
    NotAlive,
    /// The task was forked already.
    #[error("the task was forked already")]
    ForkedAgain,
    /// The task exited, but left its CPU runnable.
    #[error("the task exited and yet is runnable")]
    RunnableAfterExit,
    /// The task is running on another CPU already.
    #[error("the task is already running on {other}")]
    OnTwoCpus {
        /// The other CPU.
        other: CpuId,
    },
    /// Another task was running there.
    #[error("{}", who(running))]
    AnotherRan {
        /// The task that was running; `None` is the idle task.
        running: Option<TaskId>,
    },
    /// The task sleeps.
    #[error("the task is asleep and was not woken")]
    Asleep,
    /// The interrupt that ends is not the one that the CPU is serving.
    #[error("{}", serving(open))]
    NotInInterrupt {
        /// The interrupt that the CPU is serving.
        open: Option<Interrupt>,
    },
    /// The CPU switched tasks inside an interrupt.
    #[error("a switch inside the interrupt {open:?}")]
    SwitchInInterrupt {
        /// Which one.
        open: Interrupt,
    },
    /// The task waits while a CPU that could run it idles.
    #[error("the task has waited since {since} while the CPU, which could run it, was idle")]
    LeftWaiting {
        /// Since when both have been the case.
        since: Instant,
    },
    /// The lock was granted before its previous holder released it.
    #[error("{lock} was granted before it was released at {released}")]
    HeldByTwo {
        /// Which one.
        lock: LockId,
        /// When the previous holder released it.
        released: Instant,
    },
    /// The CPU switched tasks while it held the lock or spun for it.
    #[error("a switch at {switched}, while the CPU held {lock} or spun for it")]
    SwitchUnderLock {
        /// Which one.
        lock: LockId,
        /// When.
        switched: Instant,
    },
    /// A reschedule interrupt was taken that no CPU had sent.
    #[error("a reschedule interrupt that no CPU sent")]
    NobodySent,
    /// A reschedule interrupt was taken too late, or not at all.
    #[error("the reschedule interrupt sent at {sent} was not taken in time")]
    NotTaken {
        /// When it was sent.
        sent: Instant,
    },
    /// The task blocked and yet left its CPU runnable.
    #[error("the task blocked and yet is runnable")]
    RunnableAfterBlock,
    /// The CPU switched tasks in an idle state.
    #[error("a switch on a CPU in an idle state")]
    SwitchInIdle,
    /// The span that ends never began.
    #[error("span {span}, number {number}, ends and never began")]
    NeverBegan {
        /// Its name, by number.
        span: u32,
        /// Which of that name.
        number: u64,
    },
    /// The counter had counted more.
    #[error("counter {counter} goes back from {before}")]
    CountedMore {
        /// Which one.
        counter: u32,
        /// What it had counted.
        before: u64,
    },
}

/// The first record of a run that breaks an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Instant,
    /// The index of the record, from 0; for a violation found at the end of the run, the number of
    /// records.
    pub record: u64,
    /// The task concerned, where there is one.
    pub task: Option<TaskId>,
    /// The CPU concerned, where there is one.
    pub cpu: Option<CpuId>,
    /// What is wrong.
    pub breach: Breach,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (record {}): ", self.at, self.record)?;
        match (self.task, self.cpu) {
            (Some(task), Some(cpu)) => write!(formatter, "{task} on {cpu}: ")?,
            (Some(task), None) => write!(formatter, "{task}: ")?,
            (None, Some(cpu)) => write!(formatter, "{cpu}: ")?,
            (None, None) => {}
        }
        self.breach.fmt(formatter)
    }
}

fn who(running: &Option<TaskId>) -> String {
    match running {
        Some(running) => format!("{running} was running here"),
        None => "the CPU was idle".to_owned(),
    }
}

fn serving(open: &Option<Interrupt>) -> String {
    let open = open.map_or("none".to_owned(), |open| format!("{open:?}"));
    format!("an interrupt ends, but the CPU is serving {open}")
}

impl std::error::Error for Violation {}
