//! Where the hot lines of a walk lie: arithmetic only, shared by the measured and the simulated
//! walk.

use warmq_coloring::color_of;
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
        color_of(block.0, self.color_bits, u64::from(self.colors)) as u32
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
