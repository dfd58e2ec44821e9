//! Sets of CPUs, as the model has them.

use std::ops::{BitAnd, BitOr, Not};

use crate::MOST_CPUS;

const WORDS: usize = MOST_CPUS / 64;

/// A set of CPUs. A number stands for those of the first 64.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpus([u64; WORDS]);

impl Cpus {
    /// Its CPUs, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MOST_CPUS as u32).filter(|cpu| self.0[*cpu as usize / 64] >> (cpu % 64) & 1 == 1)
    }

    fn zip(self, other: Cpus, with: fn(u64, u64) -> u64) -> Cpus {
        Cpus(std::array::from_fn(|word| {
            with(self.0[word], other.0[word])
        }))
    }
}

impl From<u64> for Cpus {
    fn from(first: u64) -> Cpus {
        Cpus(std::array::from_fn(
            |word| if word == 0 { first } else { 0 },
        ))
    }
}

impl PartialEq<u64> for Cpus {
    fn eq(&self, first: &u64) -> bool {
        *self == Cpus::from(*first)
    }
}

impl BitOr for Cpus {
    type Output = Cpus;

    fn bitor(self, other: Cpus) -> Cpus {
        self.zip(other, BitOr::bitor)
    }
}

impl BitAnd for Cpus {
    type Output = Cpus;

    fn bitand(self, other: Cpus) -> Cpus {
        self.zip(other, BitAnd::bitand)
    }
}

impl Not for Cpus {
    type Output = Cpus;

    fn not(self) -> Cpus {
        Cpus(self.0.map(Not::not))
    }
}
