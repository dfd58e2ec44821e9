//! A task as it is followed through a trace.

use warmq_trace::Who;
use warmq_units::Instant;

use crate::cpu::Waker;
use crate::row::{Kind, Row};

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub who: Who,
    pub row: Row,
    /// What it ran until then is in its row.
    pub counted: Instant,
    /// Who is about to wake it.
    pub waking: Option<Waker>,
    /// It has been there from the beginning or since its fork, and nobody has woken it yet.
    pub birth: Option<Birth>,
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

/// How a task was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Birth {
    /// One of the first tasks of a run: what makes it runnable is nobody's doing.
    First,
    /// Another task forked it.
    Forked,
}

/// How the names of the threads begin by which the scheduler stops and moves tasks.
const STOPPER: &str = "migration/";

impl Task {
    /// Whether the scheduler's own work is all that it does.
    pub fn is_stopper(&self) -> bool {
        self.who.comm.raw().starts_with(STOPPER)
    }

    /// What it has run since `since`, or since it was counted, is taken into its row.
    pub fn ran(&mut self, since: Instant, at: Instant) {
        self.row.run(at.since(since.max(self.counted)));
        self.counted = at;
    }
}
