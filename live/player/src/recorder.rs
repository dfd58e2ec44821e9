//! What the kernel says about a run, while it is played: a recorder of tracefs stands behind this.

use warmq_trace::Record;
use warmq_units::{Instant, TaskId};

/// A recorder that is under way.
pub trait Recorder {
    /// Ends it. Called when the tasks are gone.
    ///
    /// # Errors
    /// Why there is no recording, as a sentence.
    fn stop(self: Box<Self>) -> Result<Box<dyn Recording>, String>;
}

/// What was recorded.
pub trait Recording {
    /// What is missing in it, each a sentence.
    fn missing(&self) -> Vec<String>;

    /// Hands out all records in the order of their times, which count from `start_ns` of the
    /// monotonic clock. `tasks` are the threads of the scenario; others get ids from `strangers`
    /// on, in the order in which they appear.
    fn records(
        &mut self,
        tasks: &[(u32, TaskId)],
        strangers: TaskId,
        start_ns: u64,
        out: &mut dyn FnMut(Instant, Record),
    );
}

/// Starts a recorder, just before the run begins.
///
/// # Errors
/// Why there is none: the run goes on without, and its trace has the player's own records only.
pub type Start = dyn FnOnce() -> Result<Box<dyn Recorder>, String>;
