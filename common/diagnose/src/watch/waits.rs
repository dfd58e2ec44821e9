//! How long a task waited after its wakeups: a distribution in little memory. The histogram of
//! figures (`warmq_metrics::Spans`) is finer, and takes some 300 KB: too much for each task.

use std::collections::BTreeMap;

use warmq_units::Duration;

/// Of the digits of a span in ns, as many bits count: a span is known to 1.6 %.
const BITS: u32 = 6;

/// Spans by how long they are. Of each only the first [`BITS`] bits after the leading one are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    /// How many, by their leading bits.
    counts: BTreeMap<u16, u64>,
    all: u64,
    longest: Duration,
}

/// The number of the spans that `ns` is counted with: they grow with it.
fn class(ns: u64) -> u16 {
    let ns = ns.max(1 << BITS);
    let shift = ns.ilog2() - BITS;
    // The leading bit is always set: what is counted are those after it.
    ((shift as u16) << BITS) | ((ns >> shift) as u16 & ((1 << BITS) - 1))
}

/// The longest span of a class.
fn most(class: u16) -> u64 {
    let (shift, bits) = (class >> BITS, class & ((1 << BITS) - 1));
    (u64::from(bits | 1 << BITS) << shift) + ((1 << shift) - 1)
}

impl Waits {
    pub fn count(&mut self, span: Duration) {
        *self.counts.entry(class(span.as_ns())).or_default() += 1;
        self.all += 1;
        self.longest = self.longest.max(span);
    }

    /// How many there were.
    pub fn all(&self) -> u64 {
        self.all
    }

    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The span that at least so many thousandths of all do not exceed: the longest of its class,
    /// and no longer than the longest of all. Its rank is never that of the longest alone: one wait
    /// says nothing of the next.
    ///
    /// ```text
    ///     the max(1, min(n - 1, ceil(n * p / 1000)))-th shortest of n
    /// ```
    pub fn at(&self, thousandths: u64) -> Duration {
        let rank = (self.all * thousandths).div_ceil(1_000);
        let rank = rank.min(self.all.saturating_sub(1)).max(1);
        let mut seen = 0;
        for (class, count) in &self.counts {
            seen += count;
            if seen >= rank {
                return Duration::from_ns(most(*class)).min(self.longest);
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_sorted_spans_and_at_most_a_sixty_fourth_more(
            mut spans in prop::collection::vec(64_u64..1 << 50, 2..200),
            thousandths in 1_u64..1_000,
        ) {
            let mut waits = Waits::default();
            spans.iter().for_each(|ns| waits.count(Duration::from_ns(*ns)));
            spans.sort_unstable();
            let count = spans.len() as u64;
            let rank = (count * thousandths).div_ceil(1_000).min(count - 1).max(1);
            let exact = spans[rank as usize - 1];
            let found = waits.at(thousandths).as_ns();
            prop_assert!(found >= exact && found - exact <= exact / 64, "{found} {exact}");
            prop_assert!(waits.at(thousandths) <= waits.longest());
            prop_assert_eq!(waits.longest().as_ns(), *spans.last().unwrap());
            prop_assert_eq!(waits.all(), count);
        }
    }

    #[test]
    fn one_long_wait_of_few_is_no_percentile_and_of_none_there_is_none() {
        assert_eq!(Waits::default().at(990), Duration::ZERO);
        let mut waits = Waits::default();
        for us in [10, 10, 10, 9_000] {
            waits.count(Duration::from_us(us));
        }
        assert!(waits.at(990) < Duration::from_us(11));
        assert_eq!(waits.longest(), Duration::from_us(9_000));
    }

    #[test]
    fn of_waits_that_are_alike_each_percentile_is_what_all_have() {
        for us in [3_050, 3_500, 4_000, 5_000, 7_000, 9_000] {
            let mut waits = Waits::default();
            (0..300).for_each(|_| waits.count(Duration::from_us(us)));
            assert_eq!(waits.at(990), Duration::from_us(us));
            assert_eq!(waits.at(500), Duration::from_us(us));
        }
    }
}
