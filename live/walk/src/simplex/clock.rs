//! The clock that sender, receivers and Simplex share.

use std::time::Instant;

/// Nanoseconds since it was made, on the kernel's monotonic clock, which all CPUs share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts at 0 now.
    pub fn start() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(self) -> u64 {
        // 2^64 ns are 584 years.
        self.start.elapsed().as_nanos() as u64
    }
}
