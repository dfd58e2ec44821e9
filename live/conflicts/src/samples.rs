//! Addresses that a profiler sampled.

use std::collections::BTreeMap;

use crate::error::ConflictsError;
use crate::layout::{Kind, Layout};

/// The addresses in `text`, one in hex a line of text, as `perf script -F addr` writes them.
/// `name` is that of the text.
///
/// # Errors
/// A line of text that is no address.
pub fn samples(name: &str, text: &str) -> Result<Vec<u64>, ConflictsError> {
    const FIX: &str = "give perf.data, or what `perf script -F addr` writes";
    let address = |(number, row): (usize, &str)| {
        let word = row.split_whitespace().next()?;
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let address = u64::from_str_radix(digits, 16);
        Some(address.map_err(|_| {
            let what = format!("line {number}: `{word}` is no address in hex");
            ConflictsError::file(name, what, FIX)
        }))
    };
    (1..).zip(text.lines()).filter_map(address).collect()
}

/// The lines of `line` bytes that more than one of the samples at `addresses` hit; where none has
/// more than one, all of them. Samples of address 0, which have none, do not count. `name` is that
/// of the file.
///
/// # Errors
/// No address at all.
pub fn hit_lines(
    name: &str,
    addresses: impl IntoIterator<Item = u64>,
    line: u64,
) -> Result<Layout, ConflictsError> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for address in addresses.into_iter().filter(|address| *address != 0) {
        *counts.entry(address / line * line).or_default() += 1;
    }
    if counts.is_empty() {
        let what = "there is no sample with an address";
        let fix = "record with data addresses: `perf mem record`, or `perf record -d`";
        return Err(ConflictsError::file(name, what, fix));
    }
    if counts.values().any(|count| *count > 1) {
        counts.retain(|_, count| *count > 1);
    }
    Ok(Layout::new(Kind::Samples, counts.into_keys().collect()))
}
