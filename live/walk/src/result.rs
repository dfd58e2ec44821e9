//! What a measurement found: plain data for reports and for `--json`.

use serde::{Serialize, Serializer};
use warmq_units::Bytes;

use super::geometry::Geometry;
use super::pages::Backing;
use super::placement::{Placement, Search};
use crate::spread::Spread;

/// A measured walk: the facts of the place, and a row for each pair of blocks and colors.
#[derive(Clone, Debug, Serialize)]
pub struct WalkReport {
    /// Where and on what it was measured.
    pub facts: WalkFacts,
    /// The sets of the colored cache that the visited lines use.
    #[serde(skip)]
    pub placement: Placement,
    /// In the order of the settings: all colors of the first count of blocks, then the next.
    pub rows: Vec<WalkRow>,
}

/// Where and on what a walk was measured.
#[derive(Clone, Debug, Serialize)]
pub struct WalkFacts {
    /// The pinned CPU.
    pub cpu: u16,
    /// Size and alignment of a block.
    #[serde(rename = "block_size_bytes", serialize_with = "bytes")]
    pub block_size: Bytes,
    /// Hot lines a block.
    pub lines: u32,
    /// The cache that the colors are for.
    pub cache: Geometry,
    /// The first bit that takes no part in choosing a set of it (equation 1).
    pub first_free_bit: u32,
    /// Blocks whose hot lines fit into the cache without colors: by the sets that were found, or
    /// else by its size, as the paper has it.
    pub fit_without_colors: u64,
    /// The first address bit that colors were taken from.
    pub color_bits: u32,
    /// Huge pages were asked for.
    pub huge_pages_asked: bool,
    /// What was obtained.
    pub pages: Backing,
    /// How the sets of the cache that the lines use are known, and what was found.
    pub sets: Search,
    /// Seed of the list's order.
    pub seed: u64,
    /// Shortest time of one measurement in ns.
    pub min_time_ns: u64,
}

/// One count of blocks with one number of colors.
#[derive(Clone, Debug, Serialize)]
pub struct WalkRow {
    /// Blocks on the list.
    pub blocks: u32,
    /// Colors; 1 is the vanilla kernel.
    pub colors: u32,
    /// The colors that equation 3 asks for, with the sets that were found where that is known.
    pub needed_colors: u32,
    /// Time for a visit of one block in ns, over the repetitions.
    pub ns_per_visit: Spread,
    /// Measurements.
    pub repetitions: u32,
    /// Measurements during which another task had the CPU, even when tried again.
    pub disturbed: u32,
    /// The first hot word of each block in the order of the walk: bytes from the start of the
    /// memory, which is aligned on a huge page.
    #[serde(skip)]
    pub visits: Vec<u64>,
}

/// A size as its number of bytes.
pub(crate) fn bytes<S: Serializer>(size: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(size.0)
}
