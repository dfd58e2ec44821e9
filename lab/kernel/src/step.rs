//! Steps: what a CPU still has to do before it is back in user mode.
//!
//! Each task has a kernel stack of them, as a real one has frames. System calls and interrupts
//! push steps, the CPU pops one after the other; where one takes time, the CPU is busy until then.
//! A task that sleeps in the middle of a system call keeps its stack, and goes on from there.

use warmq_trace::Interrupt;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::operation::{Nic, Operation, Socket, Touch};
use crate::scheduler::{Locks, Why};

/// How a CPU's time is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// In a program.
    User,
    /// In the kernel on behalf of a task.
    System,
    /// In an interrupt or softirq.
    Interrupt,
    /// Waiting for a spin lock.
    Spin,
    /// Nothing to do.
    Idle,
}

impl Mode {
    /// All modes; they sum up to wall time.
    pub const ALL: [Mode; 5] = [
        Mode::User,
        Mode::System,
        Mode::Interrupt,
        Mode::Spin,
        Mode::Idle,
    ];
}

/// Wakes `task`; the waker does not say that it is about to sleep.
pub(crate) fn wake(task: TaskId) -> Step {
    Step::Wake { task, sync: false }
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
    EndInterrupt {
        interrupt: Interrupt,
    },
    Poll(Nic),
    Perform(Operation),
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
