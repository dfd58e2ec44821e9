//! What the translation of addresses adds to a load.

use serde::Serialize;
use warmq_units::Bytes;

/// What a load pays for the translation of its address when so many small pages are visited in
/// turn, all the same distance apart: the reach of the TLBs and the price of a page walk, as a
/// table of measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Translation {
    /// Distance between the pages in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub stride: Bytes,
    /// (pages, ns a load), ascending.
    pub table: Vec<(u64, f64)>,
}

impl Translation {
    /// What a load pays when `pages` pages are visited in turn: between the two measured points
    /// around it, on a scale of logarithms; outside of them the nearest.
    pub fn ns(&self, pages: u64) -> f64 {
        let above = self
            .table
            .partition_point(|(measured, _)| *measured < pages);
        match (
            above.checked_sub(1).map(|below| self.table[below]),
            self.table.get(above).copied(),
        ) {
            (None, None) => 0.0,
            (None, Some((_, ns))) | (Some((_, ns)), None) => ns,
            (Some((low, low_ns)), Some((high, high_ns))) => {
                let log = |pages: u64| (pages as f64).log2();
                let share = (log(pages) - log(low)) / (log(high) - log(low));
                low_ns + (high_ns - low_ns) * share
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_between_two_measured_points_lies_between_theirs() {
        let table = vec![(64, 0.0), (256, 2.0), (1024, 10.0)];
        let translation = Translation {
            stride: Bytes(4096),
            table,
        };
        let prices = [1, 64, 128, 256, 512, 1024, 5000].map(|pages| translation.ns(pages));
        assert_eq!(prices, [0.0, 0.0, 1.0, 2.0, 6.0, 10.0, 10.0]);
        let nothing = Translation {
            stride: Bytes(4096),
            table: vec![],
        };
        assert_eq!(nothing.ns(7), 0.0);
    }
}
