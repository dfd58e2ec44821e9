//! Stacks side by side in one mapping, without guards between them.
//!
//! ```text
//!     pages    ......XX......XX......XX       X: populated, as a stack is used from its end on
//!     stacks   |-------|-------|-------       the ends of populated pages are a stack apart
//! ```
//!
//! A stack that a fiber has left holds an address of code near its end: where the fiber goes on, or
//! what its first function returns to. Memory that is populated without a gap (huge pages,
//! MAP_POPULATE, stacks that were used to their lower end) shows no distance, and nothing is found.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::PAGE;
use crate::maps::Mapping;
use crate::memory::Memory;

/// Mappings with more pages are not looked at: 64 GB.
const MOST_PAGES: u64 = 1 << 24;

/// Populated parts of a stack at most: its end, what malloc keeps before it, what it grew to.
const MOST_PARTS: usize = 3;

/// Bytes before the end of a part in which code is looked for: a frame and what lies above it.
const LOOKED_AT: u64 = 4 * PAGE;

/// Entries of /proc/PID/pagemap that are read at a time, and bits of a page that is in memory or
/// swapped out.
const AT_A_TIME: u64 = 1 << 16;
const POPULATED: u64 = 3 << 62;

/// The line with the highest address of code of each stack in `mapping`, whose pages `pagemap` has;
/// `code` says what is an address of code. Fewer than `fewest` are none.
pub(crate) fn tops(
    pagemap: &File,
    memory: &Memory,
    mapping: &Mapping,
    fewest: usize,
    code: &dyn Fn(u64) -> bool,
) -> Vec<u64> {
    let parts = populated(pagemap, mapping).unwrap_or_default();
    let strides = (1..=MOST_PARTS).filter_map(|apart| stride(&parts, apart));
    // What is not populated stays so: to read it would make the kernel map a page of zeros.
    let top = |(start, end): (u64, u64)| {
        memory.code_line(start.max(end.saturating_sub(LOOKED_AT)), end, code)
    };
    let tops = |stride: u64| {
        // Stacks that were never used leave a gap of several strides.
        let mut by_place = parts.clone();
        by_place.sort_by_key(|(_, end)| end % stride);
        let places = by_place.chunk_by(|(_, end), (_, next)| end % stride == next % stride);
        let alike = places.filter(|parts| parts.len() >= fewest).map(|parts| {
            let tops: Vec<u64> = parts.iter().copied().filter_map(top).collect();
            // Most of them hold code, or they are no stacks.
            let are_stacks = tops.len() >= fewest && tops.len() * 2 > parts.len();
            if are_stacks { tops } else { Vec::new() }
        });
        alike.max_by_key(Vec::len).unwrap_or_default()
    };
    strides.map(tops).max_by_key(Vec::len).unwrap_or_default()
}

/// The distance that the ends of most `parts`, which ascend, have from that so many further on.
fn stride(parts: &[(u64, u64)], apart: usize) -> Option<u64> {
    let pairs = parts.iter().zip(parts.iter().skip(apart));
    let mut gaps: Vec<u64> = pairs.map(|((_, end), (_, next))| next - end).collect();
    gaps.sort_unstable();
    let same = gaps.chunk_by(|gap, next| gap == next);
    let most = same.max_by_key(|same| same.len())?;
    most.first().copied().filter(|stride| *stride > PAGE)
}

/// Where populated pages of `mapping` begin and end.
fn populated(pagemap: &File, mapping: &Mapping) -> Option<Vec<(u64, u64)>> {
    let (first, last) = (mapping.start / PAGE, mapping.end / PAGE);
    if last - first > MOST_PAGES {
        return None;
    }
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for from in (first..last).step_by(AT_A_TIME as usize) {
        let count = AT_A_TIME.min(last - from);
        let mut entries = vec![0; count as usize * 8];
        pagemap.read_exact_at(&mut entries, from * 8).ok()?;
        for (page, entry) in (from..).zip(entries.chunks_exact(8)) {
            let (start, end) = (page * PAGE, (page + 1) * PAGE);
            if u64::from_ne_bytes(entry.try_into().ok()?) & POPULATED == 0 {
                continue;
            }
            match parts.last_mut() {
                Some((_, before)) if *before == start => *before = end,
                _ => parts.push((start, end)),
            }
        }
    }
    Some(parts)
}
