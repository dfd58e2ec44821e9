//! A machine as TOML, which [`read_toml`](crate::read_toml) reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use warmq_config::quoted;
use warmq_units::{Bytes, CpuId, Duration};

use crate::description::{CacheDescription, Coherence, Cost, CpuPlace, MachineDescription};
use crate::toml_caches::{Per, sharers as sharers_of};
use crate::topology::{Layout, number_without_gaps};

impl MachineDescription {
    /// The machine as TOML. Where single numbers of a group have sources of their own, the group
    /// gets them all.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let out = &mut text;
        line(out, "name", &quoted(&self.name));
        line(out, "title", &quoted(&self.title));
        self.write_cpu(out);
        self.write_topology(out);
        self.write_caches(out);
        self.write_coherence(out);
        self.write_memory(out);
        self.write_card(out);
        self.write_steals(out);
        for (kernel, costs) in &self.costs {
            write_costs(out, kernel, costs);
        }
        text
    }

    fn write_cpu(&self, out: &mut String) {
        table(out, "[cpu]");
        line(out, "clock", &format!("\"{}kHz\"", self.clock.khz()));
        line(out, "miss_overlap", &self.miss_overlap.to_string());
        if self.cores() < self.cpus.len() {
            line(out, "smt_speed_permille", &self.smt_speed.to_string());
        }
        self.write_source(out, "cpu");
    }

    fn write_topology(&self, out: &mut String) {
        table(out, "[topology]");
        match regular(&self.cpus) {
            Some((layout, numbers)) => write_layout(out, layout, &numbers),
            None => {
                let of = |part: fn(&CpuPlace) -> u16| self.cpus.iter().map(part).collect();
                let lists: [(&str, Vec<u16>); 3] = [
                    ("cores", of(|place| place.core)),
                    ("llcs", of(|place| place.llc)),
                    ("sockets", of(|place| place.socket)),
                ];
                for (key, numbers) in lists {
                    line(out, key, &format!("{numbers:?}"));
                }
            }
        }
        let of_cpus = [
            ("priorities", &self.priorities),
            ("capacities", &self.capacities),
            ("nodes", &self.nodes),
        ];
        for (key, numbers) in of_cpus.iter().filter(|(_, numbers)| !numbers.is_empty()) {
            line(out, key, &format!("{numbers:?}"));
        }
        if !self.node_distances.is_empty() {
            line(out, "distances", &format!("{:?}", self.node_distances));
        }
        self.write_source(out, "topology");
    }

    fn write_caches(&self, out: &mut String) {
        let mut levels: BTreeMap<u8, Vec<&CacheDescription>> = BTreeMap::new();
        for cache in &self.caches {
            levels.entry(cache.level).or_default().push(cache);
        }
        for (level, caches) in levels {
            for (per, of, caches) in self.alike(&caches) {
                table(out, "[[cache]]");
                line(out, "level", &level.to_string());
                line(out, "per", &quoted(per));
                if let Some(of) = of {
                    let of: Vec<u16> = of.iter().map(|cpu| cpu.0).collect();
                    line(out, "cpus", &format!("{of:?}"));
                }
                write_cache(out, caches[0]);
                self.write_source(out, &format!("cache.l{level}"));
            }
        }
    }

    /// The caches of a level in parts that a table can say: who shares each, and of which CPUs they
    /// are if these are not all. Those of one shape are one part, if one word says who shares them.
    fn alike<'c>(&self, caches: &[&'c CacheDescription]) -> Vec<Part<'c>> {
        let shape = |cache: &CacheDescription| CacheDescription {
            cpus: Vec::new(),
            ..cache.clone()
        };
        let mut shapes: Vec<Vec<&CacheDescription>> = Vec::new();
        for cache in caches {
            match shapes.iter_mut().find(|of| shape(of[0]) == shape(cache)) {
                Some(known) => known.push(cache),
                None => shapes.push(vec![cache]),
            }
        }
        let all = shapes.len() == 1;
        let part = |caches: Vec<&'c CacheDescription>| -> Vec<Part<'c>> {
            let mut of: Vec<CpuId> = caches.iter().flat_map(|cache| cache.cpus.clone()).collect();
            of.sort_unstable();
            let of = Some(of).filter(|_| !all);
            match self.shared_per(&caches, of.as_deref()) {
                Some(per) => vec![(per, of, caches)],
                None => caches.iter().map(|cache| single(cache)).collect(),
            }
        };
        shapes.into_iter().flat_map(part).collect()
    }

    /// Who shares each of `caches`, which are all of a level, or of these CPUs.
    fn shared_per(
        &self,
        caches: &[&CacheDescription],
        of: Option<&[CpuId]>,
    ) -> Option<&'static str> {
        let shared: Vec<&Vec<CpuId>> = caches.iter().map(|cache| &cache.cpus).collect();
        let says = |per: Per| sharers_of(per, &self.cpus, of).iter().eq(shared.clone());
        let kind = Per::ALL.into_iter().find(|per| says(*per));
        kind.map(Per::name)
    }

    fn write_coherence(&self, out: &mut String) {
        let kind = match self.coherence {
            Coherence::Bus { .. } => "bus",
            Coherence::Directory { .. } => "directory",
        };
        table(out, "[coherence]");
        line(out, "kind", &quoted(kind));
        for (key, time) in self.coherence.times() {
            if let Some(time) = time {
                line(out, &format!("{key}_ns"), &ns(time));
            }
        }
        self.write_source(out, "coherence");
    }

    fn write_memory(&self, out: &mut String) {
        let memory = &self.memory;
        table(out, "[memory]");
        for (key, bytes) in [
            ("size", memory.size),
            ("page", memory.page),
            ("huge_page", memory.huge_page),
        ] {
            line(out, key, &size(bytes));
        }
        line(out, "latency_ns", &ns(memory.latency));
        line(out, "dma_into_llc", &memory.dma_into_llc.to_string());
        self.write_source(out, "memory");
    }

    fn write_card(&self, out: &mut String) {
        if let Some(card) = &self.card {
            table(out, "[network]");
            line(out, "card", &quoted(card.name));
            self.write_source(out, "network");
        }
    }

    fn write_steals(&self, out: &mut String) {
        for (at, steal) in self.steals.iter().enumerate() {
            table(out, "[[steal]]");
            line(out, "every", &quoted(&steal.every.exact()));
            line(out, "span", &quoted(&steal.span.exact()));
            self.write_source(out, &format!("steal.{at}"));
        }
    }

    /// The source of a group, or those of its single numbers.
    fn write_source(&self, out: &mut String, group: &str) {
        let single = format!("{group}.");
        let mut said: Vec<(&str, &str)> = Vec::new();
        for (key, source) in &self.sources {
            match key.strip_prefix(&single) {
                Some(number) => said.push((number, source)),
                None if key == group => said.push(("", source)),
                None => {}
            }
        }
        let all: BTreeSet<&str> = said.iter().map(|(_, source)| *source).collect();
        let text = match all.len() {
            0 => return,
            1 => said[0].1.to_owned(),
            _ => said.into_iter().map(named).collect::<Vec<_>>().join("; "),
        };
        line(out, "source", &quoted(&text));
    }
}

/// Caches that one table says: who shares each, of which CPUs they are, and they.
type Part<'c> = (&'static str, Option<Vec<CpuId>>, Vec<&'c CacheDescription>);

/// One cache, as that of all CPUs that share it.
fn single(cache: &CacheDescription) -> Part<'_> {
    ("machine", Some(cache.cpus.clone()), vec![cache])
}

fn write_layout(out: &mut String, layout: Layout, numbers: &[u64]) {
    for (key, number) in [
        ("sockets", layout.sockets),
        ("llcs_per_socket", layout.llcs_per_socket),
        ("cores_per_llc", layout.cores_per_llc),
        ("threads_per_core", layout.threads_per_core),
    ] {
        line(out, key, &number.to_string());
    }
    let in_order = (0..).zip(numbers).all(|(cpu, number)| cpu == *number);
    if !in_order {
        line(out, "numbers", &format!("{numbers:?}"));
    }
}

fn named((number, source): (&str, &str)) -> String {
    match number.is_empty() {
        true => source.to_owned(),
        false => format!("{number}: {source}"),
    }
}

fn table(out: &mut String, header: &str) {
    let _ = writeln!(out, "\n{header}");
}

fn line(out: &mut String, key: &str, value: &str) {
    let _ = writeln!(out, "{key} = {value}");
}

fn write_cache(out: &mut String, cache: &CacheDescription) {
    line(out, "size", &size(cache.size));
    line(out, "ways", &cache.ways.to_string());
    line(out, "line", &cache.line.0.to_string());
    line(out, "latency_cycles", &cache.latency.0.to_string());
    line(out, "replacement", &quoted(cache.replacement.name()));
    line(out, "inclusion", &quoted(cache.inclusion.name()));
}

fn write_costs(out: &mut String, kernel: &str, costs: &BTreeMap<String, Cost>) {
    table(out, &format!("[costs.{}]", quoted(kernel)));
    for (name, cost) in costs {
        let (cycles, source) = (cost.cycles.0, quoted(&cost.source));
        line(
            out,
            name,
            &format!("{{ cycles = {cycles}, source = {source} }}"),
        );
    }
}

fn size(bytes: Bytes) -> String {
    quoted(&bytes.to_string().replace(' ', ""))
}

/// ns with three decimals: a time of a machine is a whole number of ps.
fn ns(time: Duration) -> String {
    format!("{}.{:03}", time.0 / 1_000, time.0 % 1_000)
}

/// What the sockets are like if they are all alike, and the number in [`Layout::places`] of each
/// CPU.
fn regular(cpus: &[CpuPlace]) -> Option<(Layout, Vec<u64>)> {
    let distinct = |key: fn(&CpuPlace) -> u16| {
        let all: BTreeSet<u16> = cpus.iter().map(key).collect();
        all.len() as u64
    };
    let (sockets, llcs, cores) = (
        distinct(|place| place.socket),
        distinct(|place| place.llc),
        distinct(|place| place.core),
    );
    let layout = Layout {
        sockets,
        llcs_per_socket: (llcs / sockets.max(1)).max(1),
        cores_per_llc: cores / llcs.max(sockets).max(1),
        threads_per_core: cpus.len() as u64 / cores.max(1),
    };
    // Cores in the order of sockets, and of the last-level caches in these.
    let places: BTreeSet<(u16, u16, u16)> = cpus
        .iter()
        .map(|place| (place.socket, place.llc, place.core))
        .collect();
    let order: BTreeMap<u16, u64> = places.iter().map(|place| place.2).zip(0..).collect();
    let mut threads: BTreeMap<u16, u64> = BTreeMap::new();
    let number = |place: &CpuPlace| {
        let thread = threads.entry(place.core).or_default();
        let number = *thread * cores + order[&place.core];
        *thread += 1;
        number
    };
    let numbers: Vec<u64> = cpus.iter().map(number).collect();
    if layout.cpus() != Some(cpus.len() as u64) {
        return None;
    }
    let places = layout.places();
    let laid = numbers.iter().map(|at| places.get(*at as usize).copied());
    let mut laid = laid.collect::<Option<Vec<CpuPlace>>>()?;
    let mut here = cpus.to_vec();
    number_without_gaps(&mut laid);
    number_without_gaps(&mut here);
    if llcs < sockets {
        // One outermost cache of several sockets, as the reader has it.
        laid.iter_mut().for_each(|place| place.llc = 0);
    }
    (laid == here).then_some((layout, numbers))
}
