//! Figures as people read them.

use warmq_units::Duration;

const PS_PER_US: u64 = 1_000_000;

/// Three digits and a unit: `4.02 s`, `12.3 ms`, `850 us`.
pub fn span(span: Duration) -> String {
    let units = [(PS_PER_US * 1_000_000, "s"), (PS_PER_US * 1_000, "ms")];
    let large = units.into_iter().find(|(unit, _)| span.0 >= *unit);
    let (unit, name) = large.unwrap_or((PS_PER_US, "us"));
    let (whole, hundredths) = (span.0 / unit, span.0 % unit * 100 / unit);
    match whole {
        0..10 => format!("{whole}.{hundredths:02} {name}"),
        10..100 => format!("{whole}.{} {name}", hundredths / 10),
        _ => format!("{} {name}", count(whole)),
    }
}

/// A share in thousandths: `89 %`, and with a digit after the point where it is small: `0.4 %`.
pub(crate) fn share(thousandths: u64) -> String {
    match thousandths {
        0 => "0 %".to_owned(),
        1..100 => format!("{}.{} %", thousandths / 10, thousandths % 10),
        _ => format!("{} %", thousandths / 10),
    }
}

/// With commas between thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How often in a second.
pub(crate) fn rate(times: u64, period: Duration) -> u64 {
    let ms = (period.0 / (PS_PER_US * 1_000)).max(1);
    times.saturating_mul(1_000) / ms
}

/// `part` of `whole` in thousandths; of nothing, nothing.
pub(crate) fn thousandths(part: Duration, whole: Duration) -> u64 {
    match whole.0 {
        0 => 0,
        whole => (u128::from(part.0) * 1_000 / u128::from(whole)) as u64,
    }
}

/// So many thousandths of `whole`.
pub(crate) fn part(whole: Duration, thousandths: u64) -> Duration {
    Duration((u128::from(whole.0) * u128::from(thousandths) / 1_000) as u64)
}

/// `a`, `a and b`, `a, b and 3 more`.
pub(crate) fn list(names: &[String], most: usize) -> String {
    let shown = names.len().min(most);
    match (names.len() - shown, &names[..shown]) {
        (0, []) => String::new(),
        (0, [only]) => only.clone(),
        (0, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (more, shown) => format!("{} and {} more", shown.join(", "), count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let spans = [3, 850_000, 12_345_678, 999_999_999, 4_020_000_000];
        let shown = spans.map(|ns| span(Duration::from_ns(ns)));
        assert_eq!(shown, ["0.00 us", "850 us", "12.3 ms", "999 ms", "4.02 s"]);
        assert_eq!(
            [0, 4, 42, 890].map(share),
            ["0 %", "0.4 %", "4.2 %", "89 %"]
        );
        assert_eq!(
            [7, 999, 1_000, 1_234_567].map(count),
            ["7", "999", "1,000", "1,234,567"]
        );
        assert_eq!(rate(500, Duration::from_ms(500)), 1_000);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(list(&names[..1], 2), "a");
        assert_eq!(list(&names, 3), "a, b and c");
        assert_eq!(list(&names, 2), "a, b and 1 more");
    }
}
