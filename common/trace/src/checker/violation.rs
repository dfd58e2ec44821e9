//! What went wrong, as a value.

use std::fmt;

use warmq_units::{CpuId, Instant, TaskId};

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
    /// Nobody is left waiting for a CPU that idles to the end.
    NoWakeupLost,
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
    /// The task waits for a CPU that idles.
    LeftWaiting {
        /// Since when both are so.
        since: Instant,
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
            Breach::LeftWaiting { .. } => Law::NoWakeupLost,
        }
    }
}

/// The first record of a run that breaks a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Instant,
    /// Which record, counted from 0; for a wakeup that is lost, how many there were.
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
        }
    }
}

impl std::error::Error for Violation {}
