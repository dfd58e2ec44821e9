//! Quad-age: two bits of age a way, and the first of the oldest leaves.

/// The oldest age.
const OLDEST: u8 = 3;
/// The age of a line that was just taken in: older than one that was used again.
const TAKEN_IN: u8 = 1;

/// The ages of all ways of a cache.
///
/// Invariant: ages are 0 to [`OLDEST`]; in a set of two ways or more at least one way, not the one
/// used last, is of age [`OLDEST`]; every empty way is.
pub(crate) struct Ages {
    ages: Vec<u8>,
    ways: usize,
}

impl Ages {
    /// Every way is as old as can be.
    pub(super) fn new(sets: usize, ways: usize) -> Ages {
        Ages {
            ages: vec![OLDEST; sets * ways],
            ways,
        }
    }

    /// Notes that the line in `way` was used again.
    #[inline]
    pub(super) fn used(&mut self, set: usize, way: usize) {
        self.rejuvenate(set, way, 0);
    }

    /// Notes that `way` took in another line.
    #[inline]
    pub(super) fn taken_in(&mut self, set: usize, way: usize) {
        self.rejuvenate(set, way, TAKEN_IN);
    }

    /// Notes that `way` is empty.
    pub(super) fn emptied(&mut self, set: usize, way: usize) {
        self.ages[set * self.ways + way] = OLDEST;
    }

    /// The first of the oldest ways.
    #[inline]
    pub(super) fn victim(&self, set: usize) -> usize {
        let ages = &self.ages[set * self.ways..][..self.ways];
        ages.iter().position(|age| *age == OLDEST).unwrap_or(0)
    }

    /// Gives `way` an `age` below the oldest. If no way is of that any more, all others grow older
    /// by as much as makes their oldest so.
    #[inline]
    fn rejuvenate(&mut self, set: usize, way: usize, age: u8) {
        let ages = &mut self.ages[set * self.ways..][..self.ways];
        ages[way] = 0;
        let oldest = ages.iter().copied().max().unwrap_or(OLDEST);
        if oldest < OLDEST && ages.len() > 1 {
            ages.iter_mut().for_each(|other| *other += OLDEST - oldest);
        }
        ages[way] = age;
    }
}
