//! Decimal numbers as integers.

/// A decimal number of at most three places in thousandths, read exactly: `37.5` gives 37,500.
///
/// ```
/// assert_eq!(warmq_units::thousandths("37.5"), Some(37_500));
/// assert_eq!(warmq_units::thousandths("0.0001"), None);
/// ```
pub fn thousandths(text: &str) -> Option<u64> {
    let text: String = text
        .trim()
        .chars()
        .filter(|letter| *letter != '_')
        .collect();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 3 {
        return None;
    }
    let places: u64 = format!("{fraction:0<3}").parse().ok()?;
    let whole = whole.parse::<u64>().ok()?;
    whole.checked_mul(1_000)?.checked_add(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        let table = [
            ("37.5", Some(37_500)),
            ("0.001", Some(1)),
            ("7", Some(7_000)),
            ("1.50000", Some(1500)),
        ];
        for (text, thousandth) in table {
            assert_eq!(thousandths(text), thousandth, "{text}");
        }
        for text in [
            "",
            ".5",
            "-1",
            "1e3",
            "inf",
            "0.0001",
            "99999999999999999999",
        ] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
