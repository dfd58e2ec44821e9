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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_a_beginning_that_ends_at_a_number() {
        for (release, series, belonging) in [
            ("6.18.15+deb13-cloud-amd64", "6.18", true),
            ("6.18.15+deb13-cloud-amd64", "6.18.15", true),
            (
                "6.18.15+deb13-cloud-amd64",
                "6.18.15+deb13-cloud-amd64",
                true,
            ),
            ("6.18.15+deb13-cloud-amd64", "6.1", false),
            ("6.18.15+deb13-cloud-amd64", "6.18.1", false),
            ("6.18-rc3", "6.18", true),
        ] {
            assert_eq!(belongs(release, series), belonging, "{release} {series}");
        }
        assert_eq!(series("6.18.15+deb13-cloud-amd64"), "6.18");
        assert_eq!(series("7.0+x"), "7.0");
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let ordered = [
            "6.9.1",
            "6.18.5",
            "6.18.12",
            "6.18.15",
            "6.18.15+deb13",
            "6.19",
            "7.0.4",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(order(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
