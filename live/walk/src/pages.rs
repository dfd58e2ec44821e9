//! What memory an arena really got: huge pages or small.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::arena::Arena;
use serde::Serialize;

/// Which pages stand behind an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// Huge pages everywhere, as far as this system knows: a hypervisor may have put each of
    /// their small pages elsewhere.
    Huge,
    /// Huge pages in part.
    Mixed,
    /// Small pages, given in the order of touching: 8 KB blocks need not be whole, nor neighbours.
    Small,
    /// /proc/self/smaps could not be read.
    Unknown,
}

/// What stands behind `arena`, as /proc/self/smaps says.
pub fn backing(arena: &Arena) -> Backing {
    let Ok(smaps) = File::open("/proc/self/smaps") else {
        return Backing::Unknown;
    };
    let end = arena.start() + arena.length();
    let lines = BufReader::new(smaps).lines().map_while(Result::ok);
    huge_bytes(lines, arena.start(), end).map_or(Backing::Unknown, |huge| match huge {
        0 => Backing::Small,
        huge if huge >= arena.length() => Backing::Huge,
        _ => Backing::Mixed,
    })
}

/// Bytes of huge pages in the mappings that overlap `start..end`; `None` where there is no such
/// mapping.
fn huge_bytes(lines: impl Iterator<Item = String>, start: u64, end: u64) -> Option<u64> {
    let (mut within, mut huge) = (false, None);
    for line in lines {
        if let Some((from, to)) = mapping(&line) {
            within = from < end && start < to;
            if within {
                huge = Some(huge.unwrap_or(0));
            }
        } else if within && let Some(kb) = huge_kb(&line) {
            huge = huge.map(|sum| sum + (kb << 10));
        }
    }
    huge
}

/// The two addresses of a line that begins a mapping: `7f00a000-7f00c000 rw-p ...`.
fn mapping(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    Some((
        u64::from_str_radix(from, 16).ok()?,
        u64::from_str_radix(to, 16).ok()?,
    ))
}

fn huge_kb(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(':')?;
    let counts = matches!(key, "AnonHugePages" | "Private_Hugetlb");
    counts.then(|| value.trim().strip_suffix(" kB")?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_huge_pages_of_the_arena_count() {
        let smaps = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
7f0000200000-7f0000800000 rw-p 00000000 00:00 0
Rss:                6144 kB
AnonHugePages:      4096 kB
7f0000800000-7f0000900000 rw-p 00000000 00:00 0
AnonHugePages:         8 kB";
        let lines = || smaps.lines().map(str::to_owned);
        assert_eq!(
            huge_bytes(lines(), 0x7f00_0020_0000, 0x7f00_0080_0000),
            Some(4096 << 10)
        );
        assert_eq!(huge_bytes(lines(), 0x1000, 0x2000), None);
    }
}
