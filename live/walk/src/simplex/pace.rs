//! When each datagram of an evenly spaced stream is due: whole nanoseconds, no drift.

use std::time::Duration;

/// Behind by more than this, the stream is not caught up with: a burst is no even spacing.
pub const MOST_BEHIND: Duration = Duration::from_millis(1);

/// An evenly spaced stream.
///
/// ```text
///     due(n) = n * 10^6 / kpps  ns after the start
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    kpps: u32,
}

impl Pace {
    /// A stream of `kpps` thousand datagrams a second; [`super::SimplexSettings::check`] keeps 0
    /// out.
    ///
    /// # Panics
    /// When `kpps` is 0.
    pub fn new(kpps: u32) -> Pace {
        assert!(kpps > 0, "a stream has a rate");
        Pace { kpps }
    }

    /// Nanoseconds from the start until datagram `number`, the first of which is 0.
    pub fn due_ns(self, number: u64) -> u64 {
        let due = u128::from(number) * 1_000_000 / u128::from(self.kpps);
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// Nanoseconds between two datagrams, rounded up.
    pub fn period_ns(self) -> u64 {
        1_000_000_u64.div_ceil(u64::from(self.kpps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_of_any_rate_holds_a_thousand_times_the_rate() {
        for kpps in [1, 3, 7, 40, 80, 333, 1000] {
            let pace = Pace::new(kpps);
            assert_eq!(pace.due_ns(u64::from(kpps) * 1000), 1_000_000_000);
        }
    }

    proptest! {
        #[test]
        fn neighbours_are_a_period_apart_to_a_nanosecond(kpps in 1_u32..=1000, number in 0_u64..1 << 40) {
            let pace = Pace::new(kpps);
            let apart = pace.due_ns(number + 1) - pace.due_ns(number);
            prop_assert!(apart <= pace.period_ns() && apart + 1 >= pace.period_ns());
        }
    }
}
