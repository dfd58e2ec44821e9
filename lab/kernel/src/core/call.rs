//! How a CPU makes another one look at what is left to it.

use warmq_units::{CpuId, Duration};

use crate::core::{Core, Event};
use crate::words::settings::IdleLoop;
use crate::words::step::Mode;

impl Core {
    /// Whether `cpu` idles, and will notice what is asked of it without an interrupt.
    pub(crate) fn polls_in_idle(&self, cpu: CpuId) -> bool {
        let idles = self.cpus[cpu.index()].activity.mode == Mode::Idle;
        idles && self.settings.idle_loop == IdleLoop::Poll
    }

    /// Makes `to` look at its list of calls; returns how long that takes `from`
    /// (`send_call_function_single_ipi()`).
    pub(crate) fn call_for(&mut self, from: CpuId, to: CpuId) -> Duration {
        let now = self.now();
        if self.polls_in_idle(to) {
            self.schedule(now + self.times.idle_poll, Event::IdlePoll(to));
            return Duration::ZERO;
        }
        let takes = self.times.reschedule_interrupt;
        self.schedule(now + takes, Event::Reschedule { from, to });
        takes
    }
}
