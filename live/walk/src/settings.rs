//! What to measure: plain data, a reason on every field, checked before anything runs.

use std::fmt::Display;

use warmq_units::{Bytes, CpuId, Duration, Seed};

use super::geometry::Geometry;
use super::layout::Layout;
use crate::error::WalkError;

/// The most memory that a measurement asks for: 4 GB.
const LARGEST_ARENA: u64 = 4 << 30;

/// A measurement of the run-queue walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkSettings {
    /// Blocks on the list; each count is measured on its own. From 1 up to 4 GB of blocks.
    pub blocks: Vec<u32>,
    /// Size and alignment of a block: a power of two from 256 bytes to 1 MB. Linux 2.4 has 8 KB.
    pub block_size: Bytes,
    /// Hot lines a block, at least 1. The first holds the pointer to the next block, the others
    /// are read at each visit. The paper's kernel has 1.
    pub lines: u32,
    /// Numbers of colors, powers of two; 1 is the vanilla kernel. All are measured in turn.
    pub colors: Vec<u32>,
    /// The lowest address bit that colors are taken from; `None` for the one of equation 1,
    /// right above the bits that choose a set of the colored cache.
    pub color_bits: Option<u32>,
    /// Ask for huge pages, so that blocks are neighbours in physical memory as in a kernel's
    /// direct map. What was really obtained stands in [`crate::WalkFacts`].
    pub huge_pages: bool,
    /// The CPU to pin to; `None` for the last one allowed (the first takes most interrupts).
    pub cpu: Option<CpuId>,
    /// Measurements for each pair of blocks and colors, 1 to 10000; the median is reported.
    pub repetitions: u32,
    /// The shortest a single measurement may last, from 1 us to 10 s. Long enough that reading
    /// the clock does not matter, short enough to fit between two preemptions.
    pub min_time: Duration,
    /// How long the search for the sets may take, up to 10 min; zero for no search. On an idle
    /// machine it takes a few seconds.
    pub search_time: Duration,
    /// Makes the list's order.
    pub seed: Seed,
}

impl Default for WalkSettings {
    fn default() -> WalkSettings {
        WalkSettings {
            blocks: vec![64, 256, 512, 1024, 2048],
            block_size: Bytes::from_kb(8),
            lines: 1,
            colors: vec![1, 4, 32],
            color_bits: None,
            huge_pages: true,
            cpu: None,
            repetitions: 15,
            min_time: Duration::from_ms(4),
            search_time: Duration::from_s(20),
            seed: Seed(1),
        }
    }
}

impl WalkSettings {
    /// Refuses settings that no measurement can be made of.
    ///
    /// # Errors
    /// [`WalkError::Setting`] with the field, its value, and what to write instead.
    pub fn check(&self, cache: Geometry) -> Result<(), WalkError> {
        self.check_blocks()?;
        self.check_lines(cache)?;
        self.check_colors(cache)?;
        self.check_repetitions()
    }

    /// Where the hot lines lie with `colors` colors of `cache`.
    pub fn layout(&self, colors: u32, cache: Geometry) -> Layout {
        Layout {
            block_size: self.block_size,
            line: cache.line,
            lines: self.lines,
            colors,
            color_bits: self.color_bits.unwrap_or_else(|| cache.first_free_bit()),
        }
    }

    /// Memory for the longest list.
    pub fn largest_list(&self) -> Bytes {
        let blocks = self.blocks.iter().copied().max().unwrap_or(0);
        Bytes(u64::from(blocks).saturating_mul(self.block_size.0))
    }

    fn check_blocks(&self) -> Result<(), WalkError> {
        let (size, listed) = (self.block_size, || format!("{:?}", self.blocks));
        if !size.0.is_power_of_two() || !(256..=1 << 20).contains(&size.0) {
            let (problem, fix) = ("a block is a power of two from 256 B to 1 MB", "write 8 KB");
            return Err(WalkError::setting("block_size", size, problem, fix));
        }
        if self.blocks.is_empty() || self.blocks.contains(&0) {
            let (problem, fix) = ("a list has at least one block", "write 256,512,1024,2048");
            return Err(WalkError::setting("blocks", listed(), problem, fix));
        }
        if self.largest_list().0 > LARGEST_ARENA {
            let problem = format!("these blocks take {}", self.largest_list());
            let fix = format!("write at most {}", LARGEST_ARENA / size.0);
            return Err(WalkError::setting("blocks", listed(), problem, fix));
        }
        Ok(())
    }

    fn check_lines(&self, cache: Geometry) -> Result<(), WalkError> {
        let layout = self.layout(1, cache);
        if self.lines == 0 || layout.end_of_hot() > self.block_size.0 {
            let most = self.block_size.0 / cache.line.0 - 1;
            let problem = format!("a block of {} holds 1 to {most} hot lines", self.block_size);
            return Err(WalkError::setting("lines", self.lines, problem, "write 1"));
        }
        Ok(())
    }

    fn check_colors(&self, cache: Geometry) -> Result<(), WalkError> {
        let listed = || format!("{:?}", self.colors);
        if self.colors.is_empty() || self.colors.iter().any(|colors| !colors.is_power_of_two()) {
            let problem = "colors are bits of an address, so their number is a power of two";
            let fix = "write 1,4,32";
            return Err(WalkError::setting("colors", listed(), problem, fix));
        }
        let most = self.colors.iter().copied().max().unwrap_or(1);
        if self.layout(most, cache).end_of_hot() > self.block_size.0 {
            let problem = format!(
                "{most} colors and {} hot lines do not fit into a block of {}",
                self.lines, self.block_size
            );
            let fix = "write fewer colors, fewer lines, or larger blocks";
            return Err(WalkError::setting("colors", listed(), problem, fix));
        }
        let bits = self.layout(most, cache).color_bits;
        if self.block_size.0.ilog2() > bits {
            let problem = format!("bit {bits} is zero in the address of every block");
            let fix = format!("write {} or more", self.block_size.0.ilog2());
            return Err(WalkError::setting("color_bits", bits, problem, fix));
        }
        if bits + most.ilog2() > 47 {
            let (problem, fix) = ("an address ends at bit 47", "write less");
            return Err(WalkError::setting("color_bits", bits, problem, fix));
        }
        Ok(())
    }

    fn check_repetitions(&self) -> Result<(), WalkError> {
        let refuse = |field, value: &dyn Display, problem, fix| {
            Err(WalkError::setting(field, value, problem, fix))
        };
        let (repetitions, span) = (self.repetitions, self.min_time);
        if !(1..=10_000).contains(&repetitions) {
            let problem = "the median is of 1 to 10000 measurements";
            return refuse("repetitions", &repetitions, problem, "write 15");
        }
        if span < Duration::from_us(1) || span > Duration::from_s(10) {
            let problem = "a measurement lasts from 1 us to 10 s";
            return refuse("min_time", &span, problem, "write 4 ms");
        }
        if self.search_time > Duration::from_s(600) {
            let problem = "the search lasts at most 10 minutes";
            return refuse("search_time", &self.search_time, problem, "write 20 s");
        }
        Ok(())
    }
}
