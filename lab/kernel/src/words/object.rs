//! What tasks can wait for, for traces.

use warmq_trace::Cause;

use crate::words::{Barrier, Condition, Mutex, Semaphore, Socket, Spinlock};

/// Something that tasks can wait for, by its number in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A mutex.
    Mutex(Mutex),
    /// A spin lock of user space.
    Spinlock(Spinlock),
    /// A condition variable.
    Condition(Condition),
    /// A barrier.
    Barrier(Barrier),
    /// A semaphore.
    Semaphore(Semaphore),
    /// A socket: its data, or room in its buffer.
    Socket(Socket),
}

/// What a [`Part`] is part of: a bounded queue, for instance, has a mutex and two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is for those who wait for it.
    pub cause: Cause,
    /// Its number among all objects of the scenario.
    pub number: u32,
}
