//! How headers lie over sets.

use alloc::vec;
use alloc::vec::Vec;

use crate::cache::Cache;

/// How many headers lie in each set of a cache whose index is not hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    counts: Vec<u64>,
    ways: u64,
}

impl Spread {
    /// Counts the lines at `addresses`.
    pub fn of(cache: Cache, addresses: impl IntoIterator<Item = u64>) -> Spread {
        let mut counts = vec![0; cache.sets() as usize];
        for address in addresses {
            counts[cache.set_of(address) as usize] += 1;
        }
        Spread {
            counts,
            ways: cache.ways(),
        }
    }

    /// Lines a set, by the number of the set.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Sets with at least one line.
    pub fn used(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0).count()
    }

    /// The most lines in one set.
    pub fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// Lines beyond what their sets hold at a time: with LRU and visits in turn, all lines of such
    /// a set miss at every visit.
    pub fn misses_in_turn(&self) -> u64 {
        let over = self.counts.iter().filter(|count| **count > self.ways);
        over.sum()
    }
}
