//! All spin locks of a kernel.

use warmq_units::{Address, CpuId, Duration, Instant, LockId};

use crate::core::memory::Memory;
use crate::core::sync::lock::{Released, SpinLock, Spinning};
use crate::words::settings::LockKind;

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

    /// Compiles Lockmeter into this kernel.
    pub(crate) fn compile_lockmeter(&mut self) {
        self.spinning.lockmeter = true;
    }

    pub(crate) fn has_lockmeter(&self) -> bool {
        self.spinning.lockmeter
    }

    /// See [`SpinLock::request`].
    pub(crate) fn request(
        &mut self,
        lock: LockId,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Option<Duration> {
        self.locks[lock.index()].request(&self.spinning, memory, cpu, now)
    }

    /// See [`SpinLock::try_request`].
    pub(crate) fn try_request(
        &mut self,
        lock: LockId,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> (bool, Duration) {
        self.locks[lock.index()].try_request(&self.spinning, memory, cpu, now)
    }

    /// See [`Spinning::before_release`].
    pub(crate) fn before_release(
        &self,
        lock: LockId,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Duration {
        let lock = &self.locks[lock.index()];
        self.spinning.before_release(memory, lock, cpu, now)
    }

    /// See [`SpinLock::release`].
    pub(crate) fn release(
        &mut self,
        lock: LockId,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Option<Released> {
        self.locks[lock.index()].release(&self.spinning, memory, cpu, now)
    }
}
