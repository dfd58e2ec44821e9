//! Where events of a CPU are missing from a recording.

use std::collections::BTreeSet;

use warmq_trace::Record;
use warmq_units::CpuId;

/// The CPUs whose events are missing. Until such a CPU switches again, its task may be any and may have been
/// switched out, and every task that runs on none of the others may have run there.
#[derive(Clone, Debug, Default)]
pub struct Gaps(BTreeSet<CpuId>);

impl Gaps {
    /// The CPU of which nothing is known any more, or has been known up to now, if `record` says so.
    ///
    /// A single missing event is one that a recorder knows to have happened before the next record (a switch, a
    /// wakeup), and hides nothing.
    pub fn see(&mut self, record: &Record) -> Option<CpuId> {
        match *record {
            Record::Lost { cpu, events } if events != 1 => {
                self.0.insert(cpu);
                Some(cpu)
            }
            Record::Switch { cpu, .. } if !self.0.is_empty() && self.0.remove(&cpu) => Some(cpu),
            _ => None,
        }
    }

    /// Whether there is any.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }
}
