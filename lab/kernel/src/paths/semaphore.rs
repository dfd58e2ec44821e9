//! SysV semaphores. One spin lock guards all sets of the system in Linux 2.4, and one each set
//! since 2.6 (`ipc_lock()`). That 3.10 gave each semaphore a lock of its own, and wakes after it is
//! released, is not modelled.
//!
//! `semop()` holds the lock while it searches the set's sleepers and during the wakeup, hence also
//! while it waits for a run-queue lock. A woken task has what it waited for, but for Linux 2.4 and
//! 2.6.4, where it takes the lock again and retries.

use warmq_machine::Access;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::core::Raised;
use crate::paths::{Flow, System};
use crate::words::{Mode, Operation, Semaphore, Step, Waiting, wake};

impl System {
    /// `semop()`: one semaphore up or down by one, under the lock of its set.
    pub(crate) fn semop(&mut self, cpu: CpuId, semaphore: Semaphore, up: bool) -> Flow {
        let lock = self.semaphore_lock(semaphore);
        let steps = [Step::Semop(semaphore, up), Step::Acquire(lock)];
        self.core.cpu(cpu).stack.extend(steps);
        Flow::Next
    }

    fn semaphore_lock(&self, semaphore: Semaphore) -> LockId {
        self.core.sync.semaphores.lock_of(semaphore)
    }

    /// `semop()` with the lock held.
    pub(crate) fn semop_locked(&mut self, cpu: CpuId, semaphore: Semaphore, up: bool) -> Flow {
        let line = self.core.memory.line();
        let own = self.core.sync.semaphores.addresses(semaphore, line);
        let own = own.map(|address| (address, Access::Write));
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
        let hands_over = self.core.settings.semaphores_hand_over;
        let Raised { looked_at, woken } = self.core.sync.semaphores.raise(semaphore, hands_over);
        let entry = |task: &TaskId| (self.core.queue_entry(*task), Access::Read);
        let entries: Vec<_> = looked_at.iter().map(entry).collect();
        let took = self.core.touch_all(cpu, &entries);
        self.core.cpu(cpu).stack.extend(woken.map(wake));
        took
    }

    /// Subtracts one from `semaphore`; if it is 0, sleeps until it is raised, and retries where
    /// that has not lowered it for this task.
    fn lower(&mut self, cpu: CpuId, semaphore: Semaphore) -> Duration {
        let release = Step::Release(self.semaphore_lock(semaphore));
        let current = self.core.current(cpu);
        if self.core.sync.semaphores.lower(semaphore, current) {
            self.core.cpu(cpu).stack.push(release);
            return Duration::ZERO;
        }
        let entry = self.core.queue_entry(current);
        if !self.core.settings.semaphores_hand_over {
            let up = false;
            let operation = Operation::Semop { semaphore, up };
            self.core.cpu(cpu).stack.push(Step::Perform(operation));
        }
        self.sleep(cpu, current, Waiting::Semaphore(semaphore.0));
        self.core.cpu(cpu).stack.push(release);
        self.core.touch_all(cpu, &[(entry, Access::Write)])
    }
}
