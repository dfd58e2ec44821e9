//! What programs say about themselves: records that cost no simulated time.

use warmq_trace::Record;
use warmq_units::TaskId;

use crate::core::Core;
use crate::words::note::{Role, Span};

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
