//! The steps of a scenario, compiled for whoever plays it: loops are jumps, what depends on
//! settings alone is a number, objects are places in lists of their classes, and each amount that
//! is drawn knows its stream.
//!
//! Purpose: [`Bound::compile`](crate::Bound::compile) makes a [`Program`] of each table of tasks,
//! and every world executes it. Running it allocates nothing.
//!
//! Key decision: objects of one class are numbered over all tables ([`Which`]). A world keeps a
//! list for each class, and a step names its object by a place in the list that its verb means. So
//! no world has to ask of which class an object is.

mod change;
mod compile;
mod cpus;
mod loops;
mod number;
mod reservations;
mod row;
mod source;
mod spec;
mod spin;

use std::sync::Arc;

pub use change::{Occurrences, Planned, To, Whom};
pub use compile::Compiled;
pub use cpus::{Cpu, Cpus};
pub use loops::Loops;
pub use number::{Drawn, Draws, Number, SharedStreams, StreamOf, Which};
pub use row::{Order, Parts, Row};
pub use source::{Bursts, SourceProgram, SourceSpec};
pub use spec::{APP, CgroupSpec, Group, GroupSpec, Spec};
pub use spin::{InVain, SpinCounters, Spinning, TakeSpinlock, longer};

use crate::amount::StreamName;
use crate::change::Set;
use crate::expr::Spot;
use crate::object::ObjectId;
use crate::quantity::Quantity;
use crate::step::{CounterId, End, SpanReference, TaskReference};

/// In which order lines are touched.
#[derive(Clone, Debug)]
pub enum Lines {
    /// The first line, and then each one at a fixed distance from the one before.
    Stride {
        /// The first line.
        first: Number,
        /// The distance, in lines.
        stride: Number,
    },
    /// At random, by numbers from the stream.
    Random(StreamOf),
}

/// A part of a region.
#[derive(Clone, Debug)]
pub enum Part {
    /// All.
    Whole,
    /// So many lines.
    Lines(Number),
    /// So many bytes.
    Bytes(Number),
}

impl Part {
    /// How many lines of `line` bytes it is, of a region of `whole` lines.
    ///
    /// # Errors
    /// As [`Number::get`].
    #[inline]
    pub fn lines(
        &self,
        (whole, line): (u64, u64),
        get: impl FnOnce(&Number) -> Result<u64, crate::EvalError>,
    ) -> Result<u64, crate::EvalError> {
        match self {
            Part::Whole => Ok(whole),
            Part::Lines(lines) => get(lines),
            Part::Bytes(bytes) => Ok(get(bytes)?.div_ceil(line)),
        }
    }
}

/// Accesses to memory.
#[derive(Clone, Debug)]
pub struct Touch {
    /// The region.
    pub region: Which,
    /// How much of it.
    pub part: Part,
    /// In which order.
    pub lines: Lines,
    /// How many of a hundred accesses write.
    pub write_percent: Number,
}

/// A sleep until a timer expires.
#[derive(Clone, Debug)]
pub struct Timer {
    /// The timer.
    pub timer: Which,
    /// How long after its last expiry it expires, in picoseconds.
    pub period: Draws,
    /// If each task has a timer of its own: the place of the table in [`Program::timers`].
    pub own: Option<usize>,
    /// Whether a task that comes too late leaves the timer as it is.
    pub absolute: bool,
}

/// What bytes are sent through. Each has a list of objects of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A pipe: it is written at its first end and read at its second.
    Pipe,
    /// One end of a stream. What goes in there is received at the other.
    Stream(End),
    /// A socket for datagrams.
    Datagram,
}

/// A wait for a condition.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The condition.
    pub condition: Which,
    /// The mutex that is unlocked meanwhile.
    pub mutex: Which,
    /// For how many picoseconds at most; none: until it is signalled.
    pub timeout: Option<Draws>,
}

/// What a task does in one step.
#[derive(Clone, Debug)]
pub enum Do {
    /// Computes for an amount of what the quantity says.
    Run(Draws, Quantity),
    /// Computes until so many picoseconds have passed.
    Spin(Draws),
    /// Accesses memory.
    Touch(Box<Touch>),
    /// Sleeps until a timer expires.
    Timer(Box<Timer>),
    /// Sleeps for picoseconds.
    Sleep(Draws),
    /// Locks a mutex.
    Lock(Which),
    /// Unlocks a mutex.
    Unlock(Which),
    /// Takes a spin lock.
    TakeSpinlock(Box<TakeSpinlock>),
    /// Releases a spin lock.
    ReleaseSpinlock(Which),
    /// Waits for a condition with a mutex.
    Wait(Box<Wait>),
    /// Wakes one or all (true) that wait for a condition.
    Signal(Which, bool),
    /// Waits in a futex, for so many picoseconds at most.
    WaitInFutex(Which, Option<Box<Draws>>),
    /// Wakes one or all (true) that wait in a futex.
    WakeInFutex(Which, bool),
    /// Adds one to a semaphore.
    Raise(Which),
    /// Takes one from a semaphore.
    Lower(Which),
    /// Waits at a barrier.
    Barrier(Which),
    /// Puts an item into a queue.
    Put(Which),
    /// Takes an item out of a queue.
    Take(Which),
    /// Sends bytes.
    Send(Which, Link, Number),
    /// Receives so many bytes, or a datagram.
    Receive(Which, Link, Number),
    /// Answers the last datagram that was received on a socket.
    Reply(Which, Number),
    /// Writes bytes to a file.
    Write(Which, Number),
    /// Starts a thread (true) or a process.
    Start(TaskReference, bool),
    /// Ends the task.
    Exit,
    /// Gives the CPU away.
    Yield,
    /// Names data, or none.
    Fragment(Option<Number>),
    /// Sets something of the task itself.
    Set(Box<Set>),
    /// Begins or ends a span.
    Span(SpanReference, SpanEdge),
    /// Adds to a counter.
    Count(CounterId, Number),
}

/// What a step says of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanEdge {
    /// It begins.
    Begins,
    /// It began when the task's round, or its last timer, was due.
    BeganWhenDue,
    /// It ends.
    Ends,
}

/// The begin or the end of a loop.
#[derive(Clone, Debug)]
pub enum Edge {
    /// Begins a loop: its counter takes a new index. `after` is the first op behind its
    /// [`Edge::Again`].
    Repeat {
        /// How often.
        times: Number,
        /// A round that is left out.
        except: Option<Number>,
        /// Where it goes on.
        after: usize,
    },
    /// The end of a loop's body, which begins at `first`.
    Again {
        /// The first op of the body.
        first: usize,
    },
}

/// One thing that a task does next.
#[derive(Clone, Debug)]
pub enum Op {
    /// A step.
    Do(Do),
    /// Jumps: see [`Loops::pass`].
    Loop(Edge),
    /// Does what was recorded.
    Row(Arc<Row>),
}

/// A list of ops, with the place in the text of the step of each.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// The ops.
    pub list: Vec<Op>,
    /// Where each op's step stands.
    pub spots: Vec<Arc<Spot>>,
}

/// What the tasks of a table do.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Once.
    pub setup: Ops,
    /// Over and over.
    pub body: Ops,
    /// When it starts, in picoseconds.
    pub start: Option<Draws>,
    /// How long after a round the next begins, in picoseconds.
    pub every: Option<Draws>,
    /// Rounds of the body; none: without end.
    pub times: Option<Number>,
    /// When it is stopped for good, in picoseconds.
    pub end: Option<Number>,
    /// The streams of each task.
    pub streams: Vec<StreamName>,
    /// The tables of which each task has timers of its own.
    pub timers: Vec<ObjectId>,
    /// The tables of sockets whose datagrams it answers.
    pub answered: Vec<ObjectId>,
    /// True if it sends, receives or writes.
    pub uses_buffer: bool,
    /// How deep its loops are.
    pub depth: usize,
}

impl Program {
    /// All ops.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.setup.list.iter().chain(&self.body.list)
    }
}
