//! How close a simulated figure is to the published one, and how close is close enough.

use serde::Serialize;

use crate::Row;

/// How far the simulated figure may be from the published one and still count as reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Up to this many times larger or smaller; more than 1.
    Factor(f64),
    /// Up to this much above or below, in the unit of the row: percentage points for a `%`.
    Difference(f64),
}

/// Ours against the published figure of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Whether the simulated figure is within the tolerance.
    pub within: bool,
    /// How far off, as a share of what is allowed: 1 is the limit, 0 is exact, infinite when the
    /// signs differ under a factor.
    pub distance: f64,
}

impl Tolerance {
    /// The tolerance of a metric that names none: 10 percentage points for a miss ratio or a gain
    /// in `%`, a factor of 1.5 for everything else.
    ///
    /// Contention is a percentage too, yet gets the factor: ten points would forgive a
    /// contention of 2 % any value up to 12 %.
    pub fn usual(metric: &str, unit: &str) -> Tolerance {
        if unit == "%" && !metric.contains("contention") {
            Tolerance::Difference(10.0)
        } else {
            Tolerance::Factor(1.5)
        }
    }

    /// Compares ours with the published figure.
    pub fn judge(self, ours: f64, published: f64) -> Agreement {
        let distance = match self {
            Tolerance::Difference(limit) => (ours - published).abs() / limit,
            Tolerance::Factor(_) if ours == published => 0.0,
            Tolerance::Factor(_) if ours * published <= 0.0 => f64::INFINITY,
            Tolerance::Factor(limit) => (ours / published).ln().abs() / limit.ln(),
        };
        let distance = if distance.is_nan() {
            f64::INFINITY
        } else {
            distance
        };
        // A cell right at the limit counts; logarithms may miss it by a rounding.
        Agreement {
            within: distance <= 1.0 + 1e-9,
            distance,
        }
    }
}

impl Row {
    /// Ours against published under `tolerance`; none without a published figure.
    pub fn agreement(&self, tolerance: Tolerance) -> Option<Agreement> {
        self.published
            .map(|published| tolerance.judge(self.value, published))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_within_up_to_and_including_the_limit() {
        let table = [
            (Tolerance::Factor(1.5), 15.0, 10.0, true),
            (Tolerance::Factor(1.5), 10.0, 15.0, true),
            (Tolerance::Factor(1.5), 15.2, 10.0, false),
            (Tolerance::Factor(1.5), 6.5, 10.0, false),
            (Tolerance::Factor(1.5), 0.0, 0.0, true),
            (Tolerance::Factor(1.5), 0.0, 10.0, false),
            (Tolerance::Factor(1.5), -3.0, 3.0, false),
            (Tolerance::Difference(10.0), 92.7, 82.7, true),
            (Tolerance::Difference(10.0), 72.6, 82.7, false),
            (Tolerance::Difference(10.0), 1.0, -3.0, true),
            (Tolerance::Difference(10.0), f64::NAN, 5.0, false),
        ];
        for (tolerance, ours, published, within) in table {
            let agreement = tolerance.judge(ours, published);
            assert_eq!(
                agreement.within, within,
                "{tolerance:?}: {ours} against {published}"
            );
        }
    }

    #[test]
    fn contention_gets_no_ten_points() {
        assert_eq!(
            Tolerance::usual("lock_contention", "%"),
            Tolerance::Factor(1.5)
        );
        assert_eq!(
            Tolerance::usual("walk_miss_ratio", "%"),
            Tolerance::Difference(10.0)
        );
        assert_eq!(
            Tolerance::usual("lock_hold_mean", "us"),
            Tolerance::Factor(1.5)
        );
    }
}
