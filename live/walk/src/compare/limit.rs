//! The time after which a measurement ends in any case.

use std::time::{Duration, Instant};

/// When to end.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    end: Instant,
}

impl Limit {
    /// So long from now on.
    pub fn after(time: Duration) -> Limit {
        Limit {
            end: Instant::now() + time,
        }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Time left.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
