//! Caches from TOML: one table per level, which says how many CPUs share each.

use std::collections::BTreeMap;

use warmq_config::{Fields, Item};
use warmq_units::{CpuId, Cycles};

use crate::description::{CacheDescription, CpuPlace, Inclusion, Replacement};
use crate::toml_machine::{Sources, note_source, required, some_of};

warmq_units::named! {
    /// Which CPUs share a cache, as files say it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Per {
        Cpu = "cpu",
        Core = "core",
        Llc = "llc",
        Socket = "socket",
        Machine = "machine",
    }
}

/// The caches of a level, or those of some CPUs: all of one shape.
pub struct Level {
    per: Per,
    /// Of which CPUs; none: of all.
    of: Option<Vec<CpuId>>,
    // Not yet assigned to CPUs.
    cache: CacheDescription,
}

/// The levels of a machine of so many `cpus` in ascending order; one with a problem is left out.
/// Several tables of a level are for some CPUs each.
pub fn read_levels(root: &Fields<'_>, cpus: usize, sources: &mut Sources) -> Vec<Level> {
    if root.find("cache").is_none() {
        root.report("`cache` is missing", "add a table [[cache]] for each level");
    }
    let mut levels: Vec<Level> = Vec::new();
    for fields in root.tables("cache") {
        let level = read_level(&fields, cpus, sources);
        fields.finish();
        let Some(level) = level else { continue };
        let number = level.cache.level;
        let same = |other: &Level| {
            other.cache.level == number && (other.of.is_none() || level.of.is_none())
        };
        if levels.iter().any(same)
            && let Some(item) = fields.find("level")
        {
            let help = "describe each level once; `per` says how many there are, and `cpus` of \
                        which CPUs they are if they differ";
            item.report(format!("level {number} is described twice"), help);
        }
        levels.push(level);
    }
    levels.sort_by_key(|level| level.cache.level);
    levels
}

/// All caches of `levels` on these CPUs, by level and then by first CPU.
pub fn caches(levels: &[Level], cpus: &[CpuPlace]) -> Vec<CacheDescription> {
    let of_level = |level: &Level| {
        let on = |cpus| CacheDescription {
            cpus,
            ..level.cache.clone()
        };
        let of = level.of.as_deref();
        let sharers = sharers(level.per, cpus, of).into_iter();
        sharers.map(on).collect::<Vec<_>>()
    };
    let mut caches: Vec<CacheDescription> = levels.iter().flat_map(of_level).collect();
    caches.sort_by_key(|cache| (cache.level, cache.cpus[0]));
    caches
}

fn read_level(fields: &Fields<'_>, cpus: usize, sources: &mut Sources) -> Option<Level> {
    let within = |most: u64| move |item: &Item<'_>| item.integer(0..=most);
    let level = required(fields, "level", "level = 1", within(u64::from(u8::MAX)));
    let per = required(fields, "per", "per = \"cpu\"", |item| {
        item.choice(&Per::NAMES)
    });
    let size = required(fields, "size", "size = \"512KB\"", Item::bytes);
    let ways = required(fields, "ways", "ways = 4", within(u64::from(u32::MAX)));
    let line = required(fields, "line", "line = 64", Item::bytes);
    let latency = required(fields, "latency_cycles", "latency_cycles = 4", Item::count);
    let of = fields.if_given("cpus", |item| cpus_of(item, cpus));
    let replacement = fields.or("replacement", Replacement::Lru, |item| {
        item.choice(&Replacement::NAMES)
    });
    let inclusion = fields.or("inclusion", Inclusion::default(), |item| {
        item.choice(&Inclusion::NAMES)
    });
    if let Some(level) = level {
        note_one_of_several(fields, &format!("cache.l{level}"), sources);
    } else {
        fields.know(&["source"]);
    }
    let cache = CacheDescription {
        level: level? as u8,
        size: size?,
        ways: ways? as u32,
        line: line?,
        latency: Cycles(latency?),
        replacement: replacement?,
        inclusion: inclusion?,
        cpus: Vec::new(),
    };
    Some(Level {
        per: per?,
        of: of?,
        cache,
    })
}

/// Notes the source of a table, of which there may be several for `group`.
fn note_one_of_several(fields: &Fields<'_>, group: &str, sources: &mut Sources) {
    let before = sources.get(group).cloned();
    note_source(fields, group, sources);
    if let (Some(before), Some(source)) = (before, sources.get_mut(group))
        && before != *source
    {
        *source = format!("{before}; {source}");
    }
}

/// A list of some of so many CPUs.
fn cpus_of(item: &Item<'_>, cpus: usize) -> Option<Vec<CpuId>> {
    let last = cpus.saturating_sub(1) as u64;
    let cpu = |item: &Item<'_>| Some(CpuId(item.integer(0..=last)? as u16));
    some_of(item)?.iter().map(cpu).collect()
}

/// The sets of CPUs, all or those in `of`, that share a cache, in the order of their first CPUs.
pub fn sharers(per: Per, cpus: &[CpuPlace], of: Option<&[CpuId]>) -> Vec<Vec<CpuId>> {
    let mut sharers: BTreeMap<usize, Vec<CpuId>> = BTreeMap::new();
    let has = |cpu: usize| of.is_none_or(|of| of.iter().any(|known| known.index() == cpu));
    for (cpu, place) in cpus.iter().enumerate().filter(|(cpu, _)| has(*cpu)) {
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
