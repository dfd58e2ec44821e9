//! The data of a fragment.

use std::sync::atomic::{AtomicU32, Ordering};

use warmq_units::Stream;

/// Numbers before and after the array that nobody uses: 512 bytes keep the neighbour's lines, and
/// those that a CPU fetches ahead, away from ours.
const MARGIN: usize = 128;

/// An array of 32-bit numbers that threads share.
#[derive(Debug)]
pub struct Array {
    numbers: Box<[AtomicU32]>,
}

impl Array {
    /// `size` zeros, touched.
    pub fn new(size: u32) -> Array {
        let all = size as usize + 2 * MARGIN;
        let array = Array {
            numbers: (0..all).map(|_| AtomicU32::new(0)).collect(),
        };
        array
            .all()
            .iter()
            .for_each(|number| number.store(0, Ordering::Relaxed));
        array
    }

    /// Visits `accesses` numbers that `draws` chooses: increments those that `mix` says, reads the
    /// others.
    ///
    /// An increment is a load and a store, not one atomic step: see [`super`].
    #[inline(never)]
    pub fn visit(&self, draws: &mut Stream, mix: &mut Mix, accesses: u64) {
        let numbers = self.all();
        let mut read = 0;
        for _ in 0..accesses {
            let number = &numbers[draws.below(numbers.len() as u64) as usize];
            let value = number.load(Ordering::Relaxed);
            if mix.is_write() {
                number.store(value.wrapping_add(1), Ordering::Relaxed);
            } else {
                read ^= value;
            }
        }
        // What was read must seem to be wanted, or the compiler drops the loads.
        std::hint::black_box(read);
    }

    /// The sum of all numbers: increments that were not lost.
    #[cfg(test)]
    pub fn sum(&self) -> u64 {
        let values = self
            .all()
            .iter()
            .map(|number| number.load(Ordering::Relaxed));
        values.map(u64::from).sum()
    }

    fn all(&self) -> &[AtomicU32] {
        &self.numbers[MARGIN..self.numbers.len() - MARGIN]
    }
}

/// Which accesses write: evenly spread, and to the last one as many as the share says.
#[derive(Clone, Debug)]
pub struct Mix {
    share: u32,
    /// Hundredths of a write that have gathered; below 100.
    due: u32,
}

impl Mix {
    /// `share` percent of all accesses write.
    pub fn new(share: u32) -> Mix {
        Mix { share, due: 0 }
    }

    /// Whether the next access writes.
    #[inline]
    pub fn is_write(&mut self) -> bool {
        self.due += self.share;
        let write = self.due >= 100;
        self.due -= if write { 100 } else { 0 };
        write
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_units::Seed;

    use super::*;

    proptest! {
        #[test]
        fn as_many_accesses_write_as_the_share_says(share in 0..=100_u32, accesses in 0..5000_u64) {
            let mut mix = Mix::new(share);
            let writes = (0..accesses).filter(|_| mix.is_write()).count() as u64;
            prop_assert_eq!(writes, accesses * u64::from(share) / 100);
        }

        #[test]
        fn a_thread_alone_loses_no_increment(
            size in 1..3000_u32,
            share in 0..=100_u32,
            parts in prop::collection::vec(0..500_u64, 0..5),
        ) {
            let array = Array::new(size);
            let (mut draws, mut mix) = (Seed(1).stream("test"), Mix::new(share));
            parts.iter().for_each(|part| array.visit(&mut draws, &mut mix, *part));
            let accesses: u64 = parts.iter().sum();
            prop_assert_eq!(array.sum(), accesses * u64::from(share) / 100);
        }
    }

    #[test]
    fn every_number_is_visited_and_none_beside_them() {
        let array = Array::new(100);
        array.visit(&mut Seed(1).stream("test"), &mut Mix::new(100), 10_000);
        assert!(
            array
                .all()
                .iter()
                .all(|number| number.load(Ordering::Relaxed) > 0)
        );
        let outside = array
            .numbers
            .iter()
            .map(|number| number.load(Ordering::Relaxed));
        assert_eq!(outside.map(u64::from).sum::<u64>(), array.sum());
    }
}
