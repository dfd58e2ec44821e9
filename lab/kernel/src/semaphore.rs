//! SysV semaphores. One spin lock guards all sets of the system in Linux 2.4, and one each set since 2.6 (`ipc_lock()`).
//! That 3.10 gave each semaphore a lock of its own, and wakes after it is released, is not modelled.
//!
//! `semop()` holds the lock while it searches the set's sleepers and during the wakeup, hence also
//! while it waits for a run-queue lock. A woken task takes it again and retries.

use std::collections::VecDeque;

use warmq_machine::{Access, OutOfMemory};
use warmq_units::{Address, Bytes, CpuId, Duration, LockId, TaskId};

use crate::boot::Boot;
use crate::core::Core;
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::lock::SpinLock;
use crate::memory::Within;
use crate::words::ending::Waiting;
use crate::words::operation::{Operation, Semaphore};
use crate::words::settings::SemaphoreLocks;
use crate::words::step::{Mode, Step, wake};

/// Bytes of `struct sem`: its value, and the pid of the last operation.
const SEM: u64 = 8;

/// The sleeper's queue entry lies on its kernel stack, this far below the top.
const ENTRY: u64 = 0x100;

/// All semaphores of the system.
#[derive(Default)]
pub(crate) struct Semaphores {
    sets: Vec<Set>,
    semaphores: Vec<State>,
}

/// A set: semaphores that were created together.
struct Set {
    /// Guards it, and with one lock for all sets the others.
    lock: LockId,
    /// The address of the header; the values follow it.
    address: Address,
    /// The tasks that sleep on one of them, in the order of arrival.
    sleepers: VecDeque<(TaskId, Semaphore)>,
}

struct State {
    set: usize,
    number: u64,
    value: u64,
}

impl Boot<'_> {
    /// A set of `count` semaphores, each of value `initial`.
    pub fn semaphores(&mut self, count: u32, initial: u64) -> Result<Vec<Semaphore>, OutOfMemory> {
        let core = self.core();
        let line = core.memory.line();
        let address = core.kernel_data(Bytes(line + u64::from(count) * SEM));
        let lock = core.lock_of_new_set(address);
        if let Some(full) = core.memory_full {
            return Err(full);
        }
        let Semaphores { sets, semaphores } = &mut core.semaphores;
        let sleepers = VecDeque::new();
        sets.push(Set {
            lock,
            address,
            sleepers,
        });
        let first = semaphores.len() as u32;
        semaphores.extend((0..count).map(|number| State {
            set: sets.len() - 1,
            number: number.into(),
            value: initial,
        }));
        Ok((first..first + count).map(Semaphore).collect())
    }
}

impl Core {
    /// The lock of a set whose header is at `address`. Where each set has its own it lies in the header; sets beyond
    /// the number that locks can have share the last one.
    fn lock_of_new_set(&mut self, address: Address) -> LockId {
        let own = self.settings.semaphore_locks == SemaphoreLocks::OneForEachSet;
        let word = match self.semaphores.sets.last() {
            Some(last) if !own || self.locks.len() > usize::from(u16::MAX) => return last.lock,
            _ if own => address,
            _ => self.kernel_data(Bytes(self.memory.line())),
        };
        self.locks.push(SpinLock::new("sem_lock", word));
        LockId((self.locks.len() - 1) as u16)
    }

    /// Makes accesses that depend on each other; returns how long they take.
    fn touch_all(&mut self, cpu: CpuId, lines: &[(Address, Access)]) -> Duration {
        let mut at = self.now();
        for (address, access) in lines {
            at += self
                .memory
                .access(cpu, *address, *access, at, Within::Elsewhere);
        }
        at - self.now()
    }
}

impl Engine {
    /// `semop()`: one semaphore up or down by one, under the lock of its set.
    pub(crate) fn semop(&mut self, cpu: CpuId, semaphore: Semaphore, up: bool) -> Flow {
        let lock = self.semaphore_lock(semaphore);
        let steps = [Step::Semop { semaphore, up }, Step::Acquire(lock)];
        self.core.cpu(cpu).stack.extend(steps);
        Flow::Next
    }

    fn semaphore_lock(&self, semaphore: Semaphore) -> LockId {
        let Semaphores { sets, semaphores } = &self.core.semaphores;
        sets[semaphores[semaphore.index()].set].lock
    }

    /// `semop()` with the lock held.
    pub(crate) fn semop_locked(&mut self, cpu: CpuId, semaphore: Semaphore, up: bool) -> Flow {
        let state = &self.core.semaphores.semaphores[semaphore.index()];
        let header = self.core.semaphores.sets[state.set].address;
        let value = header + self.core.memory.line() + state.number * SEM;
        let own = [(header, Access::Write), (value, Access::Write)];
        let took = self.core.touch_all(cpu, &own);
        let looked = match up {
            true => self.raise(cpu, semaphore),
            false => self.lower(cpu, semaphore),
        };
        Flow::Takes(took + looked, Mode::System)
    }

    /// Adds one to `semaphore`, and wakes the first sleeper that can continue before the lock is
    /// released.
    fn raise(&mut self, cpu: CpuId, semaphore: Semaphore) -> Duration {
        let release = Step::Release(self.semaphore_lock(semaphore));
        self.core.cpu(cpu).stack.push(release);
        let semaphores = &mut self.core.semaphores;
        let state = &mut semaphores.semaphores[semaphore.index()];
        state.value += 1;
        let sleepers = &mut semaphores.sets[state.set].sleepers;
        let first = sleepers.iter().position(|(_, wants)| *wants == semaphore);
        let looked_at = first.map_or(sleepers.len(), |first| first + 1);
        let entries: Vec<TaskId> = sleepers.iter().take(looked_at).map(|it| it.0).collect();
        let woken = first.and_then(|first| sleepers.remove(first));
        let entry = |task: &TaskId| (self.core.queue_entry(*task), Access::Read);
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let took = self.core.touch_all(cpu, &entries);
        if let Some((task, _)) = woken {
            self.core.cpu(cpu).stack.push(wake(task));
        }
        took
    }

    /// Subtracts one from `semaphore`; if it is 0, sleeps until it is raised, and retries.
    fn lower(&mut self, cpu: CpuId, semaphore: Semaphore) -> Duration {
        let release = Step::Release(self.semaphore_lock(semaphore));
        let semaphores = &mut self.core.semaphores;
        let state = &mut semaphores.semaphores[semaphore.index()];
        if state.value > 0 {
            state.value -= 1;
            self.core.cpu(cpu).stack.push(release);
            return Duration::ZERO;
        }
        let set = state.set;
        let current = self.core.cpu(cpu).current;
        let current = current.expect("system calls come from tasks");
        let sleepers = &mut self.core.semaphores.sets[set].sleepers;
        sleepers.push_back((current, semaphore));
        let entry = self.core.queue_entry(current);
        let operation = Operation::Semop {
            semaphore,
            up: false,
        };
        self.core.cpu(cpu).stack.push(Step::Perform(operation));
        self.sleep(cpu, current, Waiting::Semaphore(semaphore.0));
        self.core.cpu(cpu).stack.push(release);
        self.core.touch_all(cpu, &[(entry, Access::Write)])
    }
}

impl Core {
    /// The address of the entry that links a task sleeping in `semop()` to its set.
    fn queue_entry(&self, task: TaskId) -> Address {
        let top = self.task(task).block + self.settings.block.0;
        Address(top.0 - ENTRY)
    }
}
