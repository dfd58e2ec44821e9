//! How a run can end. Endings are values: a scheduler's bad answer is a result, not a panic.

use std::fmt;

use warmq_units::{CpuId, Duration, Instant, TaskId};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every task exited.
    WorkDone,
    /// The requested time has passed.
    TimeUp,
    /// The scheduler gave an answer that no kernel could act on.
    SchedulerBroke(Violation),
    /// Nothing can happen any more, or a task makes no progress.
    Stalled(Stall),
    /// A program did something that no kernel or library allows.
    ProgramBroke {
        /// The task.
        task: TaskId,
        /// Its name.
        comm: String,
        /// What it did wrong.
        misuse: Misuse,
        /// When it happened.
        at: Instant,
    },
    /// There was no memory for a fork, a connection or the scheduler's own data.
    MemoryFull {
        /// When it happened.
        at: Instant,
    },
}

/// What a program must not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// It cannot go on as it is written, as the text says.
    #[error("{0}")]
    GivesUp(String),
    /// It unlocked a mutex that it does not hold (EPERM).
    #[error("unlocked mutex {mutex}, which {}", held_by(owner))]
    UnlocksWhatItDoesNotHold {
        /// The mutex.
        mutex: u32,
        /// The task that holds it, if any.
        owner: Option<TaskId>,
    },
    /// It released a spin lock that it does not hold.
    #[error("unlocked spin lock {lock}, which {}", held_by(owner))]
    ReleasesWhatItDoesNotHold {
        /// The lock.
        lock: u32,
        /// The task that holds it, if any.
        owner: Option<TaskId>,
    },
}

/// A rule that a scheduler broke, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When the answer was given.
    pub at: Instant,
    /// The CPU on which the scheduler was called.
    pub cpu: CpuId,
    /// The rule.
    pub rule: Rule,
}

/// The rules for a scheduler's answers, by what breaks them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// The task picked does not exist or has exited.
    #[error("picked {0}, which does not exist")]
    PickedNobody(TaskId),
    /// The task picked sleeps.
    #[error("picked {0}, which is not runnable")]
    PickedSleeper(TaskId),
    /// The task picked runs on another CPU.
    #[error("picked {0}, which runs on {1}")]
    PickedRunning(TaskId, CpuId),
    /// The task's affinity forbids the CPU.
    #[error("chose a CPU that the affinity of {0} forbids")]
    CpuNotAllowed(TaskId),
    /// The machine has no such CPU.
    #[error("chose {0}, which the machine lacks")]
    NoSuchCpu(CpuId),
    /// `pick_next` asked to try again too often.
    #[error("asked to pick again without end")]
    TriedTooOften,
    /// A lock was released by a CPU that does not hold it.
    #[error("released a lock that it does not hold")]
    NotTheHolder,
    /// A callback took a lock and did not release it.
    #[error("kept a lock beyond the callback that took it")]
    KeptLock,
    /// It gave up, or was stopped, for this reason.
    #[error("was ejected: {0}")]
    Ejected(String),
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stall {
    /// A runnable task never got a CPU.
    #[error("{task} ({comm}) is runnable since {since} and never ran: {waited}")]
    NeverRan {
        /// The task that waits.
        task: TaskId,
        /// Its name.
        comm: String,
        /// Since when it has been runnable.
        since: Instant,
        /// How long it has waited.
        waited: Duration,
    },
    /// A task does one operation after another and no time passes.
    #[error("{comm} works without end while time stands still at {at}")]
    NoProgress {
        /// The task that loops.
        task: Option<TaskId>,
        /// Its name.
        comm: String,
        /// When it happened.
        at: Instant,
    },
    /// More is to happen than can be kept: a source that sends faster than anything is received.
    #[error(
        "more than {MOST_PENDING} events are to come at {at}: sources send too much, or timers \
         expire too often"
    )]
    TooManyEvents {
        /// When it happened.
        at: Instant,
    },
    /// All tasks wait for events that can no longer happen.
    #[error("from {at} on all {tasks} tasks wait for ever: {}", waits(who))]
    WaitsForEver {
        /// The first few tasks, and what each waits for.
        who: Vec<(TaskId, String, Waiting)>,
        /// How many tasks wait in all.
        tasks: usize,
        /// The time from which nothing can happen any more.
        at: Instant,
    },
}

/// What a sleeping task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A point in time.
    Timer,
    /// Data on a socket.
    Data(u32),
    /// Room in a socket's buffer.
    Room(u32),
    /// A socket that another task's call owns.
    Socket(u32),
    /// A connection on a listening socket.
    Connection(u32),
    /// A mutex.
    Mutex(u32),
    /// The futex of a spin lock.
    Spinlock(u32),
    /// A condition.
    Condition(u32),
    /// A barrier.
    Barrier(u32),
    /// Softirqs to run; only `ksoftirqd` waits for these.
    Softirqs,
    /// A SysV semaphore.
    Semaphore(u32),
    /// SIGCONT: it is stopped.
    Continue,
    /// Its group is thawed.
    Thaw,
    /// The next period of its group, which has used up its quota.
    Quota,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Timer => write!(formatter, "a timer"),
            Waiting::Data(socket) => write!(formatter, "data on socket {socket}"),
            Waiting::Room(socket) => write!(formatter, "room in the buffer of socket {socket}"),
            Waiting::Socket(socket) => write!(formatter, "another task's call of socket {socket}"),
            Waiting::Connection(listener) => write!(formatter, "a connection on {listener}"),
            Waiting::Mutex(mutex) => write!(formatter, "mutex {mutex}"),
            Waiting::Spinlock(lock) => write!(formatter, "spin lock {lock}"),
            Waiting::Condition(condition) => write!(formatter, "condition {condition}"),
            Waiting::Barrier(barrier) => write!(formatter, "barrier {barrier}"),
            Waiting::Softirqs => write!(formatter, "softirqs"),
            Waiting::Semaphore(semaphore) => write!(formatter, "semaphore {semaphore}"),
            Waiting::Continue => write!(formatter, "a signal to continue"),
            Waiting::Thaw => write!(formatter, "its group to be thawed"),
            Waiting::Quota => write!(formatter, "the next period of its group"),
        }
    }
}

fn held_by(owner: &Option<TaskId>) -> String {
    owner.map_or("is not locked".to_owned(), |owner| format!("{owner} holds"))
}

fn waits(who: &[(TaskId, String, Waiting)]) -> String {
    let each = who.iter();
    let each = each.map(|(task, comm, waiting)| format!("{task} ({comm}) for {waiting}"));
    each.collect::<Vec<String>>().join("; ")
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::WorkDone => write!(formatter, "work done"),
            Ending::TimeUp => write!(formatter, "time up"),
            Ending::SchedulerBroke(Violation { at, cpu, rule }) => {
                write!(
                    formatter,
                    "the scheduler broke a rule at {at} on {cpu}: it {rule}"
                )
            }
            Ending::ProgramBroke {
                task,
                comm,
                misuse,
                at,
            } => write!(
                formatter,
                "{task} ({comm}) broke a rule at {at}: it {misuse}"
            ),
            Ending::MemoryFull { at } => write!(formatter, "the machine's memory was full at {at}"),
            Ending::Stalled(stall) => write!(formatter, "stalled: {stall}"),
        }
    }
}

/// Events that may be pending. The largest scenarios (100,000 tasks) have one or two for each task.
pub(crate) const MOST_PENDING: usize = 1 << 22;
