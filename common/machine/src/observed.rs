//! A machine as an operating system reports it: structure without times. What is not reported is
//! assumed, and `sources` says so.

use std::collections::{BTreeMap, BTreeSet};

use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz};

use crate::check::NOT_SLOWED_DOWN;
use crate::error::Flaw;
use crate::{
    CacheDescription, Coherence, CpuPlace, Inclusion, MachineDescription, MemoryDescription,
    Replacement,
};

/// The source of numbers that were not observed.
pub const ASSUMED: &str = "assumed: typical of a present-day server";
/// Load-to-use cycles by level, the last one for all further levels.
const ASSUMED_LATENCY: [Cycles; 4] = [Cycles(5), Cycles(14), Cycles(50), Cycles(100)];
/// Ways by level, the last one for all further levels.
const ASSUMED_WAYS: [u32; 3] = [8, 8, 16];
const ASSUMED_LINE: Bytes = Bytes(64);
const ASSUMED_L1: Bytes = Bytes::from_kb(32);
const ASSUMED_CLOCK_KHZ: u64 = 2_500_000;
const ASSUMED_MEMORY: Bytes = Bytes(16 << 30);
const ASSUMED_MEMORY_LATENCY: Duration = Duration::from_ns(100);
const ASSUMED_OVERLAP: u64 = 10;
/// In thousandths: two busy siblings do 1.22 times the work of one, see machines/epyc-12llc.toml.
const ASSUMED_SMT_SPEED: u64 = 610;
const ASSUMED_COHERENCE: Coherence = Coherence::Directory {
    same_domain: Duration::from_ns(30),
    other_domain: Duration::from_ns(100),
    other_socket: Duration::from_ns(200),
    line_transfer: Duration(500),
};
/// Above so many ways, a fully associative cache is taken as set-associative.
const FULLY_ASSOCIATIVE: u64 = 1024;

/// The properties of a machine that were observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The name of the machine; characters that a name may not contain become `-`.
    pub name: String,
    /// The title in reports.
    pub title: String,
    /// Where it was observed: `hwloc XML`, `/sys`.
    pub seen_by: String,
    /// The clock, if it was reported.
    pub clock: Option<Hertz>,
    /// The CPUs in the order of their numbers.
    pub cpus: Vec<ObservedCpu>,
    /// The data and unified caches, in any order.
    pub caches: Vec<ObservedCache>,
    /// Physical memory, if it was reported.
    pub memory: Option<Bytes>,
    /// Page size.
    pub page: Bytes,
    /// Huge page size.
    pub huge_page: Bytes,
}

/// A CPU: numbers that are equal exactly for CPUs of the same socket, and of the same core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObservedCpu {
    /// The socket, by any numbering.
    pub socket: u64,
    /// The core, by any numbering that is unique in the socket.
    pub core: u64,
}

/// Associativity as reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedWays {
    /// Not reported.
    Unknown,
    /// A line may go anywhere.
    Full,
    /// So many ways.
    Ways(u32),
}

/// A data or unified cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCache {
    /// 1 is the innermost.
    pub level: u8,
    /// Capacity.
    pub size: Bytes,
    /// Associativity.
    pub ways: ObservedWays,
    /// Line size, if it was reported.
    pub line: Option<Bytes>,
    /// Whether it includes inner caches.
    pub inclusive: bool,
    /// The CPUs that share it, as indices into [`Observed::cpus`].
    pub cpus: Vec<CpuId>,
}

impl Observed {
    /// The machine, with assumptions for what was not reported.
    ///
    /// # Errors
    /// A machine that [`MachineDescription::check`] rejects.
    pub fn describe(self) -> Result<MachineDescription, Flaw> {
        if self.caches.is_empty() {
            let problem = format!("{} shows no cache of this machine", self.seen_by);
            return Err(Flaw::new(
                "cache",
                problem,
                "describe the machine in TOML instead",
            ));
        }
        let mut sources = BTreeMap::new();
        let clock = self
            .clock
            .unwrap_or_else(|| Hertz::from_khz(ASSUMED_CLOCK_KHZ));
        let seen = |known| {
            if known {
                self.seen_by.clone()
            } else {
                ASSUMED.to_owned()
            }
        };
        sources.insert("cpu".to_owned(), seen(self.clock.is_some()));
        sources.insert("cpu.miss_overlap".to_owned(), ASSUMED.to_owned());
        sources.insert("cpu.smt_speed".to_owned(), ASSUMED.to_owned());
        sources.insert("topology".to_owned(), self.seen_by.clone());
        sources.insert("coherence".to_owned(), ASSUMED.to_owned());
        sources.insert("memory".to_owned(), seen(self.memory.is_some()));
        sources.insert("memory.latency".to_owned(), ASSUMED.to_owned());

        let caches = self.described_caches(&mut sources);
        let outermost = caches
            .iter()
            .map(|cache| cache.latency)
            .max()
            .unwrap_or(Cycles(1));
        let machine = MachineDescription {
            name: name_from(&self.name),
            cpus: places(&self.cpus, &caches),
            clock,
            caches,
            coherence: ASSUMED_COHERENCE,
            memory: MemoryDescription {
                size: self.memory.unwrap_or(ASSUMED_MEMORY),
                page: self.page,
                huge_page: self.huge_page,
                latency: ASSUMED_MEMORY_LATENCY.max(clock.time_of(outermost) * 2),
                dma_into_llc: false,
            },
            miss_overlap: ASSUMED_OVERLAP,
            smt_speed: self.assumed_smt_speed(),
            card: None,
            steals: Vec::new(),
            costs: BTreeMap::new(),
            title: self.title,
            sources,
        };
        machine.check().map(|()| machine)
    }

    fn assumed_smt_speed(&self) -> u64 {
        let cores: BTreeSet<&ObservedCpu> = self.cpus.iter().collect();
        if cores.len() < self.cpus.len() {
            ASSUMED_SMT_SPEED
        } else {
            NOT_SLOWED_DOWN
        }
    }

    fn described_caches(&self, sources: &mut BTreeMap<String, String>) -> Vec<CacheDescription> {
        let mut caches = Vec::new();
        if self.caches.iter().all(|cache| cache.level > 1) {
            for cache in self.assumed_l1() {
                caches.push(self.describe_cache(&cache, sources));
            }
            sources.insert("cache.l1".to_owned(), ASSUMED.to_owned());
        }
        caches.extend(
            self.caches
                .iter()
                .map(|cache| self.describe_cache(cache, sources)),
        );
        caches.sort_by_key(|cache| (cache.level, cache.cpus.first().copied()));
        caches
    }

    /// One level-1 cache per core, for reports that leave them out.
    fn assumed_l1(&self) -> Vec<ObservedCache> {
        let mut cores: BTreeMap<ObservedCpu, Vec<CpuId>> = BTreeMap::new();
        for (cpu, core) in self.cpus.iter().enumerate() {
            cores.entry(*core).or_default().push(CpuId(cpu as u16));
        }
        let (level, size, line) = (1, ASSUMED_L1, self.caches[0].line);
        let l1 = |cpus| ObservedCache {
            level,
            size,
            ways: ObservedWays::Unknown,
            line,
            inclusive: false,
            cpus,
        };
        cores.into_values().map(l1).collect()
    }

    fn describe_cache(
        &self,
        cache: &ObservedCache,
        sources: &mut BTreeMap<String, String>,
    ) -> CacheDescription {
        let mut note = |field: &str, source: &str| {
            sources.insert(format!("cache.l{}{field}", cache.level), source.to_owned());
        };
        note("", &self.seen_by);
        note(".latency", ASSUMED);
        note(".replacement", ASSUMED);
        let line = cache.line.unwrap_or_else(|| {
            note(".line", ASSUMED);
            ASSUMED_LINE
        });
        let lines = cache.size.0 / line.0.max(1);
        let ways = ways_of(cache, lines);
        if cache.ways != ObservedWays::Ways(ways) {
            note(
                ".ways",
                &format!("{ASSUMED} (not reported by {})", self.seen_by),
            );
        }
        CacheDescription {
            level: cache.level,
            size: cache.size,
            ways,
            line,
            latency: by_level(&ASSUMED_LATENCY, cache.level),
            replacement: Replacement::Lru,
            inclusion: match cache.inclusive {
                true => Inclusion::Inclusive,
                false => Inclusion::NonInclusive,
            },
            cpus: cache.cpus.clone(),
        }
    }
}

fn by_level<T: Copy>(table: &[T], level: u8) -> T {
    table[usize::from(level).clamp(1, table.len()) - 1]
}

/// The ways as reported, or else the most usual number that divides the lines.
fn ways_of(cache: &ObservedCache, lines: u64) -> u32 {
    let usual = by_level(&ASSUMED_WAYS, cache.level);
    match cache.ways {
        ObservedWays::Ways(ways) => ways,
        ObservedWays::Full if (1..=FULLY_ASSOCIATIVE).contains(&lines) => lines as u32,
        _ => (1..=usual)
            .rev()
            .find(|ways| lines.is_multiple_of(u64::from(*ways)))
            .unwrap_or(1),
    }
}

/// `text` with only the characters that a name may contain.
fn name_from(text: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = text
        .chars()
        .take(64)
        .map(|letter| if allowed(letter) { letter } else { '-' })
        .collect();
    if name.is_empty() {
        "machine".to_owned()
    } else {
        name
    }
}

/// The places of CPUs, numbered from 0 in the order of the CPUs.
fn places(cpus: &[ObservedCpu], caches: &[CacheDescription]) -> Vec<CpuPlace> {
    let mut outermost = vec![usize::MAX; cpus.len()];
    for (index, cache) in caches.iter().enumerate() {
        for cpu in cache.cpus.iter().filter(|cpu| cpu.index() < cpus.len()) {
            outermost[cpu.index()] = index;
        }
    }
    let sockets = renumbered(cpus.iter().map(|cpu| cpu.socket));
    let cores = renumbered(cpus.iter().copied());
    let llcs = renumbered(outermost.into_iter());
    let parts = sockets.into_iter().zip(llcs).zip(cores);
    parts
        .map(|((socket, llc), core)| CpuPlace { socket, llc, core })
        .collect()
}

/// Equal keys become equal numbers, counted from 0 in the order of first appearance.
pub fn renumbered<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<u16> {
    let mut numbers = BTreeMap::new();
    keys.map(|key| {
        let next = numbers.len() as u16;
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}
