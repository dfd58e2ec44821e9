//! The data caches of this machine, as /sys has them.

use std::fs;
use std::path::Path;

use warmq_coloring::Cache;

/// Level 1 of many x86 cores and level 2 of small ones, for systems that say nothing of their
/// caches: containers without /sys, some virtual machines.
const USUAL: [Option<Cache>; 2] = [Cache::new(32 << 10, 8, 64), Cache::new(512 << 10, 8, 64)];

/// The data caches of CPU 0 below `root` (`/` for this machine), the nearest first. Where /sys has
/// none, 32 KB and 512 KB, both with 8 ways and lines of 64 bytes.
pub fn caches(root: &Path) -> Vec<Cache> {
    let folder = root.join("sys/devices/system/cpu/cpu0/cache");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u64, Cache)> = entries.filter_map(|entry| cache(&entry.path())).collect();
    found.sort_by_key(|(level, _)| *level);
    if found.is_empty() {
        return USUAL.into_iter().flatten().collect();
    }
    found.into_iter().map(|(_, cache)| cache).collect()
}

/// Level and shape of the cache at `folder`; `None` for one of instructions, and for one that is
/// described in part.
fn cache(folder: &Path) -> Option<(u64, Cache)> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    if text("type")?.trim() == "Instruction" {
        return None;
    }
    // Size and ways may contradict the number of sets (8 of 16 slices that a guest sees, say): then
    // the sets count, as they are what blocks fight for.
    let (line, ways) = (
        number("coherency_line_size")?,
        number("ways_of_associativity")?,
    );
    let size = number("number_of_sets")?
        .checked_mul(line)?
        .checked_mul(ways)?;
    Some((number("level")?, Cache::new(size, ways, line)?))
}
