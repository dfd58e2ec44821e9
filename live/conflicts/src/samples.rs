//! Addresses that a profiler sampled, as text.

use std::collections::BTreeMap;

use crate::error::ConflictsError;
use crate::layout::{Kind, Layout};

/// The lines of `line` bytes that more than one of the samples in `text` hit: an address in hex a
/// line of text, as `perf script -F addr` writes them. Samples of address 0, which have none, do
/// not count. Where no line has more than one, all are taken. `name` is that of the text.
///
/// # Errors
/// A line of text that is no address; no address at all.
pub fn samples(name: &str, text: &str, line: u64) -> Result<Layout, ConflictsError> {
    const FIX: &str = "write them by `perf script -F addr`";
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (number, row) in (1..).zip(text.lines()) {
        let Some(word) = row.split_whitespace().next() else {
            continue;
        };
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let address = u64::from_str_radix(digits, 16).map_err(|_| {
            let what = format!("line {number}: `{word}` is no address in hex");
            ConflictsError::file(name, what, FIX)
        })?;
        if address != 0 {
            *counts.entry(address / line * line).or_default() += 1;
        }
    }
    if counts.is_empty() {
        let what = "there is no sample with an address";
        let fix = "record with data addresses: `perf mem record`, or `perf record -d`";
        return Err(ConflictsError::file(name, what, fix));
    }
    let again: Vec<u64> = counts
        .iter()
        .filter(|(_, count)| **count > 1)
        .map(|(at, _)| *at)
        .collect();
    let hit = if again.is_empty() {
        counts.into_keys().collect()
    } else {
        again
    };
    Ok(Layout::new(Kind::Samples, hit))
}
