//! The shape of a cache.

use crate::equations::first_free_bit;

/// Bytes of a page: the smallest of x86 and ARM. Up to here a virtual address is the physical one.
pub const PAGE: u64 = 4 << 10;

/// One data cache.
///
/// Invariant: nothing is 0, the line is a power of two, and `ways * line` divides `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    size: u64,
    ways: u64,
    line: u64,
}

impl Cache {
    /// A cache of `size` bytes with lines of `line` bytes; `None` where there is no such cache.
    pub const fn new(size: u64, ways: u64, line: u64) -> Option<Cache> {
        if size == 0 || ways == 0 || !line.is_power_of_two() {
            return None;
        }
        let Some(of_a_set) = ways.checked_mul(line) else {
            return None;
        };
        if !size.is_multiple_of(of_a_set) {
            return None;
        }
        Some(Cache { size, ways, line })
    }

    /// Capacity in bytes.
    pub const fn size(self) -> u64 {
        self.size
    }

    /// Associativity.
    pub const fn ways(self) -> u64 {
        self.ways
    }

    /// Bytes of a line.
    pub const fn line(self) -> u64 {
        self.line
    }

    /// Bytes that one way covers: addresses this far from each other share a set.
    pub const fn way_size(self) -> u64 {
        self.size / self.ways
    }

    /// How many sets there are.
    pub const fn sets(self) -> u64 {
        self.way_size() / self.line
    }

    /// How many lines it holds.
    pub const fn lines(self) -> u64 {
        self.size / self.line
    }

    /// The set of `address`, where the address alone chooses it. Many level-2 and all recent
    /// level-3 caches hash it instead.
    pub const fn set_of(self, address: u64) -> u64 {
        address / self.line % self.sets()
    }

    /// `b` of equation 1: see [`first_free_bit`].
    pub const fn first_free_bit(self) -> u32 {
        first_free_bit(self.way_size())
    }

    /// In how many sets the same line of blocks lies that follow each other every `stride` bytes:
    /// after so many blocks the first set is used again.
    pub const fn period(self, stride: u64) -> u64 {
        self.way_size() / self.common(stride)
    }

    /// How many blocks, one every `stride` bytes, have hot lines that fit without colors, one line
    /// a block: the paper's `s / 8 KB`. Where a block is larger than a way, all are in one set.
    pub const fn fit(self, stride: u64) -> u64 {
        self.ways * self.period(stride)
    }

    /// The most colors that reach sets of their own with blocks every `stride` bytes: with one
    /// more, the header of a block lies in the set of another block's first color.
    pub const fn most_colors(self, stride: u64) -> u64 {
        let lines = self.common(stride) / self.line;
        if lines == 0 { 1 } else { 1 << lines.ilog2() }
    }

    /// The greatest common divisor of way and stride; the way for a stride of 0.
    const fn common(self, stride: u64) -> u64 {
        let (mut a, mut b) = (self.way_size(), stride);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    }
}
