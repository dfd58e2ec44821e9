//! Finds the place in a machine's TOML that a flaw is about.

use warmq_config::{Fields, Item};

use crate::error::Flaw;

/// Reports a flaw of the machine at the place in the text that it is about.
pub fn blame(root: &Fields<'_>, flaw: Flaw) {
    match find(root, &flaw.key) {
        Some(item) => item.report(flaw.problem, flaw.help),
        None => root.report(format!("{}: {}", flaw.key, flaw.problem), flaw.help),
    }
}

/// The value that `cache.l2.ways`, `memory.latency` and the like stand for, or the table where it
/// would be.
fn find<'a>(root: &Fields<'a>, key: &str) -> Option<Item<'a>> {
    let Some((group, field)) = key.split_once('.') else {
        return root.find(key);
    };
    let (item, field) = match group {
        "cache" => {
            let (level, field) = field.split_once('.').unwrap_or((field, "level"));
            (level_item(root, level)?, cache_key(field).to_owned())
        }
        "steal" => {
            let (index, field) = field.split_once('.')?;
            let index: usize = index.parse().ok()?;
            (
                root.members("steal").into_iter().nth(index)?,
                field.to_owned(),
            )
        }
        "costs" => {
            let (kernel, name) = field.rsplit_once('.')?;
            let kernels = root.find("costs")?.table()?;
            (kernels.find(kernel)?, name.to_owned())
        }
        _ => (root.find(group)?, field.to_owned()),
    };
    let fields = item.table()?;
    let written = ["", "_ns", "_permille"].map(|unit| format!("{field}{unit}"));
    let value = written.iter().find_map(|key| fields.find(key));
    value.or(Some(item))
}

/// The table of the caches of `level`: `l2`.
fn level_item<'a>(root: &Fields<'a>, level: &str) -> Option<Item<'a>> {
    let level: u64 = level.strip_prefix('l')?.parse().ok()?;
    let has_level = |item: &Item<'_>| {
        let of_item = item.table().and_then(|table| table.find("level"));
        of_item.and_then(|item| item.count()) == Some(level)
    };
    root.members("cache").into_iter().find(has_level)
}

fn cache_key(field: &str) -> &str {
    match field {
        "latency" => "latency_cycles",
        "sharing" => "per",
        other => other,
    }
}
