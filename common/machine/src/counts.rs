//! What a hierarchy counts: accesses and misses by CPU and level, transactions by kind and offset.

use std::ops::Range;

use warmq_units::{Address, Bytes, CpuId, Duration};

use crate::hierarchy::Access;

/// Everything counted since the hierarchy was made or its counts were reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    levels: Vec<Tally>,
    // Apart, as they are rarely asked for.
    kinds: Vec<MissKinds>,
    depth: usize,
    /// Transactions that left the outermost caches.
    pub bus: BusCounts,
    /// Lines that a cache supplied to another one under the same outermost cache.
    pub inner_supplies: u64,
    /// Writes to shared lines that a cache shared with the other holders could settle.
    pub inner_upgrades: u64,
    /// Lines that devices wrote into a last-level cache.
    pub dma_into_llc: u64,
    histogram: Option<Histogram>,
}

/// Accesses of one CPU at one level. A level counts an access only if all nearer ones missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Reads that reached this level.
    pub reads: u64,
    /// Writes that reached this level.
    pub writes: u64,
    /// Reads whose line was not here.
    pub read_misses: u64,
    /// Writes whose line was not here. A write to a shared line is a hit (and an upgrade).
    pub write_misses: u64,
    /// The misses by their cause; all zero unless classification was asked for.
    pub kinds: MissKinds,
}

/// The counts of [`LevelCounts`], indexed by [`Access`] so that counting needs no branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    accesses: [u64; 2],
    misses: [u64; 2],
}

/// Misses by cause. With classification on, the sum is the number of misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissKinds {
    /// The line was never in this cache.
    pub cold: u64,
    /// A fully associative LRU cache of the same capacity would have hit.
    pub conflict: u64,
    /// Any other miss: only a larger cache would have hit.
    pub capacity: u64,
    /// The line was here, and another CPU's or a device's write invalidated it.
    pub coherence: u64,
}

/// Why a line missed in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissKind {
    /// The line was never in this cache.
    Cold,
    /// A fully associative LRU cache of the same capacity would have hit.
    Conflict,
    /// Any other miss: only a larger cache would have hit.
    Capacity,
    /// The line was here, and another CPU's or a device's write invalidated it.
    Coherence,
}

/// What a transaction between outermost caches and memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// Fetch a line to read it.
    ReadLine,
    /// Fetch a line to write it, and invalidate it elsewhere.
    ReadForOwnership,
    /// Invalidate a line elsewhere that is already here (address only).
    Upgrade,
    /// Write a modified line that a cache evicted back to memory.
    WriteBack,
    /// Write a line from a device to memory.
    DmaWrite,
}

/// Transactions between outermost caches and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Lines fetched to be read.
    pub read_lines: u64,
    /// Lines fetched to be written.
    pub reads_for_ownership: u64,
    /// Invalidations of a line that the writer already had.
    pub upgrades: u64,
    /// Modified lines that were evicted.
    pub write_backs: u64,
    /// Lines that devices wrote to memory.
    pub dma_writes: u64,
    /// Of the lines fetched, those that another cache supplied; the others came from memory.
    pub supplied: u64,
    /// Of the lines supplied, those that were also written to memory because the reader made them
    /// clean. On a bus this is part of the same transfer.
    pub implicit_write_backs: u64,
    /// How long the bus, or all channels to memory together, were occupied.
    pub busy: Duration,
    /// How long accesses waited for it.
    pub waited: Duration,
}

/// Bytes in a bin of the [`Histogram`].
const BIN: u64 = 16;
/// The page that the histogram is over.
const PAGE: Bytes = Bytes(4096);
const BINS: usize = (PAGE.0 / BIN) as usize;

/// Transactions by page offset, as a hardware tracer on the bus (GATES) sees them: a page of 4096
/// bytes in 256 bins of 16.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bins: Vec<u64>,
}

impl BusCounts {
    /// All transactions.
    pub fn transactions(&self) -> u64 {
        self.read_lines
            + self.reads_for_ownership
            + self.upgrades
            + self.write_backs
            + self.dma_writes
    }

    fn note(&mut self, kind: Transaction) {
        match kind {
            Transaction::ReadLine => self.read_lines += 1,
            Transaction::ReadForOwnership => self.reads_for_ownership += 1,
            Transaction::Upgrade => self.upgrades += 1,
            Transaction::WriteBack => self.write_backs += 1,
            Transaction::DmaWrite => self.dma_writes += 1,
        }
    }
}

impl MissKinds {
    /// All misses that were classified.
    pub fn total(&self) -> u64 {
        self.cold + self.conflict + self.capacity + self.coherence
    }

    fn note(&mut self, kind: MissKind) {
        match kind {
            MissKind::Cold => self.cold += 1,
            MissKind::Conflict => self.conflict += 1,
            MissKind::Capacity => self.capacity += 1,
            MissKind::Coherence => self.coherence += 1,
        }
    }
}

impl LevelCounts {
    /// Accesses that reached this level.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    /// Accesses whose line was not here.
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }
}

impl Histogram {
    fn note(&mut self, address: Address, transactions: u64) {
        self.bins[(address.offset_in(PAGE) / BIN) as usize] += transactions;
    }

    /// The 256 bins; bin i counts page offsets from `16 * i` up to `16 * i + 15`.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }
}

impl Counts {
    pub(crate) fn new(cpus: usize, depth: usize, histogram: bool) -> Counts {
        Counts {
            levels: vec![Tally::default(); cpus * depth],
            kinds: vec![MissKinds::default(); cpus * depth],
            depth,
            histogram: histogram.then(|| Histogram {
                bins: vec![0; BINS],
            }),
            ..Counts::default()
        }
    }

    /// The counts of `cpu` at `level` (1 is the innermost); zeros for a level or CPU that does not
    /// exist.
    pub fn level(&self, cpu: CpuId, level: u8) -> LevelCounts {
        let within = (1..=self.depth).contains(&usize::from(level));
        let index = (cpu.index() * self.depth + usize::from(level)).wrapping_sub(1);
        match (self.levels.get(index), self.kinds.get(index)) {
            (
                Some(Tally {
                    accesses: [reads, writes],
                    misses: [read, write],
                }),
                Some(kinds),
            ) if within => LevelCounts {
                reads: *reads,
                writes: *writes,
                read_misses: *read,
                write_misses: *write,
                kinds: *kinds,
            },
            _ => LevelCounts::default(),
        }
    }

    /// How many levels there are.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The counts of all CPUs together at `level` (1 is the innermost).
    pub fn total(&self, level: u8) -> LevelCounts {
        let cpus = self.levels.len() / self.depth;
        let mut total = LevelCounts::default();
        for cpu in 0..cpus as u16 {
            let counts = self.level(CpuId(cpu), level);
            total.reads += counts.reads;
            total.writes += counts.writes;
            total.read_misses += counts.read_misses;
            total.write_misses += counts.write_misses;
            total.kinds.cold += counts.kinds.cold;
            total.kinds.conflict += counts.kinds.conflict;
            total.kinds.capacity += counts.kinds.capacity;
            total.kinds.coherence += counts.kinds.coherence;
        }
        total
    }

    /// Transactions by page offset, if [`Options::histogram`](crate::Options::histogram) is set.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_ref()
    }

    /// How many transactions fell on page offsets in `offsets` (within a page of 4096 bytes,
    /// counted in whole bins of 16 bytes); 0 without a histogram.
    pub fn transactions_at(&self, offsets: Range<u64>) -> u64 {
        let Some(histogram) = &self.histogram else {
            return 0;
        };
        let end = (offsets.end.div_ceil(BIN) as usize).min(BINS);
        let start = ((offsets.start / BIN) as usize).min(end);
        histogram.bins[start..end].iter().sum()
    }

    #[inline]
    pub(crate) fn note_access(&mut self, cpu: usize, level: usize, access: Access) {
        self.levels[cpu * self.depth + level].accesses[access as usize] += 1;
    }

    #[inline]
    pub(crate) fn note_miss(&mut self, cpu: usize, level: usize, access: Access) {
        self.levels[cpu * self.depth + level].misses[access as usize] += 1;
    }

    /// Misses of one kind of the only CPU in level 2.
    #[inline]
    pub(crate) fn far_misses(&self, access: Access) -> u64 {
        self.levels[1].misses[access as usize]
    }

    /// Counts, on a machine of one CPU, an access that missed level 1, and level 2 too if `missed`
    /// is all ones, and not if it is 0, without a branch on that. Returns how many of its kind
    /// level 2 has counted.
    #[inline(always)]
    pub(crate) fn note_miss_alone(&mut self, missed: u64, access: Access, address: Address) -> u64 {
        let (one, access) = (missed & 1, access as usize);
        let [near, far, ..] = &mut self.levels[..] else {
            return 0;
        };
        near.misses[access] += 1;
        far.accesses[access] += 1;
        far.misses[access] += one;
        let counted = far.accesses[access];
        let written = one & access as u64;
        self.bus.reads_for_ownership += written;
        self.bus.read_lines += one - written;
        if let Some(histogram) = &mut self.histogram {
            histogram.note(address, one);
        }
        counted
    }

    /// Counts a miss of `cpu` in each of its `depth` levels except the innermost.
    #[inline]
    pub(crate) fn note_misses_behind(&mut self, cpu: usize, depth: usize, access: Access) {
        let levels = &mut self.levels[cpu * self.depth..][..depth];
        for level in &mut levels[1..] {
            level.accesses[access as usize] += 1;
            level.misses[access as usize] += 1;
        }
    }

    pub(crate) fn note_miss_kind(&mut self, cpu: usize, level: usize, kind: MissKind) {
        self.kinds[cpu * self.depth + level].note(kind);
    }

    #[inline]
    pub(crate) fn note(&mut self, kind: Transaction, address: Address) {
        self.bus.note(kind);
        if let Some(histogram) = &mut self.histogram {
            histogram.note(address, 1);
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Counts::new(
            self.levels.len() / self.depth,
            self.depth,
            self.histogram.is_some(),
        );
    }
}
