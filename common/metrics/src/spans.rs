//! A histogram of spans of time.

use hdrhistogram::Histogram;
use warmq_units::Duration;

/// Three significant digits: a percentile is at most 0.1% too long.
const DIGITS: u8 = 3;

/// A distribution of spans of time. Count, mean and extremes are exact; percentiles are accurate to
/// 0.1% or 1 ns, whichever is more.
///
/// The memory is bounded (some 300 KB where spans reach from nanoseconds to minutes), however many
/// spans there are.
#[derive(Clone, Debug)]
pub struct Spans {
    // In ns. A histogram that may grow accepts every u64.
    histogram: Histogram<u64>,
    sum: u128,
    min: Duration,
    max: Duration,
}

impl Default for Spans {
    fn default() -> Spans {
        let histogram = Histogram::new(DIGITS).expect("three digits are allowed");
        Spans {
            histogram,
            sum: 0,
            min: Duration(u64::MAX),
            max: Duration::ZERO,
        }
    }
}

impl Spans {
    /// Adds one span.
    pub fn add(&mut self, span: Duration) {
        self.histogram
            .record(span.as_ns())
            .expect("the histogram grows");
        self.sum += u128::from(span.0);
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Spans) {
        self.histogram
            .add(&other.histogram)
            .expect("the histogram grows");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their sum, at most the longest span that can be represented.
    pub fn sum(&self) -> Duration {
        Duration(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    /// The shortest; zero where there is none.
    pub fn min(&self) -> Duration {
        if self.count() == 0 {
            Duration::ZERO
        } else {
            self.min
        }
    }

    /// The longest; zero where there is none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// `sum / count`, rounded down; zero where there is none.
    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count())).unwrap_or(0);
        Duration(u64::try_from(mean).expect("no mean is longer than the longest"))
    }

    /// The span that `percent` percent of all spans do not exceed; zero if there are none.
    /// `percent` is clamped to 0 to 100; the 50th percentile is the median.
    ///
    /// ```text
    ///     percentile(p) = the ceil(p/100 * count)-th shortest, at least the first      (nearest rank)
    /// ```
    pub fn percentile(&self, percent: f64) -> Duration {
        // 0.28 * 25 is a little more than 7, whose ceiling is 8: rounding must not add a rank.
        let quantile = percent / 100.0 * (1.0 - 4.0 * f64::EPSILON);
        let ns = self.histogram.value_at_quantile(quantile);
        // The end of the histogram's bucket may lie beyond the longest span.
        Duration(ns.saturating_mul(1_000)).clamp(self.min(), self.max())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(spans: &[u64]) -> Spans {
        let mut histogram = Spans::default();
        spans.iter().for_each(|span| histogram.add(Duration(*span)));
        histogram
    }

    fn span() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..10_000, 0u64..1 << 40, any::<u64>()]
    }

    #[test]
    fn of_nothing_everything_is_zero() {
        let none = Spans::default();
        let figures = [
            none.min(),
            none.max(),
            none.mean(),
            none.sum(),
            none.percentile(50.0),
        ];
        assert_eq!(figures, [Duration::ZERO; 5]);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_spans(
            mut spans in prop::collection::vec(span(), 1..50), percent in 0u32..=100
        ) {
            let histogram = of(&spans);
            spans.sort_unstable();
            let rank = (percent as usize * spans.len()).div_ceil(100).max(1);
            let (exact, found) = (spans[rank - 1], histogram.percentile(percent.into()).0);
            prop_assert!(found.abs_diff(exact) <= (exact / 1000).max(1000), "{} {}", found, exact);
            prop_assert_eq!(histogram.min().0, spans[0]);
            prop_assert_eq!(histogram.max().0, *spans.last().unwrap());
            prop_assert!(histogram.min() <= histogram.mean() && histogram.mean() <= histogram.max());
            prop_assert_eq!(histogram.count(), spans.len() as u64);
        }

        #[test]
        fn merged_spans_are_those_of_both(
            left in prop::collection::vec(span(), 0..30), right in prop::collection::vec(span(), 0..30)
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both = of(&[left, right].concat());
            prop_assert_eq!(merged.count(), both.count());
            prop_assert_eq!(merged.mean(), both.mean());
            prop_assert_eq!((merged.min(), merged.max()), (both.min(), both.max()));
            prop_assert_eq!(merged.percentile(50.0), both.percentile(50.0));
        }
    }
}
