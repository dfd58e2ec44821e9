//! Mutexes, spin locks, condition variables and barriers of user space.

use std::collections::{BTreeSet, VecDeque};

use warmq_units::{Address, CpuId, TaskId};

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

/// A spin lock: whoever looks at it while it is free takes it, however long others have waited.
///
/// Invariants: a CPU is in `looking` while its task computes between two looks, and its `looks_at`
/// is this lock then. A task marks the lock before it sleeps and when it takes it afterwards, so
/// that as long as tasks sleep, a release wakes one.
#[derive(Default)]
pub(crate) struct SpinlockState {
    pub(crate) owner: Option<TaskId>,
    /// Whoever releases it wakes one that sleeps (the 2 of a futex).
    pub(crate) marked: bool,
    pub(crate) looking: BTreeSet<CpuId>,
    pub(crate) sleepers: VecDeque<TaskId>,
    /// The line that it is in.
    pub(crate) line: Address,
}

/// A condition variable, or a futex: the waiting tasks in the order of arrival. Each of a condition
/// variable has on its stack that it locks the mutex again.
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
