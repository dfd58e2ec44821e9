//! A machine as an operating system reports it: structure without times. What is not reported is
//! assumed, and `sources` says so.

use std::collections::{BTreeMap, BTreeSet};

use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz};

use crate::check::{MOST_WAYS, NOT_SLOWED_DOWN, unsound_distance};
use crate::error::Flaw;
use crate::topology::FULL_CAPACITY;
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
/// The source of a line size that was not reported beside one that was.
const LIKE_OTHERS: &str = "assumed: as that of the machine's other caches";
const ASSUMED_L1: Bytes = Bytes::from_kb(32);
const ASSUMED_PAGE: Bytes = Bytes::from_kb(4);
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// How fast the CPUs work.
    pub speeds: ObservedSpeeds,
    /// The memory nodes.
    pub nodes: ObservedNodes,
    /// Physical memory, if it was reported.
    pub memory: Option<Bytes>,
    /// Page size, if it was reported.
    pub page: Option<Bytes>,
    /// Huge page size, if it was reported.
    pub huge_page: Option<Bytes>,
    /// What was seen and is not modelled, a sentence each.
    pub left_out: Vec<String>,
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

/// Memory nodes, by any numbering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedNodes {
    /// That of each CPU, in the order of their numbers; `None` where none is known.
    pub of_cpus: Vec<Option<u64>>,
    /// How far one is from another, as in ACPI's SLIT.
    pub distances: BTreeMap<(u64, u64), u16>,
}

/// Whether some CPUs are of several parts of a machine, and not all CPUs of each; `parts` has the
/// part of each CPU.
pub fn cuts_parts(cpus: &[CpuId], parts: &[u16]) -> bool {
    let within: BTreeSet<u16> = cpus.iter().map(|cpu| parts[cpu.index()]).collect();
    let whole = parts.iter().filter(|part| within.contains(part)).count();
    within.len() > 1 && whole > cpus.len()
}

impl ObservedNodes {
    /// Those of CPUs at `places`: that of each, unless they are the sockets, and how far they are
    /// from each other. What no model can have is as if it were not known: threads of a core in
    /// several nodes, parts of several nodes under one cache, and distances that are not those of a
    /// table of ACPI, as of some hypervisors.
    fn described(
        &self,
        places: &[CpuPlace],
        caches: &[CacheDescription],
    ) -> (Vec<u16>, Vec<Vec<u16>>) {
        let known: Option<Vec<u64>> = self.of_cpus.iter().copied().collect();
        let Some(known) = known.filter(|known| known.len() == places.len()) else {
            return (Vec::new(), Vec::new());
        };
        let nodes = renumbered(known.iter());
        let of_cores: BTreeSet<(u16, u16)> = places
            .iter()
            .map(|place| place.core)
            .zip(nodes.iter().copied())
            .collect();
        let cores: BTreeSet<u16> = places.iter().map(|place| place.core).collect();
        let cut = |cache: &CacheDescription| cuts_parts(&cache.cpus, &nodes);
        if of_cores.len() > cores.len() || caches.iter().any(cut) {
            return (Vec::new(), Vec::new());
        }
        let sockets = renumbered(places.iter().map(|place| place.socket));
        // In the order of their first CPUs.
        let mut ids = known.clone();
        let mut met = BTreeSet::new();
        ids.retain(|id| met.insert(*id));
        let row = |from: &u64| {
            let to = ids
                .iter()
                .map(|to| self.distances.get(&(*from, *to)).copied());
            to.collect::<Option<Vec<u16>>>()
        };
        let distances = ids.iter().map(row).collect::<Option<Vec<Vec<u16>>>>();
        let distances = distances.filter(|rows| unsound_distance(rows).is_none());
        let nodes = match nodes == sockets {
            true => Vec::new(),
            false => nodes,
        };
        (nodes, distances.unwrap_or_default())
    }
}

/// How fast each CPU works, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObservedSpeeds {
    /// All are alike, or nothing was reported.
    #[default]
    Alike,
    /// Capacities, as the kernel of the machine has them.
    Capacities(Vec<u64>),
    /// The highest frequencies, in MHz, of a machine whose kernel has no capacities: it prefers
    /// CPUs of high frequency (`sched_set_itmt_core_prio()`), and what cores of another kind do in
    /// a cycle is not known.
    Frequencies(Vec<u64>),
}

impl ObservedSpeeds {
    /// `capacities`, or else `frequencies`, whichever is known of each CPU and not the same of all.
    pub fn of(capacities: Vec<Option<u64>>, frequencies: Vec<Option<u64>>) -> ObservedSpeeds {
        let unlike = |numbers: Vec<Option<u64>>| {
            let numbers: Option<Vec<u64>> = numbers.into_iter().collect();
            numbers.filter(|all| all.iter().any(|number| *number != all[0]))
        };
        if let Some(capacities) = unlike(capacities) {
            return ObservedSpeeds::Capacities(capacities);
        }
        unlike(frequencies).map_or(ObservedSpeeds::Alike, ObservedSpeeds::Frequencies)
    }

    /// The place in the list of the fastest CPU, the first of several.
    pub fn fastest(&self) -> usize {
        let capacities = self.capacities().into_iter().enumerate();
        let most = capacities.max_by_key(|(at, capacity)| (*capacity, usize::MAX - at));
        most.map_or(0, |(at, _)| at)
    }

    /// In 1024ths of the fastest; none where all are alike.
    fn capacities(&self) -> Vec<u16> {
        let (ObservedSpeeds::Capacities(numbers) | ObservedSpeeds::Frequencies(numbers)) = self
        else {
            return Vec::new();
        };
        let most = numbers.iter().max().copied().unwrap_or(1).max(1);
        let share = |number: &u64| u128::from(*number) * u128::from(FULL_CAPACITY);
        let capacity = |number: &u64| (share(number) / u128::from(most)).max(1) as u16;
        numbers.iter().map(capacity).collect()
    }

    /// By which CPUs are preferred, where kernels know no capacities.
    fn priorities(&self) -> Vec<u16> {
        let most = u64::from(u16::MAX);
        match self {
            ObservedSpeeds::Frequencies(mhz) => {
                mhz.iter().map(|mhz| (*mhz).min(most) as u16).collect()
            }
            ObservedSpeeds::Alike | ObservedSpeeds::Capacities(_) => Vec::new(),
        }
    }

    /// Where they are from, of a machine that was seen by `seen_by`.
    fn source(&self, seen_by: &str) -> Option<String> {
        match self {
            ObservedSpeeds::Alike => None,
            ObservedSpeeds::Capacities(_) => Some(format!("{seen_by}: capacities")),
            ObservedSpeeds::Frequencies(_) => Some(format!(
                "{seen_by}: the highest frequencies, as if all cores did as much in a cycle"
            )),
        }
    }
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
    /// Whether it includes inner caches, if it was reported.
    pub inclusive: Option<bool>,
    /// The CPUs that share it, as indices into [`Observed::cpus`].
    pub cpus: Vec<CpuId>,
}

impl Observed {
    /// The machine, with assumptions for what was not reported.
    ///
    /// # Errors
    /// A machine that [`MachineDescription::check`] rejects.
    pub fn describe(mut self) -> Result<MachineDescription, Flaw> {
        if self.caches.is_empty() {
            let problem = format!("{} shows no cache of this machine", self.seen_by);
            return Err(Flaw::new(
                "cache",
                problem,
                "describe the machine in TOML instead",
            ));
        }
        let clock = self
            .clock
            .unwrap_or_else(|| Hertz::from_khz(ASSUMED_CLOCK_KHZ));
        let page = self.page.unwrap_or(ASSUMED_PAGE);
        let mut sources = self.sources();
        self.close_gaps();
        let caches = self.described_caches(&mut sources);
        let outermost = caches
            .iter()
            .map(|cache| cache.latency)
            .max()
            .unwrap_or(Cycles(1));
        let cpus = places(&self.cpus, &caches);
        let (nodes, node_distances) = self.nodes.described(&cpus, &caches);
        let machine = MachineDescription {
            name: name_from(&self.name),
            cpus,
            clock,
            caches,
            coherence: ASSUMED_COHERENCE,
            memory: MemoryDescription {
                size: self.memory.unwrap_or(ASSUMED_MEMORY),
                page,
                huge_page: self.huge_page.unwrap_or_else(|| huge_page_of(page)),
                latency: ASSUMED_MEMORY_LATENCY.max(clock.time_of(outermost) * 2),
                dma_into_llc: false,
            },
            miss_overlap: ASSUMED_OVERLAP,
            smt_speed: self.assumed_smt_speed(),
            priorities: self.speeds.priorities(),
            capacities: self.speeds.capacities(),
            nodes,
            node_distances,
            card: None,
            steals: Vec::new(),
            costs: BTreeMap::new(),
            title: self.title,
            sources,
            left_out: self.left_out,
        };
        machine.check().map(|()| machine)
    }

    /// The sources of all but caches.
    fn sources(&self) -> BTreeMap<String, String> {
        let keys = [
            ("cpu.clock", self.clock.is_some()),
            ("cpu.miss_overlap", false),
            ("cpu.smt_speed", false),
            ("topology", true),
            ("coherence", false),
            ("memory.size", self.memory.is_some()),
            ("memory.page", self.page.is_some()),
            ("memory.huge_page", self.huge_page.is_some()),
            ("memory.latency", false),
            ("memory.dma_into_llc", false),
        ];
        let source = |(key, seen): (&str, bool)| (key.to_owned(), self.source_of(seen));
        let speeds = self.speeds.source(&self.seen_by);
        let speeds = speeds.map(|source| ("topology.capacities".to_owned(), source));
        keys.into_iter().map(source).chain(speeds).collect()
    }

    fn source_of(&self, seen: bool) -> String {
        match seen {
            true => self.seen_by.clone(),
            false => ASSUMED.to_owned(),
        }
    }

    /// Numbers the levels without those that no CPU has: firmware of POWER8 reports levels 1 and 3.
    fn close_gaps(&mut self) {
        let levels: BTreeSet<u8> = self.caches.iter().map(|cache| cache.level).collect();
        // A missing level 1 is assumed: every CPU has one.
        let levels: BTreeSet<u8> = levels.into_iter().chain([1]).collect();
        let modelled: BTreeMap<u8, u8> = levels.into_iter().zip(1..).collect();
        for (level, number) in modelled.iter().filter(|(level, number)| level != number) {
            self.left_out.push(format!(
                "{} shows no cache of level {number}: level {level} is modelled as level {number}.",
                self.seen_by
            ));
        }
        for cache in &mut self.caches {
            cache.level = modelled[&cache.level];
        }
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
        let seen = self.caches.iter().map(|cache| (cache.clone(), true));
        let mut all: Vec<(ObservedCache, bool)> = seen.collect();
        if self.caches.iter().all(|cache| cache.level > 1) {
            all.extend(self.assumed_l1().into_iter().map(|cache| (cache, false)));
        }
        all.sort_by_key(|(cache, _)| (cache.level, cache.cpus.first().copied()));
        let known_line = self.caches.iter().find_map(|cache| cache.line);
        let mut said = BTreeMap::new();
        let describe = |(cache, seen): &(ObservedCache, bool)| {
            let described = described(cache, known_line.unwrap_or(ASSUMED_LINE));
            self.note(cache, &described, *seen, known_line, &mut said);
            described
        };
        let caches = all.iter().map(describe).collect();
        let joined = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join("; ");
        sources.extend(said.into_iter().map(|(key, all)| (key, joined(all))));
        caches
    }

    /// One level-1 cache per core, for reports that leave them out.
    fn assumed_l1(&self) -> Vec<ObservedCache> {
        let mut cores: BTreeMap<ObservedCpu, Vec<CpuId>> = BTreeMap::new();
        for (cpu, core) in self.cpus.iter().enumerate() {
            cores.entry(*core).or_default().push(CpuId(cpu as u16));
        }
        let l1 = |cpus| ObservedCache {
            level: 1,
            size: ASSUMED_L1,
            ways: ObservedWays::Unknown,
            line: None,
            inclusive: None,
            cpus,
        };
        cores.into_values().map(l1).collect()
    }

    /// Who says so, for each key of a cache. Caches of one level may differ in what was reported of
    /// them: then the level has several sources.
    fn note(
        &self,
        cache: &ObservedCache,
        described: &CacheDescription,
        seen: bool,
        known_line: Option<Bytes>,
        said: &mut BTreeMap<String, BTreeSet<String>>,
    ) {
        let line = match (cache.line, known_line) {
            (None, Some(_)) => LIKE_OTHERS.to_owned(),
            (line, _) => self.source_of(line.is_some()),
        };
        let ways = match cache.ways {
            ObservedWays::Ways(ways) if ways != described.ways => {
                format!(
                    "{ASSUMED} ({ways} ways by {} do not divide it)",
                    self.seen_by
                )
            }
            ObservedWays::Full if !is_full(described) => {
                format!("{ASSUMED} (fully associative by {})", self.seen_by)
            }
            ObservedWays::Unknown => format!("{ASSUMED} (not reported by {})", self.seen_by),
            _ => self.source_of(true),
        };
        for (key, source) in [
            ("", self.source_of(seen)),
            (".line", line),
            (".ways", ways),
            (".inclusion", self.source_of(cache.inclusive.is_some())),
            (".latency", self.source_of(false)),
            (".replacement", self.source_of(false)),
        ] {
            let key = format!("cache.l{}{key}", cache.level);
            said.entry(key).or_default().insert(source);
        }
    }
}

/// `cache` with assumptions for what was not reported; its lines are of `line` then.
fn described(cache: &ObservedCache, line: Bytes) -> CacheDescription {
    let line = cache.line.unwrap_or(line);
    CacheDescription {
        level: cache.level,
        size: cache.size,
        ways: ways_of(cache, cache.size.0 / line.0.max(1)),
        line,
        latency: by_level(&ASSUMED_LATENCY, cache.level),
        replacement: Replacement::Lru,
        inclusion: match cache.inclusive {
            Some(true) => Inclusion::Inclusive,
            _ => Inclusion::NonInclusive,
        },
        cpus: cache.cpus.clone(),
    }
}

fn is_full(cache: &CacheDescription) -> bool {
    u64::from(cache.ways) * cache.line.0 == cache.size.0
}

/// What one page of page-table entries of 8 bytes maps.
fn huge_page_of(page: Bytes) -> Bytes {
    Bytes(page.0.saturating_mul(page.0 / 8))
}

fn by_level<T: Copy>(table: &[T], level: u8) -> T {
    table[usize::from(level).clamp(1, table.len()) - 1]
}

/// The ways as reported where they divide the lines, or else the largest number up to the usual one
/// (or the reported one) that does. AMD's L3 of 48 ways is one: a part of it is a probe filter.
fn ways_of(cache: &ObservedCache, lines: u64) -> u32 {
    let most = match cache.ways {
        ObservedWays::Ways(ways) => ways,
        ObservedWays::Full if (1..=FULLY_ASSOCIATIVE).contains(&lines) => lines as u32,
        _ => by_level(&ASSUMED_WAYS, cache.level),
    };
    (1..=most.min(MOST_WAYS))
        .rev()
        .find(|ways| lines.is_multiple_of(u64::from(*ways)))
        .unwrap_or(1)
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
