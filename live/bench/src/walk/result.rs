//! What a measurement found: plain data for reports and for `--json`.

use serde::{Serialize, Serializer};
use warmq_units::{Address, Bytes};

use super::geometry::Geometry;
use super::pages::Backing;
use crate::compare::Spread;

/// A measured walk: the facts of the place, and a row for each pair of blocks and colors.
#[derive(Clone, Debug, Serialize)]
pub struct WalkReport {
    /// Where and on what it was measured.
    pub facts: WalkFacts,
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
    /// The first address bit that colors were taken from.
    pub color_bits: u32,
    /// Huge pages were asked for.
    pub huge_pages_asked: bool,
    /// What was obtained.
    pub pages: Backing,
    /// How the addresses of the visits are known.
    pub addresses: Known,
    /// Whether colors come from physical address bits (read from pagemap) or from virtual ones.
    pub colors_from_physical: bool,
    /// Seed of the list's order.
    pub seed: u64,
    /// Shortest time of one measurement in ns.
    pub min_time_ns: u64,
}

/// How the physical addresses of the blocks are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The sets of the colored cache that each page uses were measured: pages that throw each other
    /// out share them. Addresses of visits are then made up to use the same sets.
    Measured,
    /// From /proc/self/pagemap. In a virtual machine they are the guest's, and choose no set.
    Physical,
    /// Not at all: virtual addresses stand in for them. Within a huge page their low 21 bits agree.
    Virtual,
}

/// One count of blocks with one number of colors.
#[derive(Clone, Debug, Serialize)]
pub struct WalkRow {
    /// Blocks on the list.
    pub blocks: u32,
    /// Colors; 1 is the vanilla kernel.
    pub colors: u32,
    /// The colors that equation 3 asks for.
    pub needed_colors: u32,
    /// Time for a visit of one block in ns, over the repetitions.
    pub ns_per_visit: Spread,
    /// Measurements.
    pub repetitions: u32,
    /// Measurements during which another task had the CPU, even when tried again.
    pub disturbed: u32,
    /// The first hot address of each block in the order of the walk, as the caches index it, as
    /// far as that is known.
    #[serde(skip)]
    pub visits: Vec<Address>,
}

/// A size as its number of bytes.
pub(crate) fn bytes<S: Serializer>(size: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(size.0)
}
