//! Equations 1 and 3 of the coloring paper.

/// Equation 1: the lowest address bit that does not take part in the choice of a set,
/// `b = log2(size / ways)`, rounded down where that is no power of two. 0 where there is no cache.
///
/// Blocks that differ only in bits from b on share a set; bits below b never make blocks conflict,
/// so colors made of them gain nothing.
pub const fn first_free_bit(way_size: u64) -> u32 {
    if way_size == 0 { 0 } else { way_size.ilog2() }
}

/// The color that equation 1 gives the block at `block`: the log2(`colors`) bits of its address
/// from `first_bit` on. `colors` is a power of two.
///
/// ```
/// // The paper's figure 5: a block at 72 KB, 4 colors, a way of 32 KB.
/// assert_eq!(warmq_coloring::color_of(72 << 10, 15, 4), 2);
/// ```
pub const fn color_of(block: u64, first_bit: u32, colors: u64) -> u64 {
    match block.checked_shr(first_bit) {
        Some(bits) => bits & colors.saturating_sub(1),
        None => 0,
    }
}

/// Equation 3: the colors without which the hot lines of `blocks` blocks cannot stay in a cache,
///
/// ```text
///     c >= p / fit          p := blocks    fit := blocks whose hot lines fit without colors
/// ```
///
/// rounded up to the next power of two, as colors are bits of an address. At least 1. `fit` is
/// [`Cache::fit`](crate::Cache::fit); where the sets were found by measuring, it is the sets that
/// the same line of all blocks uses times the ways.
///
/// ```
/// use warmq_coloring::{Cache, needed_colors};
/// let fit = Cache::new(2 << 20, 16, 64).unwrap().fit(8 << 10);
/// assert_eq!([256, 512, 1024, 2048].map(|blocks| needed_colors(blocks, fit)), [1, 2, 4, 8]);
/// ```
pub fn needed_colors(blocks: u64, fit: u64) -> u64 {
    let needed = blocks.div_ceil(fit.max(1)).max(1);
    needed.checked_next_power_of_two().unwrap_or(1 << 63)
}
