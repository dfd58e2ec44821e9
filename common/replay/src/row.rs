//! What a task did, moment after moment.

use warmq_trace::Cause;
use warmq_units::{Duration, TaskId};

/// What a task that sleeps waits for, as far as a trace shows: a semaphore of a scenario, which
/// others may wait for, too, or one of three objects that each task has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Anything that one task does for another: a futex, a lock, a child that exits.
    #[default]
    Semaphore,
    Pipe,
    Socket,
    /// A socket that packets from outside the machine come to.
    Outside,
    /// The semaphore of this number among all objects of the recorded scenario: whoever waits for
    /// it can be woken in place of another.
    Shared(u32),
    /// What this task does for one that serves several in turn, and waits for just this one next.
    Turn(TaskId),
}

impl Kind {
    pub fn of(cause: Cause, object: Option<u32>) -> Kind {
        match (cause, object) {
            (Cause::Pipe, _) => Kind::Pipe,
            (Cause::Socket, _) => Kind::Socket,
            (Cause::Semaphore, Some(object)) => Kind::Shared(object),
            _ => Kind::Semaphore,
        }
    }

    /// Whether each task has one of its own that other tasks post to, its inbox.
    pub fn is_inbox(self) -> bool {
        matches!(self, Kind::Semaphore | Kind::Pipe | Kind::Socket)
    }
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It had a CPU for so long.
    Run(Duration),
    /// It slept, waiting for an object, until this task posted to that; none for what comes from
    /// outside.
    Await(Kind, Option<TaskId>),
    /// It woke a task that waited.
    Post(TaskId, Kind),
    /// It slept for so long, until a timer woke it, so long after one woke it last.
    Timer { slept: Duration, since: Duration },
    /// It slept for so long, for another reason.
    Sleep(Duration),
}

/// All moments of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub moments: Vec<Moment>,
    /// The CPU time since the last moment.
    ran: Duration,
    /// How many datagrams it received since it slept last besides the one that woke it.
    pub more: u64,
}

impl Row {
    pub fn run(&mut self, span: Duration) {
        self.ran += span;
    }

    /// Ends what it computes.
    pub fn flush(&mut self) {
        let ran = std::mem::take(&mut self.ran);
        let more = std::mem::take(&mut self.more);
        let whole = self.moments.last() == Some(&Moment::Await(Kind::Outside, None));
        // Where nothing else happened meanwhile, each datagram took as long as the others.
        let pieces = if whole { more + 1 } else { 1 };
        for piece in 0..pieces {
            if piece > 0 {
                self.moments.push(Moment::Await(Kind::Outside, None));
            }
            if ran > Duration::ZERO {
                self.moments.push(Moment::Run(Duration(ran.0 / pieces)));
            }
        }
        let rest = more + 1 - pieces;
        let received = (0..rest).map(|_| Moment::Await(Kind::Outside, None));
        self.moments.extend(received);
    }

    pub fn push(&mut self, moment: Moment) {
        self.flush();
        self.moments.push(moment);
    }

    /// The last computation was not over at the end, and would have lasted for `span` at most.
    pub fn unfinished(&mut self, span: Duration) {
        self.ran = self.ran.max(span);
        self.flush();
    }

    /// Whether any of it takes time for sure.
    pub fn takes_time(&self) -> bool {
        let runs = |moment: &Moment| matches!(moment, Moment::Run(span) if span.as_ns() > 0);
        self.moments.iter().any(runs)
    }

    pub fn wakes_others(&self) -> bool {
        let posts = |moment: &Moment| matches!(moment, Moment::Post(..));
        self.moments.iter().any(posts)
    }

    /// Whether the timers that woke it were at even distances, rather than so long after it slept:
    /// of the two the one that differs less.
    pub fn is_periodic(&self) -> bool {
        let timers = self.moments.iter().filter_map(|moment| match moment {
            Moment::Timer { slept, since } => Some((slept.0, since.0)),
            _ => None,
        });
        // The first is since the beginning of the recording.
        let (slept, since): (Vec<u64>, Vec<u64>) = timers.skip(1).unzip();
        slept.len() > 1 && spread(since) <= spread(slept)
    }
}

/// The sum of how far each is from the median.
fn spread(mut of: Vec<u64>) -> u128 {
    of.sort_unstable();
    let median = of.get(of.len() / 2).copied().unwrap_or(0);
    let off = of.iter().map(|value| value.abs_diff(median));
    off.map(u128::from).sum()
}
