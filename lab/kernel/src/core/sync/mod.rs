//! What tasks and CPUs wait for each other with: spin locks, semaphores, mutexes.

pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod semaphore;
pub(crate) mod user;

use crate::core::sync::semaphore::Semaphores;
use crate::core::sync::user::{BarrierState, ConditionState, MutexState};
use crate::words::operation::{Barrier, Condition, Mutex};
use crate::words::table::Table;

/// What tasks wait for each other with.
#[derive(Default)]
pub(crate) struct SyncState {
    pub(crate) mutexes: Table<Mutex, MutexState>,
    pub(crate) conditions: Table<Condition, ConditionState>,
    pub(crate) barriers: Table<Barrier, BarrierState>,
    pub(crate) semaphores: Semaphores,
}
