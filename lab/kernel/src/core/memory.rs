//! The simulated memory of a run: regions of pages, and accesses through the caches.

use std::ops::AddAssign;

use warmq_machine::{
    Access, FULL_CAPACITY, Hierarchy, MachineDescription, OutOfMemory, PhysicalMemory, Served,
};
use warmq_units::{Address, Bytes, CpuId, Duration, Instant};

use crate::words::{Region, Table, Touch};

/// The code that an access belongs to, where accesses are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Within {
    /// Anything else.
    #[default]
    Elsewhere,
    /// The loop of `schedule()` over the run queue (the coloring paper's equation 2).
    RunQueueWalk,
}

/// How many accesses were served by each level of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AccessCounts {
    /// By cache level; entry 0 is level 1.
    pub by_level: [u64; 4],
    /// Served by another CPU's cache.
    pub by_cache: u64,
    /// Served by memory.
    pub by_memory: u64,
}

impl AccessCounts {
    fn count(&mut self, served: Served) {
        match served {
            Served::Level(level) => self.by_level[usize::from(level) - 1] += 1,
            Served::Cache => self.by_cache += 1,
            Served::Memory => self.by_memory += 1,
        }
    }

    /// What was counted after `before`.
    #[must_use]
    pub fn since(&self, before: &AccessCounts) -> AccessCounts {
        let level = |at: usize| self.by_level[at] - before.by_level[at];
        AccessCounts {
            by_level: std::array::from_fn(level),
            by_cache: self.by_cache - before.by_cache,
            by_memory: self.by_memory - before.by_memory,
        }
    }

    /// Accesses that reached `level` (1: all of them).
    pub fn reached(&self, level: u8) -> u64 {
        let answered_before: u64 = self.by_level[..usize::from(level) - 1].iter().sum();
        self.total() - answered_before
    }

    /// All accesses.
    pub fn total(&self) -> u64 {
        self.by_level.iter().sum::<u64>() + self.by_cache + self.by_memory
    }
}

impl AddAssign for AccessCounts {
    fn add_assign(&mut self, other: AccessCounts) {
        for (own, more) in self.by_level.iter_mut().zip(other.by_level) {
            *own += more;
        }
        self.by_cache += other.by_cache;
        self.by_memory += other.by_memory;
    }
}

/// Memory with the caches in front of it; without caches, every access is free.
pub(crate) struct Memory {
    hierarchy: Option<Hierarchy>,
    /// Holds the caches until time starts, so that the setup leaves no trace in them.
    cold: Option<Hierarchy>,
    physical: PhysicalMemory,
    page: Bytes,
    line: u64,
    /// log2 of the lines of a page; pages and lines are powers of two, as machines are checked for.
    page_shift: u32,
    /// The number of independent misses that overlap.
    overlap: u64,
    /// How fast each CPU works, in 1024ths of the fastest; empty where all are alike.
    capacities: Vec<u64>,
    regions: Table<Region, Vec<Address>>,
    counts: [AccessCounts; 2],
}

impl Memory {
    pub(crate) fn new(
        cold: Option<Hierarchy>,
        physical: PhysicalMemory,
        page: Bytes,
        line: Bytes,
        overlap: u64,
    ) -> Memory {
        Memory {
            hierarchy: None,
            cold,
            physical,
            page,
            line: line.0,
            page_shift: (page.0 / line.0).ilog2(),
            overlap: overlap.max(1),
            capacities: Vec::new(),
            regions: Table::default(),
            counts: Default::default(),
        }
    }

    /// The same for CPUs as fast as those of `machine`.
    pub(crate) fn waited_for_by(mut self, machine: &MachineDescription) -> Memory {
        self.capacities = machine.capacities.iter().copied().map(u64::from).collect();
        self
    }

    /// Time starts, and the caches are cold.
    pub(crate) fn switch_caches_on(&mut self) {
        self.hierarchy = self.cold.take();
    }

    pub(crate) fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.as_ref()
    }

    pub(crate) fn counts(&self, within: Within) -> AccessCounts {
        self.counts[within as usize]
    }

    pub(crate) fn reset_counts(&mut self) {
        self.counts = Default::default();
        if let Some(hierarchy) = &mut self.hierarchy {
            hierarchy.reset_counts();
        }
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn page(&self) -> Bytes {
        self.page
    }

    /// A block of `bytes` of kernel memory, aligned on its size rounded up to a power of two pages.
    pub(crate) fn block(&mut self, bytes: Bytes) -> Result<Address, OutOfMemory> {
        self.physical.allocate(order(bytes, self.page))
    }

    pub(crate) fn free_block(&mut self, block: Address, bytes: Bytes) {
        self.physical.free(block, order(bytes, self.page));
    }

    /// Pages for `bytes`, each allocated separately, as user memory is.
    pub(crate) fn region(&mut self, bytes: Bytes) -> Result<Region, OutOfMemory> {
        let region = self.regions.add(Vec::new());
        self.grow(region, bytes.max(Bytes(1)))?;
        Ok(region)
    }

    /// Memory that has no pages yet: it must be grown before it is touched.
    pub(crate) fn empty_region(&mut self) -> Region {
        self.regions.add(Vec::new())
    }

    /// Gives `region` more pages until it holds `bytes`; what is there stays where it is.
    pub(crate) fn grow(&mut self, region: Region, bytes: Bytes) -> Result<(), OutOfMemory> {
        let pages = &mut self.regions[region];
        while (pages.len() as u64) < bytes.0.div_ceil(self.page.0) {
            pages.push(self.physical.allocate(0)?);
        }
        Ok(())
    }

    /// The address of line `line` of `region`; lines beyond its end wrap around.
    pub(crate) fn address(&self, region: Region, line: u64) -> Address {
        let pages = &self.regions[region];
        let (page, within) = (line >> self.page_shift, line & ((1 << self.page_shift) - 1));
        pages[(page % pages.len() as u64) as usize] + within * self.line
    }

    /// Whether an access may take time at all.
    pub(crate) fn has_caches(&self) -> bool {
        self.hierarchy.is_some()
    }

    /// One access that the CPU waits for: how long the fastest CPU would work in that time, as
    /// times of CPUs are work ([`Speeds`](crate::core::Speeds)).
    #[inline]
    pub(crate) fn access(
        &mut self,
        cpu: CpuId,
        address: Address,
        access: Access,
        at: Instant,
        within: Within,
    ) -> Duration {
        let Some(hierarchy) = &mut self.hierarchy else {
            return Duration::ZERO;
        };
        let outcome = hierarchy.access(cpu, address, access, at);
        self.counts[within as usize].count(outcome.served);
        match self.capacities.get(cpu.index()) {
            None => outcome.takes,
            Some(capacity) => Duration(outcome.takes.0 * capacity / FULL_CAPACITY),
        }
    }

    /// A device writes `bytes` at position `first` of `region`, wrapping around its end.
    pub(crate) fn dma_write(&mut self, region: Region, first: u64, bytes: u64, at: Instant) {
        let lines = first / self.line..(first + bytes).div_ceil(self.line);
        for line in lines {
            let address = self.address(region, line);
            if let Some(hierarchy) = &mut self.hierarchy {
                hierarchy.dma_write(address, at);
            }
        }
    }

    /// One of several independent accesses: their misses overlap, so that each costs its latency
    /// divided by the machine's overlap.
    #[inline]
    pub(crate) fn access_overlapped(
        &mut self,
        cpu: CpuId,
        address: Address,
        access: Access,
        at: Instant,
        within: Within,
    ) -> Duration {
        self.access(cpu, address, access, at, within) / self.overlap
    }

    /// Makes the accesses of `touch` until `enough` time has passed or all are made. Returns how
    /// long it took; `touch` is what is left then.
    ///
    /// Accesses of one touch do not depend on each other: see [`Memory::access_overlapped`].
    pub(crate) fn touch(
        &mut self,
        cpu: CpuId,
        touch: &mut Touch,
        work: Duration,
        from: Instant,
        enough: Duration,
    ) -> Duration {
        let mut took = Duration::ZERO;
        if self.hierarchy.is_none() && work == Duration::ZERO {
            touch.lines = 0;
        }
        while touch.lines > 0 && took < enough {
            let address = self.address(touch.region, touch.first);
            let (at, within) = (from + took, Within::Elsewhere);
            took += self.access_overlapped(cpu, address, touch.access, at, within) + work;
            touch.first = touch.first.wrapping_add(touch.stride);
            touch.lines -= 1;
        }
        took
    }
}

fn order(bytes: Bytes, page: Bytes) -> u32 {
    bytes
        .0
        .div_ceil(page.0)
        .max(1)
        .next_power_of_two()
        .trailing_zeros()
}
