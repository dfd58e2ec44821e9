//! A task as it is followed through a trace.

use warmq_trace::{Cause, Context, Who};
use warmq_units::{Instant, TaskId};

use crate::cpu::Waker;
use crate::row::{Kind, Row};

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    /// Nobody has seen it yet.
    #[default]
    Unknown,
    /// One of the first tasks of a run, which nobody has made runnable yet.
    New,
    /// It runs, and what it ran until this time is in its row.
    Running(Instant),
    Runnable,
    /// Asleep since then, for this cause, and the object that it waits for.
    Asleep(Instant, Cause, Option<u32>),
    /// It ended then.
    Gone(Instant),
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub who: Who,
    pub row: Row,
    pub life: Life,
    /// Who is about to wake it, and in what context.
    pub waking: Option<(Option<TaskId>, Context, Waker)>,
    /// What it is about to sleep for.
    pub cause: Option<(Cause, Option<u32>)>,
    /// A quota is about to hold it.
    pub throttles: bool,
    /// When a timer woke it last.
    pub timer: Option<Instant>,
    /// When datagrams came for it from outside, and the CPU that took the last of them.
    pub arrivals: Vec<Instant>,
    /// The CPUs that took them, as far as there is only one.
    pub arrives_on: Option<usize>,
    pub arrives_everywhere: bool,
    /// What other tasks post to.
    pub inbox: Kind,
    /// Since when it has computed, or wanted to, without another moment between.
    pub wants_since: Option<Instant>,
    /// It had nothing more to do when the recording ended.
    pub rests: bool,
}

/// How the names of the threads begin by which the scheduler stops and moves tasks.
const STOPPER: &str = "migration/";

impl Task {
    /// Whether the scheduler's own work is all that it does.
    pub fn is_stopper(&self) -> bool {
        self.who.comm.raw().starts_with(STOPPER)
    }

    /// What it ran until `at` is taken into its row.
    pub fn advance(&mut self, at: Instant) {
        if let Life::Running(since) = &mut self.life {
            let span = at.since(*since);
            *since = at;
            self.row.run(span);
        }
    }
}
