//! Figures as people read them.

/// A figure of ours: three significant digits, whole from 1000 on, with commas between thousands;
/// a percentage has one digit after the point. A figure that is not finite is a dash.
pub(crate) fn ours(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        _ if unit == "%" && value.abs() >= 0.095 => 1,
        size if size >= 99.95 => 0,
        // 1 for 10 up to 100, 2 for 1 up to 10, and so on down.
        size => (2 - magnitude(size)).clamp(0, 12) as usize,
    };
    commas(&without_negative_zero(format!("{value:.decimals$}")))
}

/// A published figure, with the digits that were printed; a percentage has one after the point.
pub(crate) fn published(value: f64, unit: &str) -> String {
    if unit == "%" && value.is_finite() && value.fract() == 0.0 {
        commas(&format!("{value:.1}"))
    } else {
        exact(value)
    }
}

/// A number in full, with commas between thousands.
pub(crate) fn exact(value: f64) -> String {
    if value.is_finite() {
        commas(&value.to_string())
    } else {
        "–".into()
    }
}

/// Ours over published: `×0.95`.
pub(crate) fn ratio(ratio: f64) -> String {
    let decimals = usize::from(ratio.abs() < 9.995) + usize::from(ratio.abs() < 99.95);
    format!("×{ratio:.decimals$}")
}

/// A difference in percentage points: `+2.1 pp`.
pub(crate) fn points(difference: f64) -> String {
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{:.1} pp", difference.abs())
}

/// The place of the first digit: 0 for 1 up to 10, after rounding to three digits.
fn magnitude(size: f64) -> i32 {
    (size * 1.0005).log10().floor() as i32
}

fn without_negative_zero(text: String) -> String {
    let is_zero = text.starts_with('-') && !text.contains(|digit| matches!(digit, '1'..='9'));
    if is_zero { text[1..].into() } else { text }
}

/// Puts commas between the thousands and a true minus sign in front.
fn commas(text: &str) -> String {
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text), |digits| ("−", digits));
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::with_capacity(text.len() + whole.len() / 3);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough_for_a_table() {
        let table = [
            (0.0, "us", "0"),
            (42.0, "us", "42.0"),
            (1.2345, "us", "1.23"),
            (0.012345, "us", "0.0123"),
            (9.999, "us", "10.0"),
            (99.96, "us", "100"),
            (123.4, "us", "123"),
            (1_234_567.8, "requests/s", "1,234,568"),
            (-1234.0, "us", "−1,234"),
            (99.54, "%", "99.5"),
            (8.24, "%", "8.2"),
            (0.031, "%", "0.0310"),
            (f64::NAN, "%", "–"),
            (f64::INFINITY, "us", "–"),
        ];
        for (value, unit, text) in table {
            assert_eq!(ours(value, unit), text, "{value} {unit}");
        }
    }

    #[test]
    fn a_published_figure_keeps_its_digits() {
        assert_eq!([42.0, 8.25, 2400.0].map(exact), ["42", "8.25", "2,400"]);
        assert_eq!(
            [98.0, 8.25].map(|value| published(value, "%")),
            ["98.0", "8.25"]
        );
    }

    #[test]
    fn ratios_and_differences_carry_their_sign() {
        assert_eq!(
            [0.951, 1.0, 12.34, 250.0].map(ratio),
            ["×0.95", "×1.00", "×12.3", "×250"]
        );
        assert_eq!([2.06, -0.94].map(points), ["+2.1 pp", "−0.9 pp"]);
    }
}
