//! What tasks and CPUs wait for each other with: spin locks, semaphores, mutexes.

mod lock;
mod locks;
mod semaphore;
mod user;

pub use self::lock::*;
pub(crate) use self::{locks::*, semaphore::*, user::*};

use crate::words::{Barrier, Condition, Mutex, Spinlock, Table};

/// What tasks wait for each other with.
#[derive(Default)]
pub(crate) struct SyncState {
    pub(crate) mutexes: Table<Mutex, MutexState>,
    pub(crate) spinlocks: Table<Spinlock, SpinlockState>,
    pub(crate) conditions: Table<Condition, ConditionState>,
    pub(crate) barriers: Table<Barrier, BarrierState>,
    pub(crate) semaphores: Semaphores,
}
