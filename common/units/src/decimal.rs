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

/// So many times `unit`, read exactly: `12`, or `1.5`. None if it has more than 64 bits, or is no
/// whole number.
///
/// ```
/// assert_eq!(warmq_units::times("1.5", 1_000), Some(1_500));
/// assert_eq!(warmq_units::times("0.0001", 1_000), None);
/// ```
pub fn times(number: &str, unit: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let parts = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = u128::from(part.parse::<u64>().ok()?) * u128::from(unit);
    let exact = part.is_multiple_of(u128::from(parts));
    let part = u64::try_from(part / u128::from(parts)).ok()?;
    exact.then(|| whole.checked_add(part))?
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
