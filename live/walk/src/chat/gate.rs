//! A gate at which threads wait until all begin.

use std::sync::{Condvar, Mutex, PoisonError};

/// Closed until it is opened, once and for all.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Lets all begin, or, with `begin` false, sends all home.
    pub fn open(&self, begin: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.get_or_insert(begin);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits; answers whether to begin.
    pub fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(begin) = *state {
                return begin;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
