//! Median and quartiles of repeated measurements.

use serde::Serialize;

/// Where repeated measurements of one quantity lie.
///
/// Invariant: `min <= low <= median <= high <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The fastest.
    pub min: f64,
    /// The lower quartile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub high: f64,
    /// The slowest.
    pub max: f64,
}

impl Spread {
    /// The spread of `samples`, between whose ranks it interpolates. `None` for no samples.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share));
        Some(Spread {
            min,
            low,
            median,
            high,
            max,
        })
    }
}

/// The value below which `share` of `sorted` lie, interpolated between the two nearest ranks.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (rank - below as f64)
}
