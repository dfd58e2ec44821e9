//! Physical pages: a buddy allocator over memory that has been in use for long.
//!
//! Why it matters: which blocks compete for a cache set is decided by their physical addresses. On
//! a machine that has been up for a while, consecutive allocations are not adjacent. The coloring
//! paper names that as the reason why 32 colors, enough in theory, still miss in 256 KB.

mod buddy;
mod wear;

use warmq_units::{Address, Bytes, Stream};

use crate::MemoryDescription;
use buddy::{Buddy, Run, Zone};
use wear::Wear;

/// The order of the largest block of Linux's allocator; a region is at least that large.
const REGION_ORDER: u32 = 10;
/// Blocks up to this order are taken from worn regions first, larger ones from whole regions.
const SMALL_ORDER: u32 = 1;

/// How fragmented the memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragmentation {
    /// Just booted: allocations are contiguous and ascend from address 0.
    Fresh,
    /// Long in use: free memory is scattered in small clusters.
    Worn {
        /// Mean size of a free cluster in blocks of two pages (8 KB on x86), at least 1. About 8
        /// reproduces the coloring paper's figures best.
        cluster: u32,
        /// The percentage of memory that is in use for good, 0 to 100.
        used_percent: u8,
    },
}

/// No block of this size is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no 2^{order} contiguous pages are among the {free_pages} that are free")]
pub struct OutOfMemory {
    /// The requested order: 2^order pages.
    pub order: u32,
    /// Pages that are free, in smaller blocks.
    pub free_pages: u64,
}

/// The pages of a machine.
///
/// Invariant: live blocks never overlap, each is aligned to its own size, and live pages, free
/// pages and pages in use for good add up to the memory's size.
///
/// Worn memory is constructed as follows. Seven of eight regions (of 4 MB, or a huge page if that
/// is larger) are worn: each has the same share of its pages free, in clusters at random places.
/// One of eight is free as a whole, as Linux's grouping of pages by mobility keeps them, unless
/// memory is too full for that; one in eight is an assumption, without a published figure. Blocks
/// of one or two pages come from the clusters, one cluster after another in random order; larger
/// blocks and huge pages come from whole regions; each falls back on the other. Regions are opened
/// in batches when they are needed, so that a terabyte costs little.
#[derive(Clone, Debug)]
pub struct PhysicalMemory {
    // Set when the machine is built, and never after.
    page: Bytes,
    pages: u64,
    region_order: u32,

    // Changed by every allocation.
    buddy: Buddy,
    free_pages: u64,
    stream: Stream,

    // The regions that are not yet opened; only shrinks.
    wear: Wear,
    clusters: Vec<Run>,
    whole: Vec<u32>,
}

impl PhysicalMemory {
    /// The memory of a machine, as worn as `fragmentation` says. The stream decides where the free
    /// pages are: equal streams give equal addresses.
    pub fn new(
        memory: &MemoryDescription,
        fragmentation: Fragmentation,
        mut stream: Stream,
    ) -> PhysicalMemory {
        let pages = memory.size.0 / memory.page.0;
        let huge_order = (memory.huge_page.0 / memory.page.0).max(1).ilog2();
        let region_order = REGION_ORDER.max(huge_order);
        let regions = pages.div_ceil(1 << region_order) as u32;
        let (wear, whole, free_pages) = match fragmentation {
            Fragmentation::Fresh => (Wear::none(), (0..regions).rev().collect(), pages),
            Fragmentation::Worn {
                cluster,
                used_percent,
            } => {
                let used = pages * u64::from(used_percent.min(100)) / 100;
                wear::wear(
                    pages,
                    region_order,
                    pages - used,
                    cluster.max(1),
                    &mut stream,
                )
            }
        };
        PhysicalMemory {
            page: memory.page,
            pages,
            region_order,
            buddy: Buddy::new(regions as usize, region_order),
            free_pages,
            stream,
            wear,
            clusters: Vec::new(),
            whole,
        }
    }

    /// The largest order that [`PhysicalMemory::allocate`] can ever give.
    pub fn largest_order(&self) -> u32 {
        self.region_order
    }

    /// Pages that are free.
    pub fn free_pages(&self) -> u64 {
        self.free_pages
    }

    /// A block of 2^`order` pages, aligned to its size.
    ///
    /// # Errors
    /// When no such block is free, or `order` is above [`PhysicalMemory::largest_order`].
    pub fn allocate(&mut self, order: u32) -> Result<Address, OutOfMemory> {
        let page = self.take(order);
        let page = page.ok_or(OutOfMemory {
            order,
            free_pages: self.free_pages,
        })?;
        self.free_pages -= 1 << order;
        Ok(Address(u64::from(page) * self.page.0))
    }

    /// Frees a block.
    ///
    /// # Panics
    /// When no block of this order was allocated at `block`, or it was freed before: that is a bug
    /// of the simulated kernel, not a user's mistake.
    pub fn free(&mut self, block: Address, order: u32) {
        let page = block.0 / self.page.0;
        assert!(page < self.pages, "{block} lies beyond the memory");
        self.buddy.free(page as u32, order);
        self.free_pages += 1 << order;
    }

    fn take(&mut self, order: u32) -> Option<u32> {
        if order > self.region_order {
            return None;
        }
        loop {
            if let Some(page) = self.buddy.take(Zone::Worn, order) {
                return Some(page);
            }
            if self.open_cluster(order) || order <= SMALL_ORDER && self.open_worn() {
                continue;
            }
            if let Some(page) = self.buddy.take(Zone::Whole, order) {
                return Some(page);
            }
            if !self.open_whole() && !self.open_worn() {
                return None;
            }
        }
    }

    /// Makes the next cluster that holds a block of this order free; false when there is none.
    fn open_cluster(&mut self, order: u32) -> bool {
        let fitting = self
            .clusters
            .iter()
            .rposition(|cluster| cluster.holds(order));
        let cluster = fitting.map(|index| self.clusters.swap_remove(index));
        cluster.map(|cluster| self.buddy.insert(cluster)).is_some()
    }

    /// Opens the next batch of worn regions; false when all are open.
    fn open_worn(&mut self) -> bool {
        let batch = self.wear.next_batch();
        for worn in &batch {
            let run = self.run_of(worn.region);
            self.buddy
                .open(worn.region, Zone::Worn, run.end - run.start);
            let units = (run.end - run.start) / 2;
            let clusters = self.wear.clusters(units, worn.free_units, &mut self.stream);
            let placed = clusters.into_iter().map(|cluster| Run {
                start: run.start + 2 * cluster.start,
                end: run.start + 2 * cluster.end,
            });
            self.clusters.extend(placed);
        }
        self.stream.shuffle(&mut self.clusters);
        !batch.is_empty()
    }

    /// Makes the next region that is free as a whole available; false when there is none.
    fn open_whole(&mut self) -> bool {
        let Some(region) = self.whole.pop() else {
            return false;
        };
        let run = self.run_of(region);
        self.buddy.open(region, Zone::Whole, run.end - run.start);
        self.buddy.insert(run);
        true
    }

    /// The pages of a region; the last one may be shorter than the others.
    fn run_of(&self, region: u32) -> Run {
        let start = u64::from(region) << self.region_order;
        let end = (start + (1 << self.region_order)).min(self.pages);
        Run {
            start: start as u32,
            end: end as u32,
        }
    }
}
