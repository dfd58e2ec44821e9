//! Machines from TOML.
//!
//! The format is shown by the files in `machines/`. A machine has the tables `[cpu]`,
//! `[topology]`, `[[cache]]` (one a level), `[coherence]`, `[memory]` and any number of
//! `[costs."KERNEL"]`. Each carries a `source`: where its numbers come from.

use std::collections::BTreeMap;

use warmq_units::{Bytes, Cycles, Duration, Hertz};

use crate::check::{MOST_CPUS, NOT_SLOWED_DOWN};
use crate::description::{Coherence, Cost, MachineDescription, MemoryDescription};
use crate::error::MachineError;
use crate::toml_blame::blame;
use crate::toml_caches::read_caches;
use crate::toml_fields::{Fields, Text, thousandths};
use crate::topology::Layout;

/// The source of a number whose source nobody wrote down.
pub const NOT_GIVEN: &str = "not given";

const ROOT: [&str; 8] = [
    "name",
    "title",
    "cpu",
    "topology",
    "cache",
    "coherence",
    "memory",
    "costs",
];
const CPU: [&str; 4] = ["clock", "miss_overlap", "smt_speed_permille", "source"];
const TOPOLOGY: [&str; 5] = [
    "sockets",
    "llcs_per_socket",
    "cores_per_llc",
    "threads_per_core",
    "source",
];
const COHERENCE: [&str; 8] = [
    "kind",
    "line_transfer_ns",
    "address_only_ns",
    "cache_to_cache_ns",
    "same_domain_ns",
    "other_domain_ns",
    "other_socket_ns",
    "source",
];
const MEMORY: [&str; 6] = [
    "size",
    "page",
    "huge_page",
    "latency_ns",
    "dma_into_llc",
    "source",
];
const COST: [&str; 2] = ["cycles", "source"];
const CLOCK_EXAMPLE: &str = "clock = \"550MHz\"";

/// Reads a machine from TOML; `file` is its name in errors.
///
/// # Errors
/// Text that is not TOML, a key that is missing, unknown or of the wrong type, or a machine that
/// [`MachineDescription::check`] refuses. Each error names the key, the place and the mend.
///
/// ```
/// let error = warmq_machine::read_toml("my.toml", "name = \"my\"\ntitel = \"mine\"").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "my.toml:2: titel: there is no key `titel` here; did you mean `title`?"
/// );
/// ```
pub fn read_toml(file: &str, text: &str) -> Result<MachineDescription, MachineError> {
    let text = Text { file, text };
    let document = text.parse()?;
    let root = text.root(&document, &ROOT)?;
    let mut sources = BTreeMap::new();

    let name = root.string("name", "name = \"my-machine\"")?.to_owned();
    let title = if root.has("title") {
        root.string("title", "title = \"My machine\"")?
    } else {
        &name
    };
    let (clock, miss_overlap) = read_cpu(&root, &mut sources)?;
    let layout = read_topology(&root, &mut sources)?;
    let smt_speed = read_smt_speed(&root, layout.threads_per_core)?;
    let mut cpus = layout.places();
    let caches = read_caches(&root, &cpus, &mut sources)?;
    if layout.llcs_per_socket == 1
        && caches
            .last()
            .is_some_and(|all| all.cpus.len() == cpus.len())
    {
        // One outermost cache, also of several sockets, is one last-level domain.
        cpus.iter_mut().for_each(|place| place.llc = 0);
    }
    let machine = MachineDescription {
        title: title.to_owned(),
        name,
        clock,
        miss_overlap,
        smt_speed,
        caches,
        cpus,
        coherence: read_coherence(&root, &mut sources)?,
        memory: read_memory(&root, &mut sources)?,
        costs: read_costs(&root)?,
        sources,
    };
    match machine.check() {
        Ok(()) => Ok(machine),
        Err(flaw) => Err(blame(&root, flaw)),
    }
}

/// Notes the source of a group of numbers.
pub fn note_source(
    fields: &Fields<'_>,
    group: &str,
    sources: &mut BTreeMap<String, String>,
) -> Result<(), MachineError> {
    sources.insert(group.to_owned(), source_of(fields)?);
    Ok(())
}

fn source_of(fields: &Fields<'_>) -> Result<String, MachineError> {
    if !fields.has("source") {
        return Ok(NOT_GIVEN.to_owned());
    }
    let source = fields
        .string("source", "source = \"measured by ...\"")?
        .trim();
    if source.is_empty() {
        let mend = "say who measured it, or leave the key out";
        return Err(fields.error("source", "the source is empty", mend));
    }
    Ok(source.to_owned())
}

fn read_cpu(
    root: &Fields<'_>,
    sources: &mut BTreeMap<String, String>,
) -> Result<(Hertz, u64), MachineError> {
    let cpu = root.table("cpu", Some(&CPU))?;
    note_source(&cpu, "cpu", sources)?;
    let text = cpu.string("clock", CLOCK_EXAMPLE)?;
    let clock = clock(text).ok_or_else(|| {
        let mend = format!("write for example {CLOCK_EXAMPLE} or \"2.4GHz\"");
        cpu.error("clock", format!("`{text}` is not a clock"), mend)
    })?;
    let overlap = if cpu.has("miss_overlap") {
        cpu.integer("miss_overlap", u64::MAX)?
    } else {
        1
    };
    Ok((clock, overlap))
}

/// How fast a CPU runs beside a busy sibling. A machine whose cores have several CPUs must say so.
fn read_smt_speed(root: &Fields<'_>, threads_per_core: u64) -> Result<u64, MachineError> {
    let cpu = root.table("cpu", Some(&CPU))?;
    let key = "smt_speed_permille";
    match (cpu.has(key), threads_per_core > 1) {
        (false, false) => Ok(NOT_SLOWED_DOWN),
        (true, true) => cpu.integer(key, NOT_SLOWED_DOWN),
        (false, true) => {
            let problem =
                "the cores have several CPUs, but not how much these slow each other down";
            let mend = "add the speed of a CPU beside a busy sibling, in thousandths of its speed \
                        alone: smt_speed_permille = 610";
            Err(cpu.error(key, problem, mend))
        }
        (true, false) => {
            let mend = "drop the key, or give the topology threads_per_core = 2";
            Err(cpu.error(key, "no core has two CPUs", mend))
        }
    }
}

/// Reads `550MHz` or `2.4GHz`; nothing for a clock that stands still.
fn clock(text: &str) -> Option<Hertz> {
    let text = text.trim().to_ascii_lowercase();
    let (number, khz_in_unit) = [("ghz", 1_000_000), ("mhz", 1_000), ("khz", 1)]
        .into_iter()
        .find_map(|(unit, khz)| Some((text.strip_suffix(unit)?, khz)))?;
    let khz = thousandths(number)?.checked_mul(khz_in_unit)? / 1_000;
    (khz > 0).then(|| Hertz::from_khz(khz))
}

fn read_topology(
    root: &Fields<'_>,
    sources: &mut BTreeMap<String, String>,
) -> Result<Layout, MachineError> {
    let topology = root.table("topology", Some(&TOPOLOGY))?;
    note_source(&topology, "topology", sources)?;
    let number = |key| -> Result<u64, MachineError> {
        let number = if topology.has(key) {
            topology.integer(key, u64::MAX)?
        } else {
            1
        };
        if number > 0 {
            return Ok(number);
        }
        Err(topology.error(key, "a machine without CPUs", "give at least 1"))
    };
    let layout = Layout {
        sockets: number("sockets")?,
        llcs_per_socket: number("llcs_per_socket")?,
        cores_per_llc: number("cores_per_llc")?,
        threads_per_core: number("threads_per_core")?,
    };
    match layout.cpus() {
        Some(cpus) if cpus <= MOST_CPUS as u64 => Ok(layout),
        _ => {
            let mend = format!("describe at most {MOST_CPUS}");
            Err(root.error("topology", "these are absurdly many CPUs", mend))
        }
    }
}

fn time(fields: &Fields<'_>, key: &str) -> Result<Duration, MachineError> {
    fields.thousandths(key).map(Duration)
}

fn read_coherence(
    root: &Fields<'_>,
    sources: &mut BTreeMap<String, String>,
) -> Result<Coherence, MachineError> {
    let fields = root.table("coherence", Some(&COHERENCE))?;
    note_source(&fields, "coherence", sources)?;
    let bus = fields.choice("kind", &[("bus", true), ("directory", false)], false)?;
    let foreign: &[&str] = if bus {
        &COHERENCE[4..7]
    } else {
        &COHERENCE[2..4]
    };
    if let Some(key) = foreign.iter().find(|key| fields.has(key)) {
        let (kind, other) = if bus {
            ("bus", "directory")
        } else {
            ("directory", "bus")
        };
        let problem = format!("a {kind} has no such latency");
        return Err(fields.error(key, problem, format!("drop it, or use kind = \"{other}\"")));
    }
    let line_transfer = time(&fields, "line_transfer_ns")?;
    Ok(if bus {
        Coherence::Bus {
            line_transfer,
            address_only: time(&fields, "address_only_ns")?,
            cache_to_cache: time(&fields, "cache_to_cache_ns")?,
        }
    } else {
        Coherence::Directory {
            same_domain: time(&fields, "same_domain_ns")?,
            other_domain: time(&fields, "other_domain_ns")?,
            other_socket: time(&fields, "other_socket_ns")?,
            line_transfer,
        }
    })
}

fn read_memory(
    root: &Fields<'_>,
    sources: &mut BTreeMap<String, String>,
) -> Result<MemoryDescription, MachineError> {
    let memory = root.table("memory", Some(&MEMORY))?;
    note_source(&memory, "memory", sources)?;
    let or = |key, default| {
        if memory.has(key) {
            memory.bytes(key)
        } else {
            Ok(default)
        }
    };
    Ok(MemoryDescription {
        size: memory.bytes("size")?,
        page: or("page", Bytes::from_kb(4))?,
        huge_page: or("huge_page", Bytes::from_mb(2))?,
        latency: time(&memory, "latency_ns")?,
        dma_into_llc: memory.flag("dma_into_llc")?,
    })
}

type Costs = BTreeMap<String, BTreeMap<String, Cost>>;

fn read_costs(root: &Fields<'_>) -> Result<Costs, MachineError> {
    let mut costs = Costs::new();
    if !root.has("costs") {
        return Ok(costs);
    }
    let kernels = root.table("costs", None)?;
    for kernel in kernels.keys() {
        let fields = kernels.table(kernel, None)?;
        let of_kernel: Result<_, MachineError> = fields
            .keys()
            .map(|name| Ok((name.to_owned(), read_cost(&fields, name)?)))
            .collect();
        costs.insert(kernel.to_owned(), of_kernel?);
    }
    Ok(costs)
}

/// `{ cycles = 1200, source = "..." }`, or just `1200`.
fn read_cost(fields: &Fields<'_>, name: &str) -> Result<Cost, MachineError> {
    if !fields.is_table(name) {
        let cycles = Cycles(fields.integer(name, u64::MAX)?);
        return Ok(Cost {
            cycles,
            source: NOT_GIVEN.to_owned(),
        });
    }
    let cost = fields.table(name, Some(&COST))?;
    Ok(Cost {
        cycles: Cycles(cost.integer("cycles", u64::MAX)?),
        source: source_of(&cost)?,
    })
}
