//! The locks and lines of semaphores.

use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, Duration, LockId, TaskId};

use crate::core::Core;
use crate::core::memory::Within;
use crate::words::SemaphoreLocks;

/// The sleeper's queue entry lies on its kernel stack, this far below the top.
const ENTRY: u64 = 0x100;

impl Core {
    /// The lock of a set whose header is at `address`. Where each set has its own it lies in the
    /// header; sets beyond the number that locks can have share the last one.
    pub(crate) fn lock_of_new_set(&mut self, address: Address) -> LockId {
        let own = self.settings.semaphore_locks == SemaphoreLocks::OneForEachSet;
        let word = match self.sync.semaphores.last_lock() {
            Some(last) if !own || !self.locks.has_room() => return last,
            _ if own => address,
            _ => self.kernel_data(Bytes(self.memory.line())),
        };
        self.locks.add("sem_lock", word)
    }

    /// Makes accesses that depend on each other; returns how long they take.
    pub(crate) fn touch_all(&mut self, cpu: CpuId, lines: &[(Address, Access)]) -> Duration {
        let mut at = self.now();
        for (address, access) in lines {
            at += self
                .memory
                .access(cpu, *address, *access, at, Within::Elsewhere);
        }
        at - self.now()
    }

    /// The address of the entry that links a task sleeping in `semop()` to its set.
    pub(crate) fn queue_entry(&self, task: TaskId) -> Address {
        let top = self.task(task).block + self.settings.block.0;
        Address(top.0 - ENTRY)
    }
}
