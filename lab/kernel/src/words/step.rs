//! Steps: the work that a CPU has to do before it returns to user mode.
//!
//! Each task has a kernel stack of steps, as a real task has one of frames. System calls and
//! interrupts push steps; the CPU pops and performs them one after another, and is busy for as long
//! as each takes. A task that sleeps in the middle of a system call keeps its stack and continues
//! from there.

use warmq_trace::Interrupt;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::words::{
    Balance, Fragment, GroupId, Look, Nic, Operation, Origin, Semaphore, Socket, Timer, Touch, Why,
};

/// How a CPU's time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// In a program.
    User,
    /// In the kernel on behalf of a task.
    System,
    /// In a hardware interrupt.
    Interrupt,
    /// In a softirq.
    Softirq,
    /// Waiting busily: for a spin lock, or for another CPU.
    Spin,
    /// Nothing to do.
    #[default]
    Idle,
}

impl Mode {
    /// All modes. The times of a CPU in all of them add up to wall time.
    pub const ALL: [Mode; 6] = [
        Mode::User,
        Mode::System,
        Mode::Interrupt,
        Mode::Softirq,
        Mode::Spin,
        Mode::Idle,
    ];
}

/// How a CPU waits busily for what another one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyWait {
    /// It takes no interrupts meanwhile.
    InterruptsOff,
    /// It takes interrupts, and runs no other task.
    InterruptsOn,
}

/// Wakes `task`, without `WF_SYNC`.
pub(crate) fn wake(task: TaskId) -> Step {
    Step::Wake { task, sync: false }
}

/// Where a CPU is before it performs a step, which decides whether it may be preempted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preemptible {
    /// In user mode.
    User,
    /// In the kernel, at a point where code says that it might sleep.
    Point,
    /// In the kernel.
    Kernel,
    /// In the kernel with preemption disabled: a spin lock is about to be taken, or the scheduler
    /// to be called. (With a lock held, interrupts are off as well.)
    No,
}

impl Step {
    pub(crate) fn preemptible(&self) -> Preemptible {
        match self {
            Step::Busy { user: true, .. }
            | Step::Touch { user: true, .. }
            | Step::Look(_)
            | Step::ReturnToUser(_) => Preemptible::User,
            Step::Perform(_) | Step::Touch { .. } => Preemptible::Point,
            Step::Acquire(_)
            | Step::PutPrev(_)
            | Step::BusyWait(_)
            | Step::Activate(..)
            | Step::SetWeight(_)
            | Step::SetCpumask(_)
            | Step::CpumaskChanged(_) => Preemptible::No,
            _ => Preemptible::Kernel,
        }
    }
}

pub(crate) enum Step {
    /// Time passes.
    Busy {
        left: Duration,
        user: bool,
    },
    /// Goes back to the user code that was interrupted, after everything that is done on the way
    /// there.
    ReturnToUser(Duration),
    /// Touches memory.
    Touch {
        touch: Touch,
        user: bool,
    },
    /// Looks at a spin lock of user space.
    Look(Look),
    /// Takes a lock, spinning if it is held, with interrupts off from here to the release.
    Acquire(LockId),
    Release(LockId),
    /// Releases a lock: Lockmeter's access, then the releasing store.
    Unlock(LockId),
    /// The current task is about to exit, and leaves its autogroup.
    LeaveAutogroup,
    Schedule,
    Pick {
        locks: [Option<LockId>; 2],
        tries: u32,
    },
    Unlocked,
    Switch {
        next: Option<TaskId>,
        paid: bool,
    },
    PutPrev(TaskId),
    /// Waits for another CPU, for as long as the scheduler says so.
    BusyWait(BusyWait),
    Wake {
        task: TaskId,
        sync: bool,
    },
    /// Makes a task runnable on a CPU.
    Activate(TaskId, CpuId, Why),
    /// The scheduler hears of a child.
    Fork(TaskId),
    /// The tick while this task runs.
    Tick(Option<TaskId>),
    YieldTask(TaskId),
    SetWeight(TaskId),
    SetCpumask(TaskId),
    /// Calls the scheduler's `set_cpumask`, under the locks that it asks for.
    CpumaskChanged(TaskId),
    EndInterrupt(Interrupt),
    /// The CPU, which was taken away for so long, is back.
    Returned(Duration),
    /// The card's interrupt handler: masks the card's interrupts and puts it on the poll list.
    ScheduleNapi(Nic),
    /// Runs raised softirqs: one round, by its number, of a series that began then.
    Softirqs(u32, Instant),
    BeginSoftirq(Interrupt),
    EndSoftirq(Interrupt),
    /// Handles packets of the poll list one after another, within the budgets.
    NetRx(Run),
    /// Ends a stretch of a system call that ran as a softirq (`local_bh_enable()`): what was raised
    /// meanwhile runs next.
    EnableSoftirqs,
    /// What `ksoftirqd` does next.
    Ksoftirqd,
    Balance(Balance),
    /// Pulls tasks from a CPU.
    Pull(CpuId, Balance),
    /// Picks again in `schedule()`, after a newly idle balance.
    PickAgain,
    SchedulerTimer(u64),
    SetGroupWeight(GroupId),
    /// Performs the changes that operators asked for, one after another.
    Changes,
    /// A period of a group with a quota is over.
    Refill(GroupId),
    /// What queues of a group returned is handed out.
    HandOutSlack(GroupId),
    /// The current task names the data that an operator made it name.
    SetFragment(Option<Fragment>),
    Perform(Operation),
    /// Delivers a datagram of `bytes` that a sender has copied to its socket, which may drop it.
    DeliverDatagram(Socket, u64),
    /// Sends an answer of `bytes`, which a task has copied, to a remote peer.
    TransmitAnswer(Origin, u64),
    /// Makes `bytes` that a sender has copied available to the receiver, which takes the protocols
    /// so long in a softirq.
    Deliver(Socket, u64, Duration),
    /// Frees the room of `bytes` that a receiver has copied. What it sends back, if it does, takes
    /// the protocols so long in a softirq.
    Take(Socket, u64, Option<Duration>),
    /// Writes what a pipe keeps, under its mutex.
    WritePipe(Socket),
    /// A send or a receive gives up its end of a stream (`release_sock()`).
    ReleaseSocket(Socket),
    /// A wait is over: the timer that would have ended it is cancelled, if it has not expired.
    CancelTimeout(Timer),
    /// `semop()` with the lock held.
    Semop(Semaphore, bool),
    Answer(u64),
    /// `do_exit()`, up to where the task is no more.
    Exit,
    /// The rest of it.
    Exited,
}

/// What a CPU is doing, since `since`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    pub(crate) mode: Mode,
    pub(crate) since: Instant,
    /// When the step in progress ends; `None` while idle or spinning.
    pub(crate) until: Option<Instant>,
}

/// What a CPU polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The ring of a card.
    Card(Nic),
    /// The CPU's backlog (`process_backlog()`).
    Backlog,
}

/// A run of the receive softirq.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Packets that it may still handle.
    pub(crate) packets: u32,
    /// Packets taken in the poll in progress.
    pub(crate) polled: u32,
    /// When it began.
    pub(crate) since: Instant,
}
