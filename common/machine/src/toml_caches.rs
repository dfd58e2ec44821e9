//! Caches from TOML: one table a level, and how many there are of it.

use std::collections::BTreeMap;

use warmq_units::{CpuId, Cycles};

use crate::description::{CacheDescription, CpuPlace, Inclusion, Replacement};
use crate::error::MachineError;
use crate::toml_fields::Fields;
use crate::toml_machine::note_source;

/// The keys of a table of a level.
pub const CACHE: [&str; 9] = [
    "level",
    "size",
    "ways",
    "line",
    "latency_cycles",
    "per",
    "replacement",
    "inclusion",
    "source",
];

/// Which CPUs share a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    Cpu,
    Core,
    Llc,
    Socket,
    Machine,
}

const PER: [(&str, Per); 5] = [
    ("cpu", Per::Cpu),
    ("core", Per::Core),
    ("llc", Per::Llc),
    ("socket", Per::Socket),
    ("machine", Per::Machine),
];
const REPLACEMENT: [(&str, Replacement); 3] = [
    ("lru", Replacement::Lru),
    ("tree-plru", Replacement::TreePlru),
    ("quad-age", Replacement::QuadAge),
];

const INCLUSION: [(&str, Inclusion); 3] = [
    ("non-inclusive", Inclusion::NonInclusive),
    ("inclusive", Inclusion::Inclusive),
    ("victim", Inclusion::Victim),
];

/// All caches of the machine, by level and then by first CPU.
pub fn read_caches(
    root: &Fields<'_>,
    cpus: &[CpuPlace],
    sources: &mut BTreeMap<String, String>,
) -> Result<Vec<CacheDescription>, MachineError> {
    let mut levels = BTreeMap::new();
    for fields in root.tables("cache", &CACHE)? {
        let level = fields.integer("level", u64::from(u8::MAX))? as u8;
        if levels.contains_key(&level) {
            let mend = "describe each level once; `per` says how many there are";
            return Err(fields.error("level", format!("level {level} is there twice"), mend));
        }
        note_source(&fields, &format!("cache.l{level}"), sources)?;
        levels.insert(level, read_level(&fields, level, cpus)?);
    }
    Ok(levels.into_values().flatten().collect())
}

/// All caches of one level.
fn read_level(
    fields: &Fields<'_>,
    level: u8,
    cpus: &[CpuPlace],
) -> Result<Vec<CacheDescription>, MachineError> {
    let per = fields.choice("per", &PER, false)?;
    let cache = CacheDescription {
        level,
        size: fields.bytes("size")?,
        ways: fields.integer("ways", u64::from(u32::MAX))? as u32,
        line: fields.bytes("line")?,
        latency: Cycles(fields.integer("latency_cycles", u64::MAX)?),
        replacement: fields.choice("replacement", &REPLACEMENT, true)?,
        inclusion: fields.choice("inclusion", &INCLUSION, true)?,
        cpus: Vec::new(),
    };
    let sharers = sharers(per, cpus).into_iter();
    Ok(sharers
        .map(|cpus| CacheDescription {
            cpus,
            ..cache.clone()
        })
        .collect())
}

/// The sets of CPUs that share a cache, in the order of their first CPUs.
fn sharers(per: Per, cpus: &[CpuPlace]) -> Vec<Vec<CpuId>> {
    let mut sharers: BTreeMap<usize, Vec<CpuId>> = BTreeMap::new();
    for (cpu, place) in cpus.iter().enumerate() {
        let domain = match per {
            Per::Cpu => cpu,
            Per::Core => usize::from(place.core),
            Per::Llc => usize::from(place.llc),
            Per::Socket => usize::from(place.socket),
            Per::Machine => 0,
        };
        sharers.entry(domain).or_default().push(CpuId(cpu as u16));
    }
    sharers.into_values().collect()
}
