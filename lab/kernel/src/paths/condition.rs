//! Condition variables and futexes of user space: waits, with an end or without, and wakeups.

use warmq_units::{CpuId, Duration, TaskId};

use crate::core::TimerOwner;
use crate::paths::{Flow, System};
use crate::words::{Condition, Mode, Mutex, Operation, Step, Timer, Waiting, wake};

impl System {
    /// `futex(FUTEX_WAIT)`: sleeps until it is woken, or `timeout` is over. A mutex is unlocked
    /// before, and locked afterwards.
    pub(crate) fn wait(
        &mut self,
        cpu: CpuId,
        condition: Condition,
        mutex: Option<Mutex>,
        timeout: Option<Duration>,
    ) -> Flow {
        let current = self.core.current(cpu);
        let waiters = &mut self.core.sync.conditions[condition].waiters;
        waiters.push_back(current);
        let lock = mutex.map(|mutex| Step::Perform(Operation::Lock(mutex)));
        let cancel = timeout.map(|span| {
            let owner = TimerOwner::Wait(current, condition);
            let timer = self.arm_after(cpu, span, owner);
            Step::CancelTimeout(timer)
        });
        let stack = &mut self.core.cpu(cpu).stack;
        stack.extend(lock.into_iter().chain(cancel));
        self.sleep(cpu, current, Waiting::Condition(condition.0));
        let unlocked = match mutex {
            Some(mutex) => self.unlock_mutex(cpu, mutex),
            None => Flow::Next,
        };
        self.push_futex_call(cpu);
        unlocked
    }

    /// What a call of a futex takes, before anything else is done in it.
    pub(crate) fn push_futex_call(&mut self, cpu: CpuId) {
        let (left, user) = (self.core.times.futex, false);
        if left > Duration::ZERO {
            self.core.cpu(cpu).stack.push(Step::Busy { left, user });
        }
    }

    /// `futex(FUTEX_WAKE)`: wakes the task that has waited longest, or all.
    pub(crate) fn wake_waiters(&mut self, cpu: CpuId, condition: Condition, all: bool) -> Flow {
        let waiters = &mut self.core.sync.conditions[condition].waiters;
        let count = match all {
            true => waiters.len(),
            false => waiters.len().min(1),
        };
        let woken: Vec<_> = waiters.drain(..count).rev().map(wake).collect();
        self.core.cpu(cpu).stack.extend(woken);
        self.push_futex_call(cpu);
        Flow::Next
    }

    /// The time of a wait of `task` is over: the step that wakes it, if it waits any more.
    pub(crate) fn wait_is_over(&mut self, task: TaskId, condition: Condition) -> Option<Step> {
        let waiters = &mut self.core.sync.conditions[condition].waiters;
        let place = waiters.iter().position(|waiter| *waiter == task)?;
        waiters.remove(place).map(wake)
    }

    /// A task that was woken cancels the timer of its wait, for which the hardware's is programmed
    /// twice, as for one that expires: when it was set, and for the next one.
    pub(crate) fn cancel_timeout(&mut self, timer: Timer) -> Flow {
        match self.core.disarm(timer) {
            Some(_) => Flow::Takes(self.core.times.timer_program, Mode::System),
            None => Flow::Next,
        }
    }
}
