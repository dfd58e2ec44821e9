//! CPUs that are taken away for a while: by a hypervisor, or by firmware. The kernel does not know of
//! it: to its clocks the time passes, and interrupts wait.

use warmq_machine::Steal;
use warmq_trace::Record;
use warmq_units::{CpuId, Duration, Instant, Stream};

use crate::core::{Core, Event};
use crate::cpu_loop::Flow;
use crate::engine::Engine;
use crate::interrupt::Vector;
use crate::words::step::Step;

/// Something that takes a CPU away again and again.
pub(crate) struct Stealing {
    cpu: CpuId,
    steal: Steal,
    stream: Stream,
}

impl Core {
    /// From now on all of `steals` take CPUs away.
    pub(crate) fn start_steals(&mut self, steals: &[Steal]) {
        for (index, steal) in steals.iter().enumerate() {
            for cpu in (0..self.cpus.len() as u16).map(CpuId) {
                let name = format!("steal {index} of cpu{}", cpu.0);
                self.stealing.push(Stealing {
                    cpu,
                    steal: *steal,
                    stream: self.settings.seed.stream(&name),
                });
                self.schedule_steal(self.stealing.len() - 1, Instant::START);
            }
        }
    }

    fn schedule_steal(&mut self, which: usize, after: Instant) {
        let Stealing { steal, stream, .. } = &mut self.stealing[which];
        let gap = Duration(stream.exponential(steal.every.0));
        self.schedule(after + gap, Event::Steal(which));
    }
}

impl Engine {
    /// A CPU is taken away, for as long as is drawn: at once, or as soon as it takes interrupts. The
    /// next gap begins now, so the share of the time that is taken is span / every where the CPU is taken at once.
    pub(crate) fn steal(&mut self, which: usize) {
        let now = self.core.now();
        self.core.schedule_steal(which, now);
        let Stealing { cpu, steal, stream } = &mut self.core.stealing[which];
        let (cpu, span) = (*cpu, Duration(stream.exponential(steal.span.0)));
        let here = self.core.cpu(cpu);
        if here.online {
            here.to_steal += span;
            self.interrupt(cpu, Vector::Steal);
        }
    }

    pub(crate) fn enter_steal(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        here.irq_depth += 1;
        let left = std::mem::take(&mut here.to_steal);
        here.stack.push(Step::Returned(left));
        here.stack.push(Step::Busy { left, user: false });
    }

    /// The CPU is back, after `span`.
    pub(crate) fn returned(&mut self, cpu: CpuId, span: Duration) -> Flow {
        self.core.record(Record::Steal { cpu, span });
        self.core.cpu(cpu).irq_depth -= 1;
        Flow::Next
    }
}
