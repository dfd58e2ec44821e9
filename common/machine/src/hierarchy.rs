//! The caches of a machine: what an access costs, and what serves it.
//!
//! Set-associative, write-back, write-allocate, kept coherent by MESI with invalidation on a
//! write. Exactly one line at a time, in the order of the calls; equal calls give equal answers.
//!
//! # Rules
//!
//! - The caches form trees: the *path* of a CPU leads from its level 1 to its outermost cache (the
//!   *root*). An access asks its path level by level; a level that has the line counts it as a use,
//!   and every nearer level takes the line in, the outermost of them first.
//! - A line that falls out of a cache, if modified, goes to the next level, which takes it in if it
//!   must; that is no use of a line that is there already. If the cache is inclusive, all nearer
//!   caches give the line up too. Clean lines are dropped, unless the next level is a victim cache.
//! - A victim cache takes in only what the next nearer caches evict. On a hit it hands the line,
//!   and modified data with it, to the nearer levels; it keeps the line if it is read and caches of
//!   other CPUs under it have it. A line that it lacks, but that a cache under it has, is supplied
//!   by that cache, clean or not: the tags of the nearer caches are kept beside it.
//! - Reading a line that a cache off the path holds exclusively makes it shared in both. If it was
//!   modified there, that cache supplies it, and the new data goes to the cache that both share,
//!   or to memory if they share none (an implicit write-back).
//! - A device that writes a line ([`Hierarchy::dma_write`]) invalidates it in every cache.
//! - Writing invalidates the line in every cache off the path. The nearest cache of the path that
//!   holds it exclusively settles that; if there is none, a transaction does.
//!
//! Left out: buses between the levels, ports, banks, miss registers, memory that is nearer to one
//! socket than to another (a transfer occupies the channel of the socket of the CPU that asked).

mod build;
mod check;
mod contents;
mod dma;
mod others;
mod private;
mod private_alone;
mod private_shared;
mod requests;
mod tree_pairs;
mod writes;

use warmq_units::{Address, CpuId, Duration, Instant};

use crate::cache::{Caches, Extent, Line, LineState};
use crate::coherence::{Groups, Links, Presence};
use crate::counts::Counts;
use crate::shadow::Shadow;
use build::Shape;
use private::{Lane, Miss, Snoop};
use private_alone::Alone;
use tree_pairs::{PairPlace, TreeCode, TreePair};

/// What a CPU does with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load.
    Read = 0,
    /// A store, or an atomic operation.
    Write = 1,
}

/// What served an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Served {
    /// A cache of the CPU itself, level 1 being the nearest.
    Level(u8),
    /// Another CPU's cache supplied the line.
    Cache,
    /// Memory.
    Memory,
}

/// The cost of an access, and what served it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// From the access to the data (or, for a write, to the right to write), with all waiting.
    pub takes: Duration,
    /// What served it.
    pub served: Served,
}

/// What a hierarchy observes beyond plain counts. All of it costs time, none changes an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Classify misses by cause: cold, conflict, capacity, coherence.
    pub classify_misses: bool,
    /// Count transactions by page offset.
    pub histogram: bool,
}

/// All caches of a machine, with what keeps them coherent.
///
/// ```
/// use std::collections::BTreeMap;
/// use warmq_machine::description::*;
/// use warmq_machine::{Access, Hierarchy, Options, Served};
/// use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Hertz, Instant};
///
/// let cache = |cpu| CacheDescription {
///     level: 1,
///     size: Bytes::from_kb(8),
///     ways: 2,
///     line: Bytes(32),
///     latency: Cycles(3),
///     replacement: Replacement::Lru,
///     inclusion: Inclusion::NonInclusive,
///     cpus: vec![CpuId(cpu)],
/// };
/// let two_cpus = MachineDescription {
///     name: "tiny".into(),
///     title: "Two CPUs on a bus".into(),
///     clock: Hertz::from_khz(200_000),
///     cpus: (0..2).map(|cpu| CpuPlace { socket: cpu, llc: cpu, core: cpu }).collect(),
///     caches: vec![cache(0), cache(1)],
///     coherence: Coherence::Bus {
///         line_transfer: Duration::from_ns(60),
///         address_only: Duration::from_ns(15),
///         cache_to_cache: Duration::from_ns(120),
///         crossing: None,
///     },
///     memory: MemoryDescription {
///         size: Bytes::from_mb(64),
///         page: Bytes::from_kb(4),
///         huge_page: Bytes::from_mb(4),
///         latency: Duration::from_ns(180),
///         dma_into_llc: false,
///     },
///     miss_overlap: 1,
///     smt_speed: 1_000,
///     priorities: Vec::new(),
///     capacities: Vec::new(),
///     nodes: Vec::new(),
///     node_distances: Vec::new(),
///     card: None,
///     steals: Vec::new(),
///     costs: BTreeMap::new(),
///     sources: BTreeMap::new(),
///     left_out: Vec::new(),
/// };
///
/// let mut caches = Hierarchy::new(&two_cpus, Options::default());
/// let mut at = |cpu, access| caches.access(CpuId(cpu), Address(0x30), access, Instant(0));
/// assert_eq!(at(0, Access::Read).served, Served::Memory);
/// assert_eq!(at(0, Access::Write).takes, Duration::from_ns(15)); // three cycles: it was exclusive
/// assert_eq!(at(1, Access::Read).served, Served::Cache); // CPU 0 had modified it
/// assert_eq!(caches.counts().bus.supplied, 1);
/// assert_eq!(caches.check_coherence(), Ok(()));
/// ```
pub struct Hierarchy {
    // Set when it is built, and never after; but for `miss` on a machine of one CPU.
    shape: Shape,
    // For each CPU, its level 1: all that an access that hits there needs to know.
    nearest: Vec<Nearest>,
    first_level: FirstLevel,
    // What answers where level 1 does not, and what it wants to know of each CPU.
    miss: Miss,
    // What answers a write where level 1 has the line, but shared.
    claim: Miss,
    lanes: Vec<Lane>,
    // For each CPU its level 1 and 2, where these are of each group, and the code for their numbers
    // of ways, if there is any.
    pairs: Vec<TreePair>,
    pair_of_group: Vec<Option<PairPlace>>,
    trees: Option<TreeCode>,
    // Finds the groups that hold a line, where presence is not recorded.
    snoop: Option<Snoop>,
    line_shift: u32,
    line_limit: u64,
    dma_into_llc: bool,

    // Changed by accesses.
    caches: Caches,
    presence: Presence,
    links: Links,

    // What is observed.
    counts: Counts,
    shadows: Vec<Shadow>, // one a cache, or none at all

    // What the last search for the holders of a line found.
    holders: Groups,
    // On a machine of one CPU, what `miss` is chosen from.
    alone: Option<Alone>,
}

/// The level 1 of a CPU.
#[derive(Clone, Copy)]
struct Nearest {
    cache: u32,
    latency: Duration,
    extent: Extent, // unless `first_level` is `Any`
}

/// The code that asks level 1, by replacement and ways.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstLevel {
    Lru2,
    Lru4,
    Lru8,
    Plru8,
    /// Caches that are not alike, have other ways, or are observed.
    Any,
}

/// The code for a level 1 of `NEAR` ways and a level 2 of `FAR`.
struct Ways<const NEAR: usize, const FAR: usize>;

/// An access on its way through the levels.
#[derive(Clone, Copy)]
struct Request {
    cpu: usize,
    line: Line,
    address: Address,
    access: Access,
    now: Instant,
}

impl Hierarchy {
    /// One access by `cpu` to the line of `address` at `now`.
    ///
    /// Calls are taken in the order they come, whatever their times; only the bus looks at `now`,
    /// and takes calls that are out of order by some hundred microseconds as they were meant.
    ///
    /// # Panics
    /// When there is no such CPU, or the address lies so far beyond memory that tags of 30 bits
    /// cannot distinguish it from a lower one. Within memory,
    /// [`MachineDescription::check`](crate::MachineDescription::check) excludes that.
    #[inline]
    pub fn access(
        &mut self,
        cpu: CpuId,
        address: Address,
        access: Access,
        now: Instant,
    ) -> Outcome {
        let line = self.line_of(address);
        self.counts.note_access(cpu.index(), 0, access);
        let request = Request {
            cpu: cpu.index(),
            line,
            address,
            access,
            now,
        };
        match self.first_level {
            FirstLevel::Lru2 => self.access_lru::<2>(request),
            FirstLevel::Lru4 => self.access_lru::<4>(request),
            FirstLevel::Lru8 => self.access_lru::<8>(request),
            FirstLevel::Plru8 => self.access_plru::<8>(request),
            FirstLevel::Any => self.access_any(request),
        }
    }

    #[inline]
    fn line_of(&self, address: Address) -> Line {
        let line = Line(address.0 >> self.line_shift);
        assert!(
            line.0 < self.line_limit,
            "the caches cannot distinguish {address} from a lower address"
        );
        line
    }

    /// Where every level 1 has LRU and `WAYS` ways, and nothing is observed.
    #[inline(always)]
    fn access_lru<const WAYS: usize>(&mut self, request: Request) -> Outcome {
        let Nearest {
            extent, latency, ..
        } = self.nearest[request.cpu];
        let Some(word) = self.caches.lru::<WAYS>(extent).hit(request.line) else {
            return (self.miss)(self, request);
        };
        let write = request.access == Access::Write;
        if write & (word.state() == LineState::Shared) {
            return (self.claim)(self, request);
        }
        word.modify_if(write);
        Outcome {
            takes: latency,
            served: Served::Level(1),
        }
    }

    /// Where every level 1 has tree-PLRU and `WAYS` ways, and nothing is observed.
    #[inline(always)]
    fn access_plru<const WAYS: usize>(&mut self, request: Request) -> Outcome {
        let Nearest {
            extent, latency, ..
        } = self.nearest[request.cpu];
        let Some(slot) = self.caches.plru::<WAYS>(extent).hit(request.line) else {
            return (self.miss)(self, request);
        };
        let write = request.access == Access::Write;
        if write & (self.caches.state_at(slot) == LineState::Shared) {
            return self.write(request, 0);
        }
        self.caches.modify_if(slot, write);
        Outcome {
            takes: latency,
            served: Served::Level(1),
        }
    }

    /// On any machine, and with all that may be observed.
    fn access_any(&mut self, request: Request) -> Outcome {
        let Nearest { cache, latency, .. } = self.nearest[request.cpu];
        let cache = cache as usize;
        let Some(slot) = self.caches.hit(cache, request.line) else {
            return (self.miss)(self, request);
        };
        if request.access == Access::Write {
            if self.caches.state_at(slot) == LineState::Shared {
                return self.write(request, 0);
            }
            self.caches.set_state_at(slot, LineState::Modified);
        }
        if !self.shadows.is_empty() {
            self.shadows[cache].use_line(request.line);
        }
        Outcome {
            takes: latency,
            served: Served::Level(1),
        }
    }

    /// What was counted since the start or the last [`Hierarchy::reset_counts`].
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Starts to count anew; the caches keep what they hold. To be called after warming up.
    pub fn reset_counts(&mut self) {
        self.counts.reset();
    }

    /// In which state the cache of `cpu` at `level` (1 is nearest) holds the line of `address`;
    /// nothing if it does not, or if there is no such cache.
    pub fn state(&self, cpu: CpuId, level: u8, address: Address) -> Option<LineState> {
        let index = usize::from(level).checked_sub(1)?;
        let cache = *self.shape.paths.get(cpu.index())?.get(index)?;
        self.caches.state(cache, Line(address.0 >> self.line_shift))
    }
}
