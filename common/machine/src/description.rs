//! A machine as plain, checked data. Readers (TOML, hwloc, /sys) make one; the models take one.

use std::collections::BTreeMap;

use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz};

use crate::card::CardModel;

/// Everything that the models need to know about a machine.
///
/// Invariant, established by [`MachineDescription::check`]: at least one CPU; every CPU has a
/// level-1 cache; levels of a CPU are 1..=n without a gap and their sharing nests; one line size
/// in the whole machine; each cache's sets are a whole number; sockets, last levels and cores are
/// numbered from 0 without a gap, and the CPUs of a last level are those of an outermost cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineDescription {
    /// The name that users give: `p3xeon-8way`.
    pub name: String,
    /// The title in reports: `8 x Pentium III Xeon 550 MHz`.
    pub title: String,
    /// The clock of every CPU; where capacities differ, of the fastest.
    pub clock: Hertz,
    /// Where each CPU sits; entry i is CPU i.
    pub cpus: Vec<CpuPlace>,
    /// Every single cache of the machine, by level (innermost first) and then by first CPU.
    pub caches: Vec<CacheDescription>,
    /// How caches that do not share are kept coherent.
    pub coherence: Coherence,
    /// Memory behind the caches.
    pub memory: MemoryDescription,
    /// How many independent misses of a stream of accesses overlap (1: none). The misses of a
    /// pointer chase never overlap.
    pub miss_overlap: u64,
    /// The speed of a CPU while a sibling on its core is busy, in thousandths of its speed while
    /// its siblings idle: 1000 if siblings do not slow each other down, or without SMT. This covers
    /// the shared pipeline only; contention in shared caches is simulated.
    pub smt_speed: u64,
    /// The priority of each CPU: how high it boosts as its firmware says, by any scale, the higher
    /// the better (Intel's ITMT, AMD's preferred cores). Empty where all are alike.
    pub priorities: Vec<u16>,
    /// How fast each CPU works, in 1024ths of the fastest (`cpu_capacity`). Empty where all are
    /// alike. [`MachineDescription::knows_capacities`] says whether kernels learn of it.
    pub capacities: Vec<u16>,
    /// The memory node of each CPU, counted from 0 in the order of their first CPUs. Empty: each
    /// socket is a node.
    pub nodes: Vec<u16>,
    /// How far memory nodes are from each other, as in ACPI's SLIT: 10 is the node itself. Empty:
    /// 20 between all.
    pub node_distances: Vec<Vec<u16>>,
    /// Its network card; `None`: one of no known model.
    pub card: Option<CardModel>,
    /// What takes its CPUs away for a while; empty for a machine that has them to itself.
    pub steals: Vec<Steal>,
    /// Costs of kernels on this machine, by kernel (`linux-2.4`) and cost (`context_switch`). The
    /// machine only stores them; the simulated kernel interprets them.
    pub costs: BTreeMap<String, BTreeMap<String, Cost>>,
    /// Where the numbers come from: group (`cpu`, `topology`, `cache.l2`, `coherence`, `memory`,
    /// `network`, `steal.0`) or single key (`cache.l2.latency`) to source.
    pub sources: BTreeMap<String, String>,
    /// What the machine has and the models lack, a sentence each.
    pub left_out: Vec<String>,
}

/// The place of a CPU in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Socket (package), counted from 0 in the machine.
    pub socket: u16,
    /// Last-level cache domain, counted from 0 in the machine.
    pub llc: u16,
    /// Core, counted from 0 in the machine; CPUs of one core are its SMT siblings.
    pub core: u16,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDescription {
    /// 1 is the innermost.
    pub level: u8,
    /// Capacity. Divided by `ways * line`, it gives the number of sets, a whole number that need
    /// not be a power of two (a sliced last level often is not).
    pub size: Bytes,
    /// Associativity, at least 1.
    pub ways: u32,
    /// Line size, a power of two, the same for all caches of the machine.
    pub line: Bytes,
    /// Load-to-use latency of a hit.
    pub latency: Cycles,
    /// Which line is evicted when a set is full.
    pub replacement: Replacement,
    /// Which lines it allocates, and which it must keep.
    pub inclusion: Inclusion,
    /// The CPUs that share it, ascending.
    pub cpus: Vec<CpuId>,
}

warmq_units::named! {
    /// Which lines a cache allocates, and which it must keep while inner caches have them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Inclusion {
        /// Allocates every line that missed. When it evicts a line, inner caches may keep theirs.
        #[default]
        NonInclusive = "non-inclusive",
        /// Allocates the same lines, and holds every line that an inner cache of its CPUs holds:
        /// when it evicts a line, the inner caches invalidate theirs.
        Inclusive = "inclusive",
        /// Allocates the lines that the next inner caches evict, clean ones too. A hit moves the
        /// line back to the inner caches; it stays here as well only if it was a read and inner
        /// caches of another CPU hold the line.
        ///
        /// Level 3 of AMD's Zen, which holds what level 2 evicted (Software Optimization Guide for
        /// AMD Zen 4, 57647, "L3 cache"), and of Intel's server cores since Skylake (Intel 64 and
        /// IA-32 Architectures Optimization Reference Manual, 248966, "Skylake Server
        /// Microarchitecture"). Both keep lines that they predict to be shared. The predictor is
        /// not published; the model uses the actual sharing instead.
        Victim = "victim",
    }
}

warmq_units::named! {
    /// Which line is evicted when a set is full.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Replacement {
        /// The least recently used line.
        #[default]
        Lru = "lru",
        /// A binary tree of bits that point away from recent use; ways must be a power of two.
        TreePlru = "tree-plru",
        /// Two bits of age per way. A new line has age 1, a line used again age 0; the first way of
        /// age 3 is evicted. When no way has age 3, all but the one just used grow older until one
        /// has.
        ///
        /// `QLRU_H00_M1_R0_U1` in the terms of Abel and Reineke, "nanoBench: A Low-Overhead Tool
        /// for Running Microbenchmarks on x86 Systems", ISPASS 2020, and
        /// <https://uops.info/cache.html>; they found it in level 2 of Intel's Cannon Lake and Ice
        /// Lake (Coffee Lake takes the last way of age 3). That later cores use it too is inferred
        /// from walks measured on one of them (live/walk). Cycling through slightly more lines than
        /// there are ways does not miss every time, as it does under LRU.
        QuadAge = "quad-age",
    }
}

/// How caches that do not share are kept coherent (MESI, write-invalidate, in both cases).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// All outermost caches snoop one bus, which serves requests in turn; or the caches of each
    /// socket snoop a bus of their own, and a filter between the buses forwards what the other side
    /// must see.
    Bus {
        /// How long a transaction that carries a line occupies the bus.
        line_transfer: Duration,
        /// How long an address-only transaction (upgrade, invalidate) occupies it.
        address_only: Duration,
        /// Latency of a line that another cache supplies.
        cache_to_cache: Duration,
        /// The additional time of a transaction that must cross to another socket's bus, which it
        /// then occupies too; `None` if all CPUs are on one bus.
        crossing: Option<Duration>,
    },
    /// A directory at the shared level knows which caches hold a line.
    Directory {
        /// Latency of a line that another cache under the same last level supplies.
        same_domain: Duration,
        /// Latency of a line that a cache under another last level of the socket supplies.
        other_domain: Duration,
        /// Latency of a line that another socket supplies.
        other_socket: Duration,
        /// How long a transfer of a line occupies the channel to memory of a socket.
        line_transfer: Duration,
    },
}

impl Coherence {
    /// Every time of it by name; `None` for what it does not have.
    pub fn times(&self) -> Vec<(&'static str, Option<Duration>)> {
        match *self {
            Coherence::Bus {
                line_transfer,
                address_only,
                cache_to_cache,
                crossing,
            } => vec![
                ("line_transfer", Some(line_transfer)),
                ("address_only", Some(address_only)),
                ("cache_to_cache", Some(cache_to_cache)),
                ("crossing", crossing),
            ],
            Coherence::Directory {
                same_domain,
                other_domain,
                other_socket,
                line_transfer,
            } => vec![
                ("same_domain", Some(same_domain)),
                ("other_domain", Some(other_domain)),
                ("other_socket", Some(other_socket)),
                ("line_transfer", Some(line_transfer)),
            ],
        }
    }
}

/// Memory behind the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDescription {
    /// Physical memory.
    pub size: Bytes,
    /// Page size.
    pub page: Bytes,
    /// Huge page size (that of a PMD entry).
    pub huge_page: Bytes,
    /// From a miss in the outermost cache to the data, on an idle bus.
    pub latency: Duration,
    /// Whether devices write into the last-level cache of CPU 0 rather than to memory. Devices are
    /// assumed to be attached near CPU 0.
    ///
    /// Intel's Data Direct I/O does this on server processors since the Xeon E5 (Intel Data Direct
    /// I/O Technology: A Primer, 2012). Its limit to some of the ways, two by default, is not
    /// modeled.
    pub dma_into_llc: bool,
}

/// What takes a CPU away without the kernel's doing: a hypervisor that runs something else on it,
/// or firmware. Each CPU is taken at times of its own: gaps and spans are exponential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steal {
    /// The mean time from one to the next.
    pub every: Duration,
    /// The mean time that one lasts.
    pub span: Duration,
}

/// A cost of a kernel on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The cost in CPU cycles.
    pub cycles: Cycles,
    /// Who measured it, or the published figure that it was calibrated on.
    pub source: String,
}
