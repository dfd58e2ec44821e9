//! Which color the i-th block has.

use crate::cache::Cache;
use crate::equations::needed_colors;

/// Blocks of one kind: one every so many bytes, each with a few hot lines at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How many are in use at a time.
    pub count: u64,
    /// From one block to the next, in bytes: the size with all that lies between.
    pub stride: u64,
    /// Hot lines of each.
    pub hot_lines: u64,
}

impl Blocks {
    /// `count` blocks with one hot line each.
    pub const fn new(count: u64, stride: u64) -> Blocks {
        Blocks {
            count,
            stride,
            hot_lines: 1,
        }
    }

    /// The same blocks with so many hot lines each.
    pub const fn with_hot_lines(self, hot_lines: u64) -> Blocks {
        Blocks { hot_lines, ..self }
    }

    /// How many colors make the hot lines fit into `cache`: equation 3 with its bounds. 1 is no
    /// coloring.
    ///
    /// `None` where no number of colors does: there are more hot lines than the cache has, or than
    /// its sets that colors reach. To spread them all the same would only push other data out of
    /// the sets that the blocks leave alone (the paper's *negative effect*).
    pub fn colors(self, cache: Cache) -> Option<u64> {
        let fit = cache.fit(self.stride);
        if self.count <= fit {
            return Some(1);
        }
        // With c colors, a set holds lines of count / (fit / ways) / c blocks for each hot line.
        let needed = needed_colors(self.count.checked_mul(self.hot_lines.max(1))?, fit);
        (needed <= cache.most_colors(self.stride)).then_some(needed)
    }
}

/// Gives each block a color by its index.
///
/// Invariant: `colors` and `line` are powers of two, and `group` is a positive multiple of
/// `colors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coloring {
    colors: u64,
    line: u64,
    group: u64,
}

impl Coloring {
    /// No coloring: every header at the same place.
    pub const NONE: Coloring = Coloring {
        colors: 1,
        line: 1,
        group: 1,
    };

    /// `colors` colors, rounded down to a power of two, for blocks every `stride` bytes, one line
    /// of `cache` each. No more than there are sets to reach.
    pub fn new(colors: u64, stride: u64, cache: Cache) -> Coloring {
        let colors = colors.clamp(1, cache.most_colors(stride));
        let colors = 1 << colors.ilog2();
        Coloring {
            colors,
            line: cache.line(),
            group: cache.period(stride).next_multiple_of(colors),
        }
    }

    /// The coloring for `blocks` on a machine with these data `caches`, the nearest first: for the
    /// first cache that can hold their hot lines. [`Coloring::NONE`] where none can, or where that
    /// one holds them already.
    ///
    /// ```
    /// use warmq_coloring::{Blocks, Cache, Coloring};
    /// let l1 = Cache::new(32 << 10, 8, 64).unwrap();
    /// let l2 = Cache::new(512 << 10, 8, 64).unwrap();
    /// let colors = |blocks| Coloring::of(Blocks::new(blocks, 16 << 10), &[l1, l2]).colors();
    /// assert_eq!(colors(8), 1, "one set of level 1 holds 8");
    /// assert_eq!(colors(100), 16, "level 1 needs 13");
    /// assert_eq!(colors(1_024), 32, "too many for level 1, and level 2 needs 32");
    /// assert_eq!(colors(100_000), 1, "too many for both");
    /// ```
    pub fn of(blocks: Blocks, caches: &[Cache]) -> Coloring {
        let fitting = |cache: &Cache| Some((blocks.colors(*cache)?, *cache));
        match caches.iter().find_map(fitting) {
            Some((colors, cache)) if colors > 1 => Coloring::new(colors, blocks.stride, cache),
            _ => Coloring::NONE,
        }
    }

    /// How many colors there are.
    pub const fn colors(self) -> u64 {
        self.colors
    }

    /// The bytes that a block must have to spare: one line for each color but the first.
    pub const fn reach(self) -> u64 {
        (self.colors - 1) * self.line
    }

    /// The color of block `index`.
    ///
    /// Equation 1 takes the color from the address bits above those that choose a set: the color
    /// changes when the set of color 0 is used again, after a *period* of blocks. But blocks of one
    /// period may share a set of a nearer cache. So colors follow each other from block to block,
    /// and skip one at the end of each period (of each round of colors, if that is longer):
    ///
    /// ```text
    ///     color = (i + i / group) mod c     group := period, rounded up to a multiple of c
    ///
    ///     c = 4, period = 2:    blocks 0..15   0123 1230 2301 3012
    ///                           sets           abab abab abab abab   (that of the block's start)
    /// ```
    ///
    /// After any number of contiguous blocks the sets that can be reached hold equally many
    /// headers, or one more. Where a cache hashes its index, or pages are scattered, no address
    /// says which blocks conflict; each of the `colors` lines of a page has as many headers as any
    /// other then.
    pub const fn color(self, index: u64) -> u64 {
        (index % self.colors + index / self.group) % self.colors
    }

    /// How far block `index` moves its header, in bytes: a multiple of the line.
    pub const fn offset(self, index: u64) -> u64 {
        self.color(index) * self.line
    }
}
