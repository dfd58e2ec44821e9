//! What can go wrong.

use warmq_units::{CpuId, TaskId};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// All is quiet, and a CPU idles beside a task that it takes as soon as it looks: nobody has
    /// kicked it.
    #[error("{cpu} sleeps beside {task}, which waits, and which it runs if it looks")]
    Asleep {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// Whether a path was interrupted since all was quiet, and no CPU slept beside a task.
        raced: bool,
    },
    /// A task does not run, however long others take turns.
    #[error("{task} is runnable, and does not run for {seconds} s")]
    Lost {
        /// The task.
        task: TaskId,
        /// For how long.
        seconds: u64,
    },
    /// The kernel throws the scheduler out: a queue that is not there, an insert that cannot be, a
    /// check of its own that fails.
    #[error("the scheduler is thrown out: {0}")]
    Ejected(String),
    /// Paths wait for each other, or one runs for ever.
    #[error("a path waits without end: {0}")]
    Endless(String),
}

impl Fault {
    /// Whether another fault is of the same kind, of whatever tasks and CPUs.
    pub fn is_like(&self, other: &Fault) -> bool {
        match (self, other) {
            // Without numbers, which differ between plans.
            (Fault::Ejected(one), Fault::Ejected(other)) => words(one).eq(words(other)),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// The letters of a text.
fn words(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|char| char.is_alphabetic())
}
