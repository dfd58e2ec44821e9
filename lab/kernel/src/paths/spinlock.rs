//! Spin locks of user space: looks at one, its release, and its futex.

use warmq_units::CpuId;

use crate::paths::{Flow, System};
use crate::words::{Look, Looked, Misuse, Mode, Spinlock, Step, Waiting, wake};

impl System {
    /// Looks at a lock, and takes it if it is free.
    pub(crate) fn look(&mut self, cpu: CpuId, look: Look) -> Flow {
        let current = self.core.current(cpu);
        let taken = self.core.take_if_free(look.lock, current);
        self.core.sync.spinlocks[look.lock].marked |= look.marks;
        if !taken && look.left > 0 {
            return Flow::Takes(self.core.look_on(cpu, look), Mode::User);
        }
        let left = look.left;
        let answer = Looked { taken, left }.to_answer();
        self.core.cpu(cpu).stack.push(Step::Answer(answer));
        match taken {
            true => Flow::Takes(self.core.write_lock(cpu, look.lock), Mode::User),
            false => Flow::Next,
        }
    }

    /// `current` releases a lock. The answer is 1 if a task may sleep in its futex.
    pub(crate) fn release_spinlock(&mut self, cpu: CpuId, lock: Spinlock) {
        let current = self.core.current(cpu);
        let state = &mut self.core.sync.spinlocks[lock];
        if state.owner != Some(current) {
            let (lock, owner) = (lock.0, state.owner);
            let misuse = Misuse::ReleasesWhatItDoesNotHold { lock, owner };
            return self.core.program_broke(current, misuse);
        }
        state.owner = None;
        let marked = std::mem::take(&mut state.marked);
        let left = self.core.write_lock(cpu, lock);
        self.core.seen_free(lock);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Answer(marked.into()));
        stack.push(Step::Busy { left, user: true });
    }

    /// `futex(FUTEX_WAIT)`: sleeps while the lock is held and its owner will wake somebody.
    pub(crate) fn sleep_in_spinlock(&mut self, cpu: CpuId, lock: Spinlock) -> Flow {
        let current = self.core.current(cpu);
        let state = &mut self.core.sync.spinlocks[lock];
        if state.owner.is_some() && state.marked {
            state.sleepers.push_back(current);
            self.sleep(cpu, current, Waiting::Spinlock(lock.0));
        }
        self.push_futex_call(cpu);
        Flow::Next
    }

    /// `futex(FUTEX_WAKE)`: wakes the task that has slept longest in the lock.
    pub(crate) fn wake_in_spinlock(&mut self, cpu: CpuId, lock: Spinlock) -> Flow {
        let first = self.core.sync.spinlocks[lock].sleepers.pop_front();
        self.core.cpu(cpu).stack.extend(first.map(wake));
        self.push_futex_call(cpu);
        Flow::Next
    }
}
