//! Mutexes and conditions of user space.

use std::collections::VecDeque;

use warmq_units::TaskId;

/// A mutex that is handed to the task that waited longest.
///
/// Invariant: whoever waits, waits behind an owner.
#[derive(Default)]
pub(crate) struct MutexState {
    pub(crate) owner: Option<TaskId>,
    pub(crate) waiters: VecDeque<TaskId>,
}

impl MutexState {
    /// Hands the mutex on; returns its new owner, who sleeps and must be woken.
    pub(crate) fn hand_on(&mut self) -> Option<TaskId> {
        self.owner = self.waiters.pop_front();
        self.owner
    }
}

/// A condition: tasks that wait, in the order of coming, each with the mutex it will want back.
#[derive(Default)]
pub(crate) struct ConditionState {
    pub(crate) waiters: VecDeque<TaskId>,
}
