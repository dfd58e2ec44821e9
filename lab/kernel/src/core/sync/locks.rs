//! All spin locks of a kernel.

use warmq_units::{Address, CpuId, LockId};

use crate::core::memory::Memory;
use crate::core::sync::{SpinLock, Spinning, Word};
use crate::words::LockKind;

/// The spin locks, those that the scheduler declared first.
pub(crate) struct SpinLocks {
    locks: Vec<SpinLock>,
    spinning: Spinning,
    of_scheduler: usize,
}

impl SpinLocks {
    /// `nodes` are needed for queued locks only: a separate line for each CPU.
    pub(crate) fn new(kind: LockKind, nodes: Vec<Address>) -> SpinLocks {
        SpinLocks {
            locks: Vec::new(),
            spinning: Spinning::new(kind, nodes),
            of_scheduler: 0,
        }
    }

    /// Adds a lock whose word is at `address`.
    pub(crate) fn add(&mut self, name: &'static str, address: Address) -> LockId {
        self.locks.push(SpinLock::new(name, address));
        LockId(self.locks.len() as u16 - 1)
    }

    /// Whether another lock would have a number.
    pub(crate) fn has_room(&self) -> bool {
        self.locks.len() <= usize::from(u16::MAX)
    }

    /// The scheduler has declared its locks.
    pub(crate) fn end_of_scheduler(&mut self) {
        self.of_scheduler = self.locks.len();
    }

    /// The locks that the scheduler declared, with their names.
    pub(crate) fn of_scheduler(&self) -> impl Iterator<Item = (LockId, &'static str)> {
        let locks = self.locks.iter().take(self.of_scheduler);
        (0..).map(LockId).zip(locks.map(|lock| lock.name))
    }

    /// Whether `cpu` holds a lock that the scheduler declared.
    pub(crate) fn is_held_by(&self, cpu: CpuId) -> bool {
        let mut locks = self.locks.iter().take(self.of_scheduler);
        locks.any(|lock| lock.is_held_by(cpu))
    }

    /// Compiles Lockmeter into this kernel.
    pub(crate) fn compile_lockmeter(&mut self) {
        self.spinning.lockmeter = true;
    }

    /// A lock as it is taken and released through `memory`.
    pub(crate) fn word<'a>(&'a mut self, lock: LockId, memory: &'a mut Memory) -> Word<'a> {
        let (lock, spinning) = (&mut self.locks[lock.index()], &self.spinning);
        Word {
            lock,
            spinning,
            memory,
        }
    }
}
