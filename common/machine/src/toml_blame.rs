//! From a flaw of a machine back to the place in its TOML.

use crate::error::{Flaw, MachineError};
use crate::toml_caches::CACHE;
use crate::toml_fields::Fields;

/// Finds the place in the text that a flaw of the machine speaks of.
pub fn blame(root: &Fields<'_>, flaw: Flaw) -> MachineError {
    let (fields, key) = find(root, &flaw.key).unwrap_or_else(|| (root.clone(), flaw.key.clone()));
    fields.error(&key, flaw.problem, flaw.mend)
}

/// The table and the key there that stand for `cache.l2.ways`, `memory.latency` and the like.
fn find<'a>(root: &Fields<'a>, key: &str) -> Option<(Fields<'a>, String)> {
    let (group, field) = key.split_once('.')?;
    match group {
        "cache" => {
            let (level, field) = field.split_once('.').unwrap_or((field, "level"));
            let level: u64 = level.strip_prefix('l')?.parse().ok()?;
            let mut caches = root.tables("cache", &CACHE).ok()?.into_iter();
            let cache = caches.find(|cache| cache.integer("level", u64::MAX) == Ok(level))?;
            Some((cache, cache_key(field).to_owned()))
        }
        "costs" => {
            let (kernel, name) = field.rsplit_once('.')?;
            Some((
                root.table("costs", None).ok()?.table(kernel, None).ok()?,
                name.to_owned(),
            ))
        }
        _ => {
            let table = root.table(group, None).ok()?;
            let with_unit = ["_ns", "_permille"].map(|unit| format!("{field}{unit}"));
            let written = with_unit.into_iter().find(|key| table.has(key));
            Some((table, written.unwrap_or(field.to_owned())))
        }
    }
}

fn cache_key(field: &str) -> &str {
    match field {
        "latency" => "latency_cycles",
        "sharing" => "per",
        other => other,
    }
}
