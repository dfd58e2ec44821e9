//! What programs say about themselves: records that cost no simulated time.

use warmq_trace::Record;
use warmq_units::TaskId;

use crate::core::Core;

/// Which task of a scenario a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The table of tasks, by its number in the trace's header.
    pub table: u32,
    /// Which of the table's tasks.
    pub number: u32,
}

/// A latency span: its name by number in the trace's header, and which of the spans of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The name.
    pub span: u32,
    /// Which of that name.
    pub number: u64,
}

impl Core {
    /// Records that `task` begins or ends a span.
    pub(crate) fn note_span(&mut self, task: TaskId, Span { span, number }: Span, begins: bool) {
        self.record(match begins {
            true => Record::SpanBegin { task, span, number },
            false => Record::SpanEnd { task, span, number },
        });
    }

    /// Records which task of its scenario `task` is, right after its fork.
    pub(crate) fn record_role(&mut self, task: TaskId) {
        if let Some(Role { table, number }) = self.task(task).role {
            self.record(Record::Role {
                task,
                table,
                number,
            });
        }
    }
}
