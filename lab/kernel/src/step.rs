//! Steps: what a CPU still has to do before it is back in user mode.
//!
//! Each task has a kernel stack of them, as a real one has frames. System calls and interrupts
//! push steps, the CPU pops one after the other; where one takes time, the CPU is busy until then.
//! A task that sleeps in the middle of a system call keeps its stack, and goes on from there.

use warmq_trace::Interrupt;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::group::GroupId;
use crate::operation::{Nic, Operation, Semaphore, Socket, Touch};
use crate::scheduler::{Balance, Locks, Why};

/// How a CPU's time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// In a program.
    User,
    /// In the kernel on behalf of a task.
    System,
    /// In a hardware interrupt.
    Interrupt,
    /// In a softirq.
    Softirq,
    /// Waiting for a spin lock.
    Spin,
    /// Nothing to do.
    Idle,
}

impl Mode {
    /// All modes; they sum up to wall time.
    pub const ALL: [Mode; 6] = [
        Mode::User,
        Mode::System,
        Mode::Interrupt,
        Mode::Softirq,
        Mode::Spin,
        Mode::Idle,
    ];
}

/// Wakes `task`; the waker does not say that it is about to sleep.
pub(crate) fn wake(task: TaskId) -> Step {
    Step::Wake { task, sync: false }
}

/// Whether a CPU that is about to do a step may be given to another task first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preemptible {
    /// It is in user mode.
    User,
    /// It is in the kernel, where code says that it might sleep.
    Point,
    /// It is in the kernel.
    Kernel,
    /// It is in the kernel, which has disabled preemption: a spin lock is about to be taken, or the
    /// scheduler to be called. (With a lock held, interrupts are off as well.)
    No,
}

impl Step {
    pub(crate) fn preemptible(&self) -> Preemptible {
        match self {
            Step::Busy { user: true, .. } | Step::Touch { user: true, .. } => Preemptible::User,
            Step::Perform(_) | Step::Touch { .. } => Preemptible::Point,
            Step::Acquire(_)
            | Step::PutPrev(_)
            | Step::Activate { .. }
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
    /// Memory is touched, from the `done`-th line on.
    Touch {
        touch: Touch,
        done: u64,
        user: bool,
    },
    /// Spin for a lock, with interrupts off from here to the release.
    Acquire(LockId),
    Release(LockId),
    /// The store that releases, after what Lockmeter does before it.
    Unlock(LockId),
    Schedule,
    Pick {
        locks: Locks,
        tries: u32,
    },
    Unlocked,
    Switch {
        next: Option<TaskId>,
        paid: bool,
    },
    PutPrev(TaskId),
    Wake {
        task: TaskId,
        sync: bool,
    },
    Activate {
        task: TaskId,
        target: CpuId,
        why: Why,
    },
    Fork {
        child: TaskId,
    },
    Tick {
        running: Option<TaskId>,
    },
    YieldTask(TaskId),
    SetWeight(TaskId),
    SetCpumask(TaskId),
    /// Tells the scheduler of an affinity, under the locks that it wants for that.
    CpumaskChanged(TaskId),
    EndInterrupt {
        interrupt: Interrupt,
    },
    /// The card's interrupt handler: masks its interrupts, and has it polled.
    ScheduleNapi(Nic),
    /// Raised softirqs run in rounds, the `round`-th of a series that began at `since`.
    Softirqs {
        round: u32,
        since: Instant,
    },
    BeginSoftirq(Interrupt),
    EndSoftirq(Interrupt),
    /// One packet of the poll list after the other, as long as the budgets last.
    NetRx {
        packets: u32,
        weight: u32,
        since: Instant,
    },
    /// A path that ran as a softirq in a system call is over (`local_bh_enable()`).
    EnableSoftirqs,
    /// What `ksoftirqd` does next.
    Ksoftirqd,
    Balance(Balance),
    Pull {
        from: CpuId,
        when: Balance,
    },
    /// `schedule()` after a newly idle balance: picks again.
    PickAgain,
    SchedulerTimer(u64),
    SetGroupWeight(GroupId),
    Perform(Operation),
    /// A datagram of `bytes` that a sender copied reaches its socket, or is dropped there.
    DeliverDatagram {
        socket: Socket,
        bytes: u64,
    },
    /// `bytes` that a sender copied are there to be received.
    Deliver {
        socket: Socket,
        bytes: u64,
    },
    /// `bytes` that a receiver copied make room.
    Take {
        socket: Socket,
        bytes: u64,
    },
    /// `semop()` with the lock held.
    Semop {
        semaphore: Semaphore,
        up: bool,
    },
    Answer(u64),
    Exit,
}

/// What a CPU does from `since` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    pub(crate) mode: Mode,
    pub(crate) since: Instant,
    /// When the step in progress ends; `None` while idle or spinning.
    pub(crate) until: Option<Instant>,
}
