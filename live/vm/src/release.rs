//! Releases of kernels and their order.

use std::cmp::Ordering;

/// Whether `release` (`6.18.15+deb13-cloud-amd64`) belongs to `series` (`6.18`, or longer).
pub(crate) fn belongs(release: &str, series: &str) -> bool {
    let rest = release.strip_prefix(series);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', '-']))
}

/// The series of a release: its first two numbers.
pub(crate) fn series(release: &str) -> String {
    let numbers: Vec<&str> = release.splitn(3, ['.', '+', '-']).take(2).collect();
    numbers.join(".")
}

/// Older before newer: numbers as numbers, the rest as text.
pub(crate) fn order(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other))
}

/// Text and the number after it, over and over.
fn parts(release: &str) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let mut left = release;
    while !left.is_empty() {
        let digits = left
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(left.len());
        let (text, after) = left.split_at(digits);
        let end = after
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        parts.push((text, number.parse().unwrap_or(0)));
        left = after;
    }
    parts
}
