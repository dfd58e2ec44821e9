//! What happened in a run, as records.

mod facts;
mod groups;
mod merge;
mod own;

pub use facts::header;
pub use merge::{Merge, Own};
pub use own::{Moment, affinity, own_records};

/// A time on the monotonic clock as the time of a record, which counts from the start of the run.
pub fn instant(ns: u64, start_ns: u64) -> warmq_units::Instant {
    warmq_units::Instant(ns.saturating_sub(start_ns).saturating_mul(1_000))
}
