//! Mutexes, condition variables and barriers of user space.

use std::collections::VecDeque;

use warmq_units::TaskId;

/// A mutex. On unlock it is handed to the task that has waited longest.
///
/// Invariant: tasks wait only while the mutex has an owner.
#[derive(Default)]
pub(crate) struct MutexState {
    pub(crate) owner: Option<TaskId>,
    pub(crate) waiters: VecDeque<TaskId>,
}

impl MutexState {
    /// Hands the mutex over; returns its new owner, which sleeps and must be woken.
    pub(crate) fn hand_on(&mut self) -> Option<TaskId> {
        self.owner = self.waiters.pop_front();
        self.owner
    }
}

/// A condition variable: the waiting tasks in the order of arrival, each with the mutex to be
/// locked again.
#[derive(Default)]
pub(crate) struct ConditionState {
    pub(crate) waiters: VecDeque<TaskId>,
}

/// A barrier: whoever comes last wakes all others by one call (`pthread_barrier_wait()`).
///
/// Invariant: fewer tasks wait than it is for.
pub(crate) struct BarrierState {
    /// For how many tasks it opens.
    pub(crate) tasks: u64,
    pub(crate) waiters: Vec<TaskId>,
}
