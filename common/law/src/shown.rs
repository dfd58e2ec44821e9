//! Figures and bounds as people read them.

use crate::law::{Bound, Limit, Side};

/// A figure.
pub fn value(value: f64, unit: &str) -> String {
    if value.is_nan() {
        return "nothing".to_owned();
    }
    match unit {
        "us" if value >= 10_000.0 => format!("{:.0} ms", value / 1e3),
        "us" if value >= 1_000.0 => format!("{:.1} ms", value / 1e3),
        "us" => format!("{value:.0} us"),
        "%" if value > 0.0 && value < 1.0 => format!("{value:.3} %"),
        "%" => format!("{value:.1} %"),
        "" => format!("{value:.0}"),
        unit => format!("{value:.0} {unit}"),
    }
}

/// What a bound asks for: `hog_share at least 72.0 %`.
pub fn asked(bound: &Bound) -> String {
    let side = match bound.side {
        Side::AtLeast => "at least",
        Side::AtMost => "at most",
    };
    let limit = |limit: &Limit| match limit {
        Limit::Number(number) => value(*number, bound.unit),
        Limit::Of { part, figure } => format!("{:.0} % of {figure}", 100.0 * part),
    };
    let mut asked = format!("{} {side} {}", bound.figure, limit(&bound.limit));
    for (release, other) in &bound.since {
        asked += &format!(" (Linux since {release}: {})", limit(other));
    }
    asked
}
