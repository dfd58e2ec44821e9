//! CPUs that are taken away for a while: by a hypervisor, or by firmware. The kernel does not know
//! of it: to its clocks the time passes, and interrupts wait.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration};

use crate::core::Vector;
use crate::paths::{Flow, System};
use crate::words::Step;

impl System {
    /// A CPU is taken away, for as long as is drawn: at once, or as soon as it takes interrupts.
    /// The next gap begins now, so the share of the time that is taken is span / every where the
    /// CPU is taken at once.
    pub(crate) fn steal(&mut self, which: usize) {
        let (cpu, span) = self.core.next_steal(which);
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
