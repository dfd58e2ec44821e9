//! Which color the i-th block has.

use crate::cache::{Cache, PAGE};
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
    /// Whether whoever leaves a block stores to them, as a switch does to the top of a stack.
    pub stored: bool,
}

impl Blocks {
    /// `count` blocks with one hot line each.
    pub const fn new(count: u64, stride: u64) -> Blocks {
        Blocks {
            count,
            stride,
            hot_lines: 1,
            stored: false,
        }
    }

    /// The same blocks with so many hot lines each.
    pub const fn with_hot_lines(self, hot_lines: u64) -> Blocks {
        Blocks { hot_lines, ..self }
    }

    /// The same blocks, to which whoever leaves one stores.
    pub const fn that_are_stored_to(self) -> Blocks {
        Blocks {
            stored: true,
            ..self
        }
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

    /// How many colors to give the blocks for the sake of `cache`, in virtual memory with pages of
    /// [`PAGE`] bytes. 1 is no coloring, and `None` that this cache gains nothing by any.
    ///
    /// | rule | reason |
    /// |---|---|
    /// | equation 3 at least | with fewer, lines of some sets evict each other all the same |
    /// | twice as many where there is room | with those of equation 3 the blocks' lines take all ways of their sets, and none is left for other data |
    /// | a block's hot lines stay within a page | each page more is one more entry in the TLB, which costs more than a miss of level 1 |
    /// | with pages at random places: `m + 3 * sqrt(m) <= ways` | lines are spread over sets as by lots (Poisson), `m` in the mean, and this says that nearly all sets hold theirs, by three standard deviations. To `m` belong the hot lines and two of page tables for each block, the guest's and the host's, as walks of these go through the caches, too |
    ///
    /// Pages lie at random places for a cache whose ways are larger than a page: its sets are
    /// chosen by physical addresses, and often by a hash of them.
    pub fn worthwhile(self, cache: Cache) -> Option<u64> {
        let by_offset = cache.way_size() <= PAGE;
        let of_pages = self.stride.is_multiple_of(PAGE);
        let seen = match by_offset || !of_pages {
            true => self,
            false => Blocks {
                stride: PAGE,
                ..self
            },
        };
        let needed = seen.colors(cache)?;
        if needed == 1 {
            return Some(1);
        }
        let most = seen.most_in_a_page(cache);
        let holds = by_offset || seen.are_held_by_lot(cache);
        (holds && needed <= most).then_some(most.min(2 * needed))
    }

    /// The most colors with which the hot lines of a block that begins at a page end in that page.
    fn most_in_a_page(self, cache: Cache) -> u64 {
        let lines = PAGE / cache.line().min(PAGE);
        let free = lines.saturating_sub(self.hot_lines.max(1) - 1).max(1);
        cache.most_colors(self.stride).min(1 << free.ilog2())
    }

    /// Whether nearly all sets hold the lines that lots give them: `m + 3 * sqrt(m) <= ways`, with
    /// `m := lines / sets`.
    fn are_held_by_lot(self, cache: Cache) -> bool {
        let of_a_block = u128::from(self.hot_lines.max(1)) + LINES_OF_PAGE_TABLES;
        let lines = u128::from(self.count).saturating_mul(of_a_block);
        let (room, sets) = (u128::from(cache.lines()), u128::from(cache.sets()));
        lines <= room && (room - lines).pow(2) >= lines.saturating_mul(9 * sets)
    }
}

/// Lines of page tables that a block needs at most: an entry has 8 bytes, so that blocks of eight
/// pages or more have lines of their own, in the guest's table and in the host's.
const LINES_OF_PAGE_TABLES: u128 = 2;

/// Colors of blocks that are stored to, where a later level holds their lines as they are. A load
/// from the place of a page to which a store to another page is under way may have to wait for it.
/// Eight colors free nearly all loads, and 16 gain no more (measured; docs/coloring.md).
const AGAINST_WAITING: u64 = 16;

/// The last level that colors are for. Later ones are shared with other cores, and in slices that
/// are chosen by a hash on all cores of today: what they hold of one program is not its own.
pub const LAST_LEVEL: usize = 2;

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
    /// first cache up to [`LAST_LEVEL`] that can hold their hot lines ([`Blocks::worthwhile`]).
    /// [`Coloring::NONE`] where none can, or where that one holds them already; but 16 colors where
    /// it is not the nearest, and the blocks are stored to: then loads would wait for stores to the
    /// same place of another page.
    ///
    /// ```
    /// use warmq_coloring::{Blocks, Cache, Coloring};
    /// let l1 = Cache::new(32 << 10, 8, 64).unwrap();
    /// let l2 = Cache::new(512 << 10, 8, 64).unwrap();
    /// let colors = |blocks| Coloring::of(Blocks::new(blocks, 16 << 10), &[l1, l2]).colors();
    /// assert_eq!(colors(8), 1, "one set of level 1 holds 8");
    /// assert_eq!(colors(100), 32, "level 1 needs 13");
    /// assert_eq!(colors(600), 16, "too many for level 1, and level 2 needs 5");
    /// assert_eq!(colors(100_000), 1, "too many for both");
    /// ```
    pub fn of(blocks: Blocks, caches: &[Cache]) -> Coloring {
        let levels = caches.iter().take(LAST_LEVEL).enumerate();
        let mut fitting = levels.filter_map(|(at, cache)| Some((at, blocks.worthwhile(*cache)?)));
        match fitting.next() {
            Some((at, 1)) if at > 0 && blocks.stored => {
                Coloring::new(AGAINST_WAITING, blocks.stride, caches[0])
            }
            Some((at, colors)) if colors > 1 => Coloring::new(colors, blocks.stride, caches[at]),
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
