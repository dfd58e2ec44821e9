//! What programs say about themselves, for traces.

use warmq_units::Instant;

/// Which task of a scenario a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The table of tasks, by its number in the trace's header.
    pub table: u32,
    /// Which of the table's tasks.
    pub number: u32,
}

/// What a program says of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanEdge {
    /// It begins.
    Begins,
    /// It began at a time that has passed.
    Began(Instant),
    /// It ends.
    Ends,
}

/// A latency span: its name by number in the trace's header, and which of the spans of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The name.
    pub span: u32,
    /// Which of that name.
    pub number: u64,
}
