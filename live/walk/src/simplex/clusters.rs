//! Whether repetitions lie in one place or in several.

use serde::Serialize;

/// Repetitions that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// How many.
    pub count: usize,
    /// The least of them.
    pub min: f64,
    /// The middle one; of an even number the lower.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

/// Parts `values` wherever two neighbours are more than `gap` apart; lowest first.
pub fn clusters(values: &[f64], gap: f64) -> Vec<Cluster> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let together = |low: &f64, high: &f64| high - low <= gap;
    sorted.chunk_by(together).map(cluster).collect()
}

/// Of sorted values, at least one.
fn cluster(sorted: &[f64]) -> Cluster {
    Cluster {
        count: sorted.len(),
        min: sorted[0],
        median: sorted[(sorted.len() - 1) / 2],
        max: sorted[sorted.len() - 1],
    }
}

/// How many of `values` lie in each of `bins` equal parts of `from`..=`to`; what lies outside is
/// counted at the nearer end.
pub fn histogram(values: &[f64], bins: usize, (from, to): (f64, f64)) -> Vec<usize> {
    let mut counts = vec![0; bins];
    for value in values {
        let place = (value - from) / (to - from) * bins as f64;
        // A float becomes the nearest integer that there is: below 0 is 0.
        if let Some(last) = bins.checked_sub(1) {
            counts[(place as usize).min(last)] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_ways_to_behave_are_two_clusters() {
        let found = clusters(&[0.98, 0.70, 0.97, 0.71, 0.99], 0.1);
        let told: Vec<_> = found.iter().map(|it| (it.count, it.median)).collect();
        assert_eq!(told, [(2, 0.70), (3, 0.98)]);
        assert_eq!(clusters(&[], 0.1), []);
    }

    #[test]
    fn both_ends_are_in_the_histogram() {
        assert_eq!(
            histogram(&[0.0, 0.49, 0.5, 1.0, 1.2, -3.0], 2, (0.0, 1.0)),
            [3, 3]
        );
        assert_eq!(histogram(&[1.0], 0, (0.0, 1.0)), Vec::<usize>::new());
    }

    proptest! {
        #[test]
        fn every_repetition_is_in_one_cluster_and_in_one_bin(
            values in prop::collection::vec(-1.0..2.0_f64, 0..50), gap in 0.0..1.0_f64, bins in 1_usize..20
        ) {
            let found = clusters(&values, gap);
            prop_assert_eq!(found.iter().map(|it| it.count).sum::<usize>(), values.len());
            for pair in found.windows(2) {
                prop_assert!(pair[1].min - pair[0].max > gap);
            }
            let counts = histogram(&values, bins, (0.0, 1.0));
            prop_assert_eq!(counts.iter().sum::<usize>(), values.len());
        }
    }
}
