//! Round trips that remote peers measure.

use warmq_trace::{Comm, Record};
use warmq_units::{Address, CpuId, Instant, TaskId};

use crate::core::Core;
use crate::core::task::{State, TaskStruct};
use crate::words::{Origin, Remote, TaskSpec};

/// What peers that measure are called in traces: as the threads that send for them elsewhere.
const OUTSIDE: &str = "warmq-source";

impl Core {
    /// Gives those who measure a place among the tasks, since the records of spans name one. It is
    /// a task that never runs, has no memory and is unknown to the scheduler. Called when all tasks
    /// of the start are there, so that their numbers are those that they have without it.
    pub(crate) fn name_outside(&mut self) {
        if self
            .net
            .remotes
            .iter()
            .all(|remote| remote.measured.is_none())
        {
            return;
        }
        let mut spec = TaskSpec::kernel_thread("");
        spec.comm = Comm::new(OUTSIDE);
        let nowhere = (Address(0), CpuId(0));
        let mut outside = TaskStruct::new(&spec, None, nowhere.0, nowhere.1, Instant::START);
        outside.state = State::Dead;
        self.outside = Some(TaskId(self.tasks.len() as u32));
        self.tasks.push(outside);
    }

    /// Whether `task` stands for remote peers.
    pub(crate) fn is_outside(&self, task: TaskId) -> bool {
        self.outside == Some(task)
    }

    /// A peer sends its datagram `number`; if it measures, a span begins.
    pub(crate) fn begin_round_trip(&mut self, remote: Remote, number: u64) {
        let (Some(task), Some(measured)) = (self.outside, &mut self.net.remotes[remote].measured)
        else {
            return;
        };
        let span = measured.begin(number);
        self.record(Record::SpanBegin { task, span, number });
    }

    /// An answer is back at the peer that sent the datagram.
    pub(crate) fn answered(&mut self, Origin { remote, number, .. }: Origin) {
        let (Some(task), Some(measured)) = (self.outside, &mut self.net.remotes[remote].measured)
        else {
            return;
        };
        if let Some(span) = measured.end(number) {
            self.record(Record::SpanEnd { task, span, number });
        }
    }
}
