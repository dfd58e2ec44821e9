//! What went wrong, as a value.

use std::fmt;

use warmq_units::{CpuId, Instant, LockId, TaskId};

use crate::Interrupt;

/// The laws that a [`Checker`](super::Checker) watches; the module says what each demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// No record is earlier than the one before.
    TimeNeverBack,
    /// A task is forked once, exits once, and neither runs nor wakes outside its life.
    LifeOnce,
    /// Nobody gets a second CPU while it has one.
    OneCpuPerTask,
    /// Who leaves a CPU is who ran there.
    SwitchesMatch,
    /// Who gets a CPU was woken, or left its last one runnable.
    OnlyRunnableRuns,
    /// Interrupts end in the reverse order of their beginnings, and nobody switches inside one.
    InterruptsBalanced,
    /// No CPU idles for longer than was promised while a task waits that it could run.
    WorkConserving,
    /// No two tenures of a lock overlap.
    TenuresDisjoint,
    /// Nobody switches while it holds a lock or spins for one.
    NoSwitchUnderLock,
    /// Reschedule interrupts are taken once each, and not late.
    ReschedulesTaken,
}

/// How a law was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The record before was later.
    TimeWentBack {
        /// When that was.
        before: Instant,
    },
    /// The task was not forked, or has exited.
    NotAlive,
    /// The task is forked a second time.
    ForkedAgain,
    /// The task has exited and yet could go on.
    RunnableAfterExit,
    /// The task has another CPU already.
    OnTwoCpus {
        /// That CPU.
        other: CpuId,
    },
    /// Somebody else ran there.
    AnotherRan {
        /// Who did; nobody is the idle task.
        running: Option<TaskId>,
    },
    /// The task sleeps.
    Asleep,
    /// The interrupt that ends is not the one that the CPU is in.
    NotInInterrupt {
        /// Which one it is in.
        open: Option<Interrupt>,
    },
    /// A switch inside an interrupt.
    SwitchInInterrupt {
        /// Which one.
        open: Interrupt,
    },
    /// The task waits, and a CPU that could run it idles.
    LeftWaiting {
        /// Since when both are so.
        since: Instant,
    },
    /// The lock was granted before its tenure before was over.
    HeldByTwo {
        /// Which one.
        lock: LockId,
        /// When that tenure was over.
        released: Instant,
    },
    /// The CPU went through a switch while it held the lock, or spun for it.
    SwitchUnderLock {
        /// Which one.
        lock: LockId,
        /// When.
        switched: Instant,
    },
    /// A reschedule interrupt that nobody sent.
    NobodySent,
    /// A reschedule interrupt that was taken late, or not at all.
    NotTaken {
        /// When it was sent.
        sent: Instant,
    },
}

impl Breach {
    /// The law that this breaks.
    pub fn law(self) -> Law {
        match self {
            Breach::TimeWentBack { .. } => Law::TimeNeverBack,
            Breach::NotAlive | Breach::ForkedAgain | Breach::RunnableAfterExit => Law::LifeOnce,
            Breach::OnTwoCpus { .. } => Law::OneCpuPerTask,
            Breach::AnotherRan { .. } => Law::SwitchesMatch,
            Breach::Asleep => Law::OnlyRunnableRuns,
            Breach::NotInInterrupt { .. } | Breach::SwitchInInterrupt { .. } => {
                Law::InterruptsBalanced
            }
            Breach::LeftWaiting { .. } => Law::WorkConserving,
            Breach::HeldByTwo { .. } => Law::TenuresDisjoint,
            Breach::SwitchUnderLock { .. } => Law::NoSwitchUnderLock,
            Breach::NobodySent | Breach::NotTaken { .. } => Law::ReschedulesTaken,
        }
    }
}

/// The first record of a run that breaks a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Instant,
    /// Which record, counted from 0; for what the end of a run breaks, how many there were.
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

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::TimeWentBack { before } => {
                write!(
                    formatter,
                    "time runs back; the record before is of {before}"
                )
            }
            Breach::NotAlive => write!(formatter, "the task was not forked, or has exited"),
            Breach::ForkedAgain => write!(formatter, "the task is forked a second time"),
            Breach::RunnableAfterExit => write!(formatter, "the task exited and is runnable"),
            Breach::OnTwoCpus { other } => write!(formatter, "the task runs on {other}, too"),
            Breach::AnotherRan {
                running: Some(running),
            } => {
                write!(formatter, "it is {running} that ran here")
            }
            Breach::AnotherRan { running: None } => write!(formatter, "nobody ran here"),
            Breach::Asleep => write!(formatter, "the task sleeps; nobody woke it"),
            Breach::NotInInterrupt { open: Some(open) } => {
                write!(
                    formatter,
                    "an interrupt ends, but the one going on is {open:?}"
                )
            }
            Breach::NotInInterrupt { open: None } => {
                write!(formatter, "an interrupt ends, but none goes on")
            }
            Breach::SwitchInInterrupt { open } => {
                write!(formatter, "a switch inside the interrupt {open:?}")
            }
            Breach::LeftWaiting { since } => {
                write!(
                    formatter,
                    "the task waits for a CPU that idles, both since {since}"
                )
            }
            Breach::HeldByTwo { lock, released } => write!(
                formatter,
                "{lock} was granted before it was released at {released}"
            ),
            Breach::SwitchUnderLock { lock, switched } => write!(
                formatter,
                "a switch at {switched}, while the CPU held {lock} or spun for it"
            ),
            Breach::NobodySent => write!(formatter, "a reschedule interrupt that nobody sent"),
            Breach::NotTaken { sent } => write!(
                formatter,
                "the reschedule interrupt sent at {sent} was not taken in time"
            ),
        }
    }
}

impl std::error::Error for Violation {}
