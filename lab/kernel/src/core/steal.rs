//! What takes CPUs away.

use warmq_machine::Steal;
use warmq_units::{CpuId, Duration, Instant, Stream};

use crate::core::{Core, Event};

/// Something that takes a CPU away again and again.
pub(crate) struct Stealing {
    cpu: CpuId,
    steal: Steal,
    stream: Stream,
}

impl Stealing {
    /// The CPU, and for how long it is taken away this time.
    fn draw(&mut self) -> (CpuId, Duration) {
        let span = Duration(self.stream.exponential(self.steal.span.0));
        (self.cpu, span)
    }
}

impl Core {
    /// From now on all of `steals` take CPUs away.
    pub(crate) fn start_steals(&mut self, steals: &[Steal]) {
        for (index, steal) in steals.iter().enumerate() {
            for cpu in self.cpu_ids() {
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

    /// Which CPU is taken away now, and for how long; the next time is drawn, too.
    pub(crate) fn next_steal(&mut self, which: usize) -> (CpuId, Duration) {
        self.schedule_steal(which, self.now());
        self.stealing[which].draw()
    }

    fn schedule_steal(&mut self, which: usize, after: Instant) {
        let Stealing { steal, stream, .. } = &mut self.stealing[which];
        let gap = Duration(stream.exponential(steal.every.0));
        self.schedule(after + gap, Event::Steal(which));
    }
}
