//! One seed for everything, and a named stream of randomness for each purpose.
//!
//! A stream depends on the seed and on its name only: one more draw in one place shifts no number
//! elsewhere.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// What makes one run differ from the next. Equal seeds make equal runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(pub u64);

/// A stream of random integers for one purpose.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64Mcg,
}

impl Seed {
    /// The stream of this seed for the purpose `name`.
    ///
    /// ```
    /// use warmq_units::Seed;
    /// let (mut arrivals, mut again) = (Seed(7).stream("arrivals"), Seed(7).stream("arrivals"));
    /// assert_eq!(arrivals.next(), again.next());
    /// assert_ne!(arrivals.next(), Seed(7).stream("service").next());
    /// ```
    pub fn stream(self, name: &str) -> Stream {
        let start = xxh3_128_with_seed(name.as_bytes(), self.0);
        Stream {
            generator: Pcg64Mcg::from_seed(start.to_le_bytes()),
        }
    }
}

impl Stream {
    /// The next 64 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 up to, not including, `bound`; 0 when `bound` is 0.
    ///
    /// Multiply-and-shift: the bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included; `low` when `high` is less.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Puts `items` into a random order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_on_every_machine() {
        let mut stream = Seed(1).stream("pinned");
        let drawn = [stream.below(1000), stream.below(1000), stream.below(1000)];
        assert_eq!(drawn, [15, 425, 147]);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Seed(3).stream("shuffle").shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn bounds_hold() {
        let mut stream = Seed(2).stream("bounds");
        for _ in 0..1000 {
            assert!(stream.below(7) < 7);
            assert!((3..=5).contains(&stream.between(3, 5)));
        }
        assert_eq!(stream.below(0), 0);
    }
}
