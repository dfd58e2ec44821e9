//! Why and how the scheduler is called: circumstances of wakeups, kinds of balancing, locks.

use warmq_units::TaskId;

use crate::words::Waiting;

/// The context in which a task is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeContext {
    /// In a hardware interrupt.
    Interrupt,
    /// In a softirq, run on the way out of an interrupt or in the sender's system call.
    Softirq,
    /// In a task's own system call.
    Task,
}

/// The circumstances of a wakeup (`try_to_wake_up()` and its `wake_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The task that ran on the waking CPU, if any: the waker, or the task that was interrupted.
    pub current: Option<TaskId>,
    /// The context of the waking code.
    pub context: WakeContext,
    /// The waker announces that it is about to sleep (`WF_SYNC`).
    pub sync: bool,
    /// What the task waited for.
    pub slept: Waiting,
    /// That is an end of a pipe.
    pub pipe: bool,
}

/// Why a task joins the run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was just created.
    Fork,
    /// It slept and was woken.
    Wakeup(Wakeup),
}

/// When [`Scheduler::balance`](crate::Scheduler::balance) is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Balance {
    /// In the softirq that [`Context::raise_balance`](crate::Context::raise_balance) raised, on a
    /// busy CPU.
    Tick,
    /// The same on an idle CPU.
    Idle,
    /// In `schedule()`, when `pick_next` found nothing and the CPU is about to idle.
    NewlyIdle,
}
