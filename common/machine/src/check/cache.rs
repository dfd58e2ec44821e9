//! The rules for a single cache.

use warmq_units::Bytes;

use super::{check_cycles, demand};
use crate::description::{CacheDescription, Inclusion, Replacement};
use crate::error::Flaw;

const LARGEST_CACHE: Bytes = Bytes(64 << 30);
const LARGEST_LINE: Bytes = Bytes(4096);
const MOST_LEVELS: u8 = 8;
/// The most ways of a cache.
pub const MOST_WAYS: u32 = 1 << 16;

/// The key of a cache's field: `cache.l2.ways`.
pub fn cache_key(cache: &CacheDescription, field: &str) -> String {
    format!("cache.l{}.{field}", cache.level)
}

/// Checks one cache of a machine of `cpus` CPUs.
pub fn check_cache(cache: &CacheDescription, cpus: usize) -> Result<(), Flaw> {
    demand((1..=MOST_LEVELS).contains(&cache.level), || {
        let problem = format!("there is no level {}", cache.level);
        Flaw::new(
            "cache",
            problem,
            format!("number the levels from 1 to {MOST_LEVELS}"),
        )
    })?;
    let flaw =
        |field, problem: String, help: &str| Flaw::new(cache_key(cache, field), problem, help);
    demand(
        cache.line.0.is_power_of_two() && (Bytes(8)..=LARGEST_LINE).contains(&cache.line),
        || {
            let problem = format!(
                "a line of {} is not a power of two from 8 B to 4 KB",
                cache.line
            );
            flaw("line", problem, "give 32 or 64, say")
        },
    )?;
    demand(cache.size.0 > 0 && cache.size <= LARGEST_CACHE, || {
        flaw(
            "size",
            format!("a cache of {}", cache.size),
            "give a size up to 64GB",
        )
    })?;
    check_ways(cache)?;
    demand(
        cache.level > 1 || cache.inclusion != Inclusion::Victim,
        || {
            let problem = "level 1 has no nearer cache whose evictions it could take in".into();
            flaw("inclusion", problem, "leave the key out")
        },
    )?;
    check_cycles(&cache_key(cache, "latency"), cache.latency)?;
    demand(cache.latency.0 > 0, || {
        flaw(
            "latency",
            "a hit that takes no time".into(),
            "give at least 1 cycle",
        )
    })?;
    let ascending = cache.cpus.windows(2).all(|pair| pair[0] < pair[1]);
    demand(!cache.cpus.is_empty() && ascending, || {
        flaw(
            "sharing",
            "the CPUs that share it are not a set".into(),
            "list each once, ascending",
        )
    })?;
    let last = cache.cpus[cache.cpus.len() - 1];
    demand(last.index() < cpus, || {
        flaw(
            "sharing",
            format!("it serves {last}, which does not exist"),
            "serve CPUs that exist",
        )
    })
}

fn check_ways(cache: &CacheDescription) -> Result<(), Flaw> {
    let key = |field| cache_key(cache, field);
    demand((1..=MOST_WAYS).contains(&cache.ways), || {
        let problem = format!("a cache of {} ways", cache.ways);
        Flaw::new(
            key("ways"),
            problem,
            format!("give 1 (direct-mapped) to {MOST_WAYS} ways"),
        )
    })?;
    let way_row = u64::from(cache.ways) * cache.line.0;
    demand(cache.size.0.is_multiple_of(way_row), || {
        let (ways, line, size) = (cache.ways, cache.line, cache.size);
        let problem = format!("{ways} ways of {line} lines do not divide {size}");
        let fits = |ways: &u32| size.0.is_multiple_of(u64::from(*ways) * line.0);
        let help = match (1..ways).rev().find(fits) {
            Some(ways) => format!("give {ways} ways, say, or another size"),
            None => format!("give a size that is a multiple of {line}"),
        };
        Flaw::new(key("ways"), problem, help)
    })?;
    let tree = cache.replacement == Replacement::TreePlru;
    demand(!tree || cache.ways.is_power_of_two(), || {
        let problem = format!("a tree over {} ways, not a power of two", cache.ways);
        Flaw::new(
            key("replacement"),
            problem,
            "use `lru`, or 2, 4, 8, 16... ways",
        )
    })
}
