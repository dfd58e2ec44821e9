//! What a task does, step by step.

use std::sync::Arc;

use crate::amount::Amount;
use crate::change::Set;
use crate::expr::{Expr, SettingId, Spot};
use crate::object::ObjectId;
use crate::recorded::Recorded;
use crate::task::TaskKindId;

/// A latency span by name, in the order of first mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub u32);

/// A counter by name, in the order of first mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterId(pub u32);

/// One end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// `.near`
    Near,
    /// `.far`
    Far,
}

impl End {
    /// This one of two.
    pub fn of<T>(self, (near, far): (T, T)) -> T {
        match self {
            End::Near => near,
            End::Far => far,
        }
    }
}

/// One object.
///
/// Invariant: as many indexes as the object has dimensions, and an end for streams only.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Of which table.
    pub object: ObjectId,
    /// Which of them.
    pub indexes: Vec<Expr>,
    /// Which end of a stream.
    pub end: Option<End>,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

/// One task. Invariant: as many indexes as the task has dimensions.
#[derive(Clone, Debug)]
pub struct TaskReference {
    /// Of which table.
    pub task: TaskKindId,
    /// Which of them.
    pub indexes: Vec<Expr>,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

/// One latency span. Without indexes each task has its own; those with indexes are shared by all
/// tasks, so that one may begin what another ends.
#[derive(Clone, Debug)]
pub struct SpanReference {
    /// Of which name.
    pub span: SpanId,
    /// Which of them.
    pub indexes: Vec<Expr>,
}

/// A comparison of a choice with one of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The setting.
    pub setting: SettingId,
    /// The number of the word among those allowed.
    pub word: u32,
}

/// What a task does, if the settings say so.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The settings with which it does so; none: with all.
    pub when: Option<When>,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

/// Which part of a region is touched.
#[derive(Clone, Debug)]
pub enum Share {
    /// Each line once.
    Whole,
    /// So many lines.
    Lines(Expr),
    /// So many bytes.
    Bytes(Expr),
}

/// In which order lines are touched, around the region's end.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// At random.
    Random,
    /// So many lines apart.
    Stride(Expr),
}

/// Accesses to memory.
#[derive(Clone, Debug)]
pub struct Touch {
    /// Which memory.
    pub region: Reference,
    /// How much of it.
    pub share: Share,
    /// The first line, counted from the region's start.
    pub first: Option<Expr>,
    /// In which order.
    pub pattern: Pattern,
    /// How many of a hundred accesses write.
    pub write_percent: Expr,
}

/// The data that a task is about to use.
#[derive(Clone, Debug)]
pub enum Fragment {
    /// None any more.
    None,
    /// This one, by its number of 32 bits.
    Number(Expr),
}

/// What a step does, a variant for each verb.
#[derive(Clone, Debug)]
pub enum Action {
    /// Computes: for a time that a free CPU needs for it, or for cycles.
    Run(Amount),
    /// Computes until so much time has passed since the step began, whether the task had a CPU or
    /// not.
    Spin(Amount),
    /// Accesses memory.
    Touch(Box<Touch>),
    /// Sleeps.
    Sleep(Amount),
    /// Sleeps until a timer expires, which is so long after it expired last.
    Timer {
        /// The timer.
        timer: Reference,
        /// How long after.
        period: Amount,
    },
    /// Locks a mutex or a spin lock.
    Lock(Reference),
    /// Unlocks a mutex or a spin lock.
    Unlock(Reference),
    /// Waits for a condition, or in a futex.
    Wait {
        /// The condition or the futex.
        on: Reference,
        /// The mutex that is unlocked meanwhile. Invariant: there for a condition, and only then.
        mutex: Option<Reference>,
        /// For how long at most; none: until it is woken.
        timeout: Option<Amount>,
    },
    /// Wakes who waits for a condition, or in a futex.
    Signal {
        /// The condition or the futex.
        on: Reference,
        /// Everyone, not only one.
        all: bool,
    },
    /// Adds one to a semaphore.
    Raise(Reference),
    /// Takes one from a semaphore.
    Lower(Reference),
    /// Waits at a barrier.
    Barrier(Reference),
    /// Puts an item into a queue.
    Put(Reference),
    /// Takes an item out of a queue.
    Take(Reference),
    /// Sends.
    Send {
        /// The end that is written to.
        to: Reference,
        /// How much.
        bytes: Expr,
    },
    /// Answers: sends to where the last datagram that the task received on a socket came from.
    Reply {
        /// The socket.
        socket: Reference,
        /// How much.
        bytes: Expr,
    },
    /// Receives.
    Receive {
        /// The end that is read.
        from: Reference,
        /// Exactly so much; none: one datagram.
        bytes: Option<Expr>,
    },
    /// Writes to a file or a device.
    Write {
        /// The file.
        file: Reference,
        /// How much.
        bytes: Expr,
    },
    /// Starts a thread.
    Spawn(TaskReference),
    /// Starts a process.
    Fork(TaskReference),
    /// Ends the task.
    Exit,
    /// Gives the CPU away.
    Yield,
    /// Names data.
    Fragment(Fragment),
    /// Sets the task's own CPUs, nice value, policy, slice, group or clamped utilization.
    Set(Box<Set>),
    /// Begins a latency span.
    Begin {
        /// Which.
        span: SpanReference,
        /// It began already when the round, or the last timer, was due.
        due: bool,
    },
    /// Ends a latency span.
    End(SpanReference),
    /// Adds to a counter.
    Count {
        /// Which one.
        counter: CounterId,
        /// How much.
        by: Expr,
    },
    /// Does what a task was seen to do.
    Recorded(Recorded),
    /// Does its body again and again. The body's indexes have one slot more, which counts rounds.
    Repeat {
        /// How often.
        times: Expr,
        /// A value that is left out.
        except: Option<Expr>,
        /// What is repeated.
        body: Vec<Step>,
    },
}

impl Step {
    /// The steps within it.
    pub(crate) fn inner(&self) -> &[Step] {
        match &self.action {
            Action::Repeat { body: inner, .. }
            | Action::Recorded(Recorded { steps: inner, .. }) => inner,
            _ => &[],
        }
    }
}
