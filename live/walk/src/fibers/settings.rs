//! What to measure of fibers.
#![allow(unsafe_code)]

use itertools::join;
use warmq_color::{Options, Pool};
use warmq_units::{Bytes, Duration};

use super::ring::MOST_LINES;
use crate::error::WalkError;

/// More stacks with guard pages than the usual vm.max_map_count (65,530) lets a process have.
const MOST_FIBERS: u32 = 32_000;

/// A measurement of fibers that yield in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiberSettings {
    /// How many fibers, 1 to 32,000; each number is measured on its own.
    pub fibers: Vec<u32>,
    /// Sizes of stacks, from 8 KB to 1 GB.
    pub stacks: Vec<Bytes>,
    /// Numbers of colors beside plain; `None` is what the library chooses for the fibers.
    pub colors: Vec<Option<u64>>,
    /// Lines of its frame that a fiber touches, 1 to 8.
    pub lines: u32,
    /// Measurements of each, 1 to 1000, each on stacks that are mapped anew.
    pub rounds: u32,
    /// How long a measurement of one coloring takes at least, from 1 us to 10 s.
    pub time: Duration,
    /// Huge pages, without guard pages.
    pub huge_pages: bool,
}

impl Default for FiberSettings {
    fn default() -> FiberSettings {
        FiberSettings {
            fibers: vec![64, 256, 1_024, 4_096, 16_000],
            stacks: vec![Bytes::from_kb(16), Bytes::from_kb(64), Bytes::from_kb(256)],
            colors: vec![None],
            lines: 2,
            rounds: 11,
            time: Duration::from_ms(60),
            huge_pages: false,
        }
    }
}

impl FiberSettings {
    /// Lines of a stack that are touched: those of the frame, and one by the switch itself.
    pub fn hot_lines(&self) -> u64 {
        u64::from(self.lines) + 1
    }

    pub(super) fn options(&self, stack: Bytes) -> Options {
        let options = Pool::of_size(stack.0 as usize).hot_lines(self.hot_lines());
        if self.huge_pages {
            // SAFETY: the fibers of this crate use less than 2 KB of stack.
            unsafe { options.huge_without_guards() }
        } else {
            options
        }
    }

    /// Refuses settings that no measurement can be made of.
    ///
    /// # Errors
    /// [`WalkError::Setting`] with the field, its value, and what to write instead.
    pub fn check(&self) -> Result<(), WalkError> {
        let refuse = |field, value: String, problem: &str, fix: &str| {
            Err(WalkError::setting(field, value, problem, fix))
        };
        let counts = 1..=MOST_FIBERS;
        if self.fibers.is_empty() || self.fibers.iter().any(|count| !counts.contains(count)) {
            let problem = "1 to 32000 fibers run in turn";
            return refuse(
                "fibers",
                format!("{:?}", self.fibers),
                problem,
                "write 64,1024",
            );
        }
        let sizes = Bytes::from_kb(8)..=Bytes(1 << 30);
        if self.stacks.is_empty() || self.stacks.iter().any(|size| !sizes.contains(size)) {
            let (listed, problem) = (join(&self.stacks, ","), "a stack has 8 KB to 1 GB");
            return refuse("stack", listed, problem, "write 64KB");
        }
        let is_color = |colors: &Option<u64>| colors.is_none_or(u64::is_power_of_two);
        if self.colors.is_empty() || !self.colors.iter().all(is_color) {
            let number = |colors: &Option<u64>| colors.map_or("auto".to_owned(), |c| c.to_string());
            let listed = join(self.colors.iter().map(number), ",");
            let problem = "a number of colors is a power of two, or auto";
            return refuse("colors", listed, problem, "write auto,8,32");
        }
        if !(1..=MOST_LINES as u32).contains(&self.lines) {
            let problem = "a fiber touches 1 to 8 lines of its frame";
            return refuse("lines", self.lines.to_string(), problem, "write 2");
        }
        if !(1..=1_000).contains(&self.rounds) {
            let problem = "the median is of 1 to 1000 rounds";
            return refuse("rounds", self.rounds.to_string(), problem, "write 11");
        }
        if self.time < Duration::from_us(1) || self.time > Duration::from_s(10) {
            let problem = "a measurement lasts from 1 us to 10 s";
            return refuse("time", self.time.to_string(), problem, "write 60ms");
        }
        Ok(())
    }
}
