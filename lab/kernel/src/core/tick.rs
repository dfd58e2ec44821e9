//! Timers, and what the tick samples.

use warmq_units::{CpuId, Instant, TaskId};

use crate::core::time::TimerOwner;
use crate::core::{Core, Event};
use crate::words::{Mode, Timer};

impl Core {
    /// Arms a timer of `owner` that interrupts `cpu` at `at`.
    pub(crate) fn arm_timer(&mut self, cpu: CpuId, at: Instant, owner: TimerOwner) -> Timer {
        let timer = self.timers.arm(owner, cpu);
        let event = match owner {
            TimerOwner::Sleep(_)
            | TimerOwner::Wait(..)
            | TimerOwner::Refill(_)
            | TimerOwner::Slack(_) => Event::Timer(timer),
            TimerOwner::Scheduler(_) => Event::SchedulerTimer(timer),
        };
        self.schedule(at, event);
        timer
    }

    /// Disarms `timer` when it expires or is cancelled; `None` if it was disarmed before.
    pub(crate) fn disarm(&mut self, timer: Timer) -> Option<(TimerOwner, CpuId)> {
        self.timers.disarm(timer)
    }

    /// The tick of `cpu` interrupted code of this mode: a whole tick is charged to it, as kernels
    /// without exact accounting do (`account_process_tick()`). If that was an interrupt or a
    /// softirq, the task below is charged only in kernels that do so.
    pub(crate) fn sample_tick(&mut self, cpu: CpuId, interrupted: Mode) {
        let tick = self.settings.tick;
        let below = self.settings.tick_charges_interrupts;
        let Some(current) = self.cpu(cpu).current else {
            return;
        };
        let sampled = &mut self.task_mut(current).sampled;
        match interrupted {
            Mode::User => sampled.user += tick,
            Mode::System | Mode::Spin => sampled.system += tick,
            Mode::Interrupt | Mode::Softirq if below => sampled.system += tick,
            Mode::Interrupt | Mode::Softirq | Mode::Idle => {}
        }
    }

    /// The `ksoftirqd` of `cpu`, if the kernel has one and it is not parked.
    pub(crate) fn ksoftirqd(&self, cpu: CpuId) -> Option<TaskId> {
        let online = self.cpus[cpu.index()].online;
        self.ksoftirqds.get(cpu.index()).copied().filter(|_| online)
    }
}
