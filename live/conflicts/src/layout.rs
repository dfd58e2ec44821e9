//! Addresses of one kind.

use serde::Serialize;
use warmq_coloring::{Blocks, Coloring};

use crate::PAGE;

/// What lies at addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Where the stacks of threads end, in use.
    StackPointers,
    /// The control blocks of threads.
    ControlBlocks,
    /// Where the stacks begin that no thread is in.
    StackTops,
    /// What looks like stacks side by side without guards.
    StacksAlike,
    /// Blocks that the user named.
    Blocks,
    /// Lines that samples hit.
    Samples,
}

impl Kind {
    /// As a title.
    pub fn title(self) -> &'static str {
        match self {
            Kind::StackPointers => "stack pointers of threads",
            Kind::ControlBlocks => "control blocks of threads",
            Kind::StackTops => "tops of stacks that no thread is in",
            Kind::StacksAlike => "what looks like stacks without guards",
            Kind::Blocks => "blocks",
            Kind::Samples => "lines that samples hit",
        }
    }

    /// How the addresses are known.
    pub fn source(self) -> &'static str {
        match self {
            Kind::StackPointers => "/proc/PID/task/*/syscall",
            Kind::ControlBlocks => "glibc's pointers to itself above each stack, in /proc/PID/mem",
            Kind::StackTops => {
                "the highest line in use of mappings of one size, each above a guard, in \
                 /proc/PID/mem"
            }
            Kind::StacksAlike => {
                "the highest addresses of code where populated pages end, a distance apart, in \
                 /proc/PID/pagemap and mem"
            }
            Kind::Blocks => "the command line",
            Kind::Samples => "lines with more than one sample",
        }
    }

    /// Whether a color moves the hot lines down, as those of stacks, or up.
    fn is_of_stacks(self) -> bool {
        !matches!(self, Kind::Blocks | Kind::Samples)
    }
}

/// Hot addresses of one kind.
///
/// Invariant: `addresses` are ascending, and no two are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: Kind,
    addresses: Vec<u64>,
}

impl Layout {
    /// Of `addresses`, in any order.
    pub fn new(kind: Kind, mut addresses: Vec<u64>) -> Layout {
        addresses.sort_unstable();
        addresses.dedup();
        Layout { kind, addresses }
    }

    /// What lies there.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The addresses, ascending.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// An address in each line of `line` bytes that has any.
    pub fn lines(&self, line: u64) -> Vec<u64> {
        let mut lines = self.addresses.clone();
        lines.dedup_by_key(|address| *address / line);
        lines
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The distance that most neighbours have, the smallest of those; `None` for less than two
    /// addresses.
    pub fn stride(&self) -> Option<u64> {
        let pairs = self.addresses.windows(2);
        let mut gaps: Vec<u64> = pairs.map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable_by(|gap, other| other.cmp(gap));
        let runs = gaps.chunk_by(|gap, next| gap == next);
        // Of runs that are equally long the last one, which has the smallest gap.
        runs.max_by_key(|run| run.len()).map(|run| run[0])
    }

    /// The same as the arithmetic of coloring sees them.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.addresses.len() as u64, self.stride().unwrap_or(PAGE))
    }

    /// How many lines of `line` bytes lie at each line of a page.
    pub fn by_offset(&self, line: u64) -> Vec<u64> {
        let mut counts = vec![0; PAGE.div_ceil(line) as usize];
        for address in self.lines(line) {
            counts[(address % PAGE / line) as usize] += 1;
        }
        counts
    }

    /// The same blocks with `coloring`.
    pub fn colored(&self, coloring: Coloring) -> Layout {
        let numbered = (0..).zip(&self.addresses);
        let moved = numbered.map(|(index, address)| match self.kind.is_of_stacks() {
            true => address.saturating_sub(coloring.offset(index)),
            false => address.saturating_add(coloring.offset(index)),
        });
        Layout::new(self.kind, moved.collect())
    }
}
