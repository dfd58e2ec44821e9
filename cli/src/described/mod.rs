//! A machine described: for people with units and sources, for scripts as JSON.

mod json;

use warmq_experiment::{Engine, Part, Simulator};
use warmq_machine::{
    CacheDescription, Coherence, Inclusion, MachineDescription, MemoryDescription, NOT_GIVEN,
    Replacement,
};
use warmq_units::{Duration, Hertz};

use crate::listing;

pub use json::json;

/// Everything that is known of `machine`, with units and sources.
pub fn text(machine: &MachineDescription) -> String {
    let mut parts = vec![
        format!("{}: {}", machine.name, machine.title),
        format!("CPUs\n{}", cpus(machine)),
        format!("Caches\n{}", caches(machine)),
        format!("Coherence\n{}", coherence(machine)),
        format!("Memory\n{}", memory(machine)),
    ];
    if !machine.left_out.is_empty() {
        parts.push(format!("Not modelled\n{}", left_out(machine)));
    }
    if !machine.steals.is_empty() {
        parts.push(format!("Taken away from each CPU\n{}", steals(machine)));
    }
    for (kernel, costs) in &machine.costs {
        let rows = listing::rows(costs.iter().map(|(name, cost)| {
            let takes = format!("{} cycles", cost.cycles.0);
            let time = span(machine.clock.time_of(cost.cycles));
            [name.clone(), takes, time, cost.source.clone()]
        }));
        parts.push(format!("Costs of {kernel}\n{rows}"));
    }
    let settings =
        Engine::new(Some(machine.clone())).settings(Part::Machine, crate::machines::HOST);
    let settings = settings.unwrap_or_default();
    parts.push(format!("What can be set\n{}", listing::settings(&settings)));
    parts.join("\n\n")
}

fn cpus(machine: &MachineDescription) -> String {
    let places = places(machine);
    let overlap = format!("{} misses of a stream overlap", machine.miss_overlap);
    let mut rows = vec![("topology", places, source(machine, "topology"))];
    if !machine.node_distances.is_empty() {
        let distances = machine.node_distances.iter().map(|row| listed(row));
        let distances = itertools::join(distances, "; ");
        rows.push(("distances", distances, source(machine, "topology")));
    }
    for (name, numbers) in [
        ("priorities", &machine.priorities),
        ("capacities", &machine.capacities),
    ] {
        if !numbers.is_empty() {
            let source = source(machine, &format!("topology.{name}"));
            rows.push((name, listed(numbers), source));
        }
    }
    let frequency = clock(machine.clock);
    rows.push(("clock", frequency, source(machine, "cpu.clock")));
    rows.push(("overlap", overlap, source(machine, "cpu.miss_overlap")));
    if machine.cores() < machine.cpus.len() {
        let speed = machine.smt_speed;
        let smt = format!("{speed} thousandths of its speed beside a busy sibling");
        rows.push(("SMT", smt, source(machine, "cpu.smt_speed")));
    }
    sourced(rows)
}

fn listed(numbers: &[u16]) -> String {
    itertools::join(numbers, " ")
}

/// Properties with their values and sources. A source that is that of the line before is not said
/// again.
fn sourced(rows: Vec<(&str, String, &str)>) -> String {
    let mut before = None;
    listing::rows(rows.into_iter().map(|(name, value, source)| {
        let again = before.replace(source) == Some(source);
        let source = if again { "" } else { source };
        [name.to_owned(), value, source.to_owned()]
    }))
}

/// How many CPUs `machine` has, and under what: `2 CPUs: 1 socket, 1 last-level cache, 2 cores`.
pub fn places(machine: &MachineDescription) -> String {
    let parts = [
        several(machine.sockets(), "socket"),
        several(machine.llcs(), "last-level cache"),
        several(machine.cores(), "core"),
    ];
    let cpus = several(machine.cpus.len(), "CPU");
    format!("{cpus}: {}", parts.join(", "))
}

fn several(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A line for each kind of cache and source: equal caches of a level are listed once, with their
/// number.
fn caches(machine: &MachineDescription) -> String {
    let mut table = listing::table();
    for (cache, count) in kinds(machine) {
        let mut first = format!("{count} x L{}", cache.level);
        for (source, said) in by_source(machine, cache) {
            let name = std::mem::take(&mut first);
            table.add_row([&name, &said.join(", "), source]);
        }
    }
    table.trim_fmt()
}

/// The properties of `cache`, by who says so.
fn by_source<'m>(
    machine: &'m MachineDescription,
    cache: &CacheDescription,
) -> Vec<(&'m str, Vec<String>)> {
    let group = format!("cache.l{}", cache.level);
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    for (key, said) in properties(machine, cache) {
        let source = source(machine, &format!("{group}.{key}"));
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, all)) => all.push(said),
            None => sources.push((source, vec![said])),
        }
    }
    sources
}

fn kinds(machine: &MachineDescription) -> Vec<(&CacheDescription, usize)> {
    let mut kinds: Vec<(&CacheDescription, usize)> = Vec::new();
    for cache in &machine.caches {
        let alike = |other: &CacheDescription| {
            CacheDescription {
                cpus: cache.cpus.clone(),
                ..other.clone()
            } == *cache
                && other.cpus.len() == cache.cpus.len()
        };
        match kinds.iter_mut().find(|(other, _)| alike(other)) {
            Some((_, count)) => *count += 1,
            None => kinds.push((cache, 1)),
        }
    }
    kinds
}

fn properties(
    machine: &MachineDescription,
    cache: &CacheDescription,
) -> [(&'static str, String); 7] {
    let shared = match cache.cpus.len() {
        1 => "for one CPU".to_owned(),
        count => format!("shared by {count} CPUs"),
    };
    let inclusion = match cache.inclusion {
        Inclusion::NonInclusive => "not inclusive",
        Inclusion::Inclusive => "inclusive",
        Inclusion::Victim => "filled by evictions of the level before",
    };
    let time = span(machine.clock.time_of(cache.latency));
    [
        ("size", cache.size.to_string()),
        ("ways", format!("{} ways", cache.ways)),
        ("line", format!("lines of {}", cache.line)),
        ("sharing", shared),
        ("latency", format!("{} cycles ({time})", cache.latency.0)),
        ("replacement", replacement(cache.replacement).to_owned()),
        ("inclusion", inclusion.to_owned()),
    ]
}

fn replacement(replacement: Replacement) -> &'static str {
    match replacement {
        Replacement::Lru => "LRU",
        Replacement::TreePlru => "tree-PLRU",
        Replacement::QuadAge => "quad-age LRU",
    }
}

fn coherence(machine: &MachineDescription) -> String {
    let (kind, times) = match machine.coherence {
        Coherence::Bus {
            line_transfer,
            address_only,
            cache_to_cache,
            crossing,
        } => (
            match crossing {
                None => "MESI, snooping on one bus",
                Some(_) => "MESI, a snooped bus for each socket, filters between them",
            },
            [
                ("a line takes the bus for", line_transfer),
                ("an address takes it for", address_only),
                ("another cache answers in", cache_to_cache),
            ]
            .into_iter()
            .chain(crossing.map(|crossing| ("crossing to another bus adds", crossing)))
            .collect(),
        ),
        Coherence::Directory {
            same_domain,
            other_domain,
            other_socket,
            line_transfer,
        } => (
            "MESI, a directory at the shared level",
            vec![
                ("same last-level cache answers in", same_domain),
                ("another one of the socket in", other_domain),
                ("another socket in", other_socket),
                ("a line takes the memory channel for", line_transfer),
            ],
        ),
    };
    let kind = ["kind", kind, source(machine, "coherence")].map(str::to_owned);
    let times = times.into_iter();
    let times = times.map(|(what, time): (&str, _)| [what.to_owned(), span(time), String::new()]);
    listing::rows(std::iter::once(kind).chain(times))
}

fn steals(machine: &MachineDescription) -> String {
    listing::rows(machine.steals.iter().enumerate().map(|(index, steal)| {
        let takes = format!("{} every {} in the mean", steal.span, steal.every);
        let source = source(machine, &format!("steal.{index}"));
        [takes, source.to_owned()]
    }))
}

fn left_out(machine: &MachineDescription) -> String {
    listing::rows(machine.left_out.iter().map(|sentence| [sentence]))
}

fn memory(machine: &MachineDescription) -> String {
    let MemoryDescription {
        size,
        page,
        huge_page,
        latency,
        dma_into_llc,
    } = machine.memory;
    let pages = format!("{page}, huge {huge_page}");
    let latency = format!("{} from the outermost miss on", span(latency));
    let devices = match dma_into_llc {
        true => "write into the last-level cache of CPU 0",
        false => "write to memory",
    };
    let devices = devices.to_owned();
    sourced(vec![
        ("size", size.to_string(), source(machine, "memory.size")),
        ("pages", pages, source(machine, "memory.page")),
        ("latency", latency, source(machine, "memory.latency")),
        ("devices", devices, source(machine, "memory.dma_into_llc")),
    ])
}

/// Who says so: of the key if that has a source of its own, else of its group.
fn source<'m>(machine: &'m MachineDescription, key: &str) -> &'m str {
    let sources = &machine.sources;
    let of_group = || sources.get(key.rsplit_once('.')?.0);
    let found = sources.get(key).or_else(of_group);
    found.map_or(NOT_GIVEN, String::as_str)
}

/// `550 MHz`, `2.45 GHz`.
fn clock(clock: Hertz) -> String {
    let mhz = 1e-6 * json::hertz(clock);
    if mhz < 1000.0 {
        format!("{mhz} MHz")
    } else {
        format!("{} GHz", mhz / 1000.0)
    }
}

/// A time in nanoseconds, or in microseconds from there on.
fn span(time: Duration) -> String {
    let ns = time.0 as f64 / 1000.0;
    let trimmed = |number: f64| {
        let text = format!("{number:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if ns < 1000.0 {
        format!("{} ns", trimmed(ns))
    } else {
        format!("{} us", trimmed(ns / 1000.0))
    }
}
