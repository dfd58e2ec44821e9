//! Locks of the kernel, by which paths wait for each other.

use std::collections::BTreeMap;

use crate::execution::Lock;

/// Who holds which lock, by the number of the path.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<Lock, usize>);

impl Locks {
    /// Takes all of `locks`, or none if somebody else has one of them.
    pub(super) fn try_all(&mut self, path: usize, locks: &[Lock]) -> bool {
        let free = |lock: &Lock| self.0.get(lock).is_none_or(|holder| *holder == path);
        let all = locks.iter().all(free);
        if all {
            self.0.extend(locks.iter().map(|lock| (*lock, path)));
        }
        all
    }

    /// Gives a lock back, if the path has it: a program may unlock what it has not locked.
    pub(super) fn release(&mut self, path: usize, lock: Lock) {
        if self.holds(path, lock) {
            self.0.remove(&lock);
        }
    }

    pub(super) fn holds(&self, path: usize, lock: Lock) -> bool {
        self.0.get(&lock) == Some(&path)
    }

    /// A path is over.
    pub(super) fn release_all(&mut self, path: usize) {
        self.0.retain(|_, holder| *holder != path);
    }
}
