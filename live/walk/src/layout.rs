//! Where the hot lines of a walk lie: arithmetic only, shared by the measured and the simulated
//! walk.

use warmq_units::{Address, Bytes, Seed};

/// Where the hot structure starts in a block without a color. The paper's fields lie at
/// 0x20..0x3f of the block.
pub const HOT_OFFSET: u64 = 0x20;

/// Where the hot structure of each block lies.
///
/// As the paper colors: the structure starts `color * line` further into its block, and a block's
/// color is `log2(colors)` bits of its own address from bit `color_bits` on.
///
/// Invariant: `block_size`, `line` and `colors` are powers of two, and the hot lines of every
/// color lie within the block (checked by [`crate::WalkSettings::check`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size and alignment of a block.
    pub block_size: Bytes,
    /// Line size of the caches.
    pub line: Bytes,
    /// Hot lines a block.
    pub lines: u32,
    /// Colors; 1 is the vanilla kernel.
    pub colors: u32,
    /// The lowest address bit that the color is taken from.
    pub color_bits: u32,
}

impl Layout {
    /// The color of the block at `block`.
    pub fn color_of(&self, block: Address) -> u32 {
        ((block.0 >> self.color_bits) & u64::from(self.colors - 1)) as u32
    }

    /// How far into the block at `block` its hot structure starts.
    pub fn offset_in_block(&self, block: Address) -> u64 {
        HOT_OFFSET + u64::from(self.color_of(block)) * self.line.0
    }

    /// The end of the hot structure with the highest color, counted from the block's start: what
    /// a block must hold at least.
    pub fn end_of_hot(&self) -> u64 {
        HOT_OFFSET + (u64::from(self.colors) - 1 + u64::from(self.lines)) * self.line.0
    }

    /// The first hot address of each of `blocks`, in the order of the walk: `blocks[order[0]]`
    /// first.
    ///
    /// # Panics
    /// When `order` names a block that is not there.
    pub fn visits(&self, blocks: &[Address], order: &[u32]) -> Vec<Address> {
        let first_hot = |block: Address| block + self.offset_in_block(block);
        order
            .iter()
            .map(|index| first_hot(blocks[*index as usize]))
            .collect()
    }
}

/// The random order in which a list links `blocks` blocks: each once.
pub fn list_order(blocks: u32, seed: Seed) -> Vec<u32> {
    let mut order: Vec<u32> = (0..blocks).collect();
    seed.stream("list order").shuffle(&mut order);
    order
}

/// The colors without which a walk over `blocks` blocks cannot stay in a cache: equation 3,
///
/// ```text
///     c >= p / fit          p := blocks    fit := blocks whose hot lines fit without colors
/// ```
///
/// rounded up to the next power of two, as colors are bits of an address. At least 1. The paper's
/// `fit` is [`fit_by_size`]; where the sets are known, it is their number times the ways.
///
/// ```
/// use warmq_walk::{fit_by_size, needed_colors};
/// use warmq_units::Bytes;
/// let fit = fit_by_size(Bytes::from_mb(2), Bytes::from_kb(8));
/// assert_eq!([256, 512, 1024, 2048].map(|blocks| needed_colors(blocks, fit)), [1, 2, 4, 8]);
/// ```
pub fn needed_colors(blocks: u32, fit: u64) -> u32 {
    let needed = u64::from(blocks).div_ceil(fit.max(1)).next_power_of_two();
    u32::try_from(needed).unwrap_or(u32::MAX)
}

/// How many blocks have hot lines that fit into `cache` without colors, where the address alone
/// chooses the set: `s / block` of the paper, as one line of a block uses one set in so many.
pub fn fit_by_size(cache: Bytes, block_size: Bytes) -> u64 {
    cache.0 / block_size.0.max(1)
}
