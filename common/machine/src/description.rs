//! A machine as plain, checked data. Readers (TOML, hwloc, /sys) make one; the models take one.

use std::collections::BTreeMap;

use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz};

/// Everything the models need to know of a machine.
///
/// Invariant, established by [`MachineDescription::check`]: at least one CPU; every CPU has a
/// level-1 cache; levels of a CPU are 1..=n without a gap and their sharing nests; one line size
/// in the whole machine; each cache's sets are a whole number; sockets, last levels and cores are
/// numbered from 0 without a gap, and the CPUs of a last level are those of an outermost cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineDescription {
    /// The name by which a user asks for it: `p3xeon-8way`.
    pub name: String,
    /// What a person would call it: `8 x Pentium III Xeon 550 MHz`.
    pub title: String,
    /// The clock of every CPU.
    pub clock: Hertz,
    /// Where each CPU sits; entry i is CPU i.
    pub cpus: Vec<CpuPlace>,
    /// Every single cache of the machine, by level (innermost first) and then by first CPU.
    pub caches: Vec<CacheDescription>,
    /// How caches that do not share are kept coherent.
    pub coherence: Coherence,
    /// Memory behind the caches.
    pub memory: MemoryDescription,
    /// How many independent misses of a stream of accesses overlap (1 = none). A chain of
    /// pointers never overlaps.
    pub miss_overlap: u64,
    /// How fast a CPU runs while a sibling on its core is busy too, in thousandths of how fast it
    /// runs while its siblings idle: 1000 where nobody is slowed down, as without SMT. Covers the
    /// shared pipeline; what siblings cost each other in shared caches is simulated.
    pub smt_speed: u64,
    /// Costs of kernels on this machine, by kernel (`linux-2.4`) and cost (`context_switch`).
    /// The machine only carries them; the simulated kernel knows what they mean.
    pub costs: BTreeMap<String, BTreeMap<String, Cost>>,
    /// Where the numbers come from: group (`cpu`, `topology`, `cache.l2`, `coherence`, `memory`)
    /// or single key (`cache.l2.latency`) to source.
    pub sources: BTreeMap<String, String>,
}

/// Where a CPU sits.
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
    /// 1 is nearest to the CPU.
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
    /// Who leaves when a set is full.
    pub replacement: Replacement,
    /// Which lines it takes in, and which it must keep.
    pub inclusion: Inclusion,
    /// The CPUs that share it, ascending.
    pub cpus: Vec<CpuId>,
}

/// Which lines a cache takes in, and which it must keep while nearer caches have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Inclusion {
    /// Takes in every line that it was asked for and did not have. What nearer caches do when such a
    /// line leaves is up to them.
    #[default]
    NonInclusive,
    /// Takes in the same lines, and every line in a nearer cache of its CPUs is here too: when a line
    /// leaves, the nearer caches give it up.
    Inclusive,
    /// Takes in the lines that the next nearer caches evict, clean ones too. A hit moves the line
    /// back to the nearer caches; it stays here as well only if a read finds that another CPU's
    /// nearer caches have it.
    ///
    /// Level 3 of AMD's Zen, which holds what level 2 evicted (Software Optimization Guide for AMD
    /// Zen 4, 57647, "L3 cache"), and of Intel's server cores since Skylake (Intel 64 and IA-32
    /// Architectures Optimization Reference Manual, 248966, "Skylake Server Microarchitecture").
    /// Both keep lines that they take to be shared; the hardware's prediction of that is not
    /// published, so that the model looks at who has the line.
    Victim,
}

/// Who leaves when a set is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Replacement {
    /// The line that was used longest ago.
    #[default]
    Lru,
    /// A binary tree of bits that point away from recent use; ways must be a power of two.
    TreePlru,
    /// Two bits of age a way. A line taken in is of age 1, a line used again of age 0; the first way
    /// of age 3 leaves. When no way is of age 3, all but the one just used grow older until one is.
    ///
    /// `QLRU_H00_M1_R0_U1` in the terms of Abel and Reineke, "nanoBench: A Low-Overhead Tool for
    /// Running Microbenchmarks on x86 Systems", ISPASS 2020, and <https://uops.info/cache.html>, who
    /// found it in level 2 of Intel's Cannon Lake and Ice Lake (Coffee Lake takes the last way of
    /// age 3). That later cores have it too is inferred, from walks measured on one of them
    /// (live/bench). A list a little longer than the ways is not lost as a whole, as under LRU.
    QuadAge,
}

/// How caches that do not share are kept coherent (MESI, write-invalidate, in both cases).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherence {
    /// All outermost caches snoop one bus, which is a queue.
    Bus {
        /// How long a transaction that carries a line occupies the bus.
        line_transfer: Duration,
        /// How long an address-only transaction (upgrade, invalidate) occupies it.
        address_only: Duration,
        /// Latency of a line that another cache supplies.
        cache_to_cache: Duration,
    },
    /// A directory at the shared level knows who holds a line.
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

/// Memory behind the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryDescription {
    /// Physical memory.
    pub size: Bytes,
    /// Page size.
    pub page: Bytes,
    /// Huge page size (a PMD's worth).
    pub huge_page: Bytes,
    /// From the outermost cache's miss to the data, on a quiet bus.
    pub latency: Duration,
    /// Whether what devices write goes into the last-level cache of CPU 0, the one that is taken to
    /// be near the devices, rather than to memory.
    ///
    /// Intel's Data Direct I/O does so on server processors since the Xeon E5 (Intel Data Direct I/O
    /// Technology: A Primer, 2012). The share of the ways that it may fill, two by default, is not
    /// modeled.
    pub dma_into_llc: bool,
}

/// A cost of a kernel on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The cost in CPU cycles.
    pub cycles: Cycles,
    /// Who measured it, or on which published figure it was calibrated.
    pub source: String,
}
