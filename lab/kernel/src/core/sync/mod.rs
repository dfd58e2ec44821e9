//! What tasks and CPUs wait for each other with: spin locks, semaphores, mutexes.

pub(crate) mod lock;
pub(crate) mod semaphore;
pub(crate) mod user;
