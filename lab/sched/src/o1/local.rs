//! Local thresholds: a `network_min_sleep` for each task, estimated while it runs.
//!
//! The thesis proposes a threshold for each network task that is not interactive and leaves it
//! untested. Its recipe looks at the sleeps of a task over all packet rates beforehand, and takes
//! the smallest value that about 90 % of them fall below. Here the sleeps are those of a sliding
//! window, so that the threshold follows the rate. What is looked at is what a threshold is
//! compared with: the weighted sleep in whole milliseconds, credited waits among them, or the sleep
//! as it is.
//!
//! A kernel cannot know which network tasks serve a person. Every task has a threshold whose last
//! sleep was one for data on a socket, a telephone as well as a download.

use std::collections::{BTreeMap, VecDeque};

/// How thresholds are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    /// The share of sleeps that should fall below the threshold, in percent.
    pub(super) percentile: u64,
    /// How many sleeps are looked at.
    pub(super) window: usize,
}

/// The recent sleeps of a task, in whole ms.
///
/// Invariant: `counts` says how often each value occurs in `recent`.
#[derive(Clone, Debug, Default)]
pub(super) struct Sleeps {
    recent: VecDeque<u64>,
    counts: BTreeMap<u64, usize>,
}

impl Sleeps {
    /// Adds a sleep; the oldest leaves a full window.
    pub(super) fn add(&mut self, estimate: Estimate, ms: u64) {
        self.recent.push_back(ms);
        *self.counts.entry(ms).or_default() += 1;
        while self.recent.len() > estimate.window {
            let Some(oldest) = self.recent.pop_front() else {
                return;
            };
            if let Some(count) = self.counts.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&oldest);
                }
            }
        }
    }

    /// The smallest value below which the percentile of the sleeps fall, in ms; 0 if there are
    /// none.
    pub(super) fn threshold(&self, estimate: Estimate) -> u64 {
        let wanted = self.recent.len() as u64 * estimate.percentile;
        let mut below = 0;
        for (ms, count) in &self.counts {
            below += *count as u64;
            if below * 100 >= wanted {
                return ms + 1;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(estimate: Estimate, sleeps: &[u64]) -> u64 {
        let mut recent = Sleeps::default();
        sleeps.iter().for_each(|ms| recent.add(estimate, *ms));
        recent.threshold(estimate)
    }

    #[test]
    fn the_threshold_is_the_smallest_value_that_the_percentile_falls_below() {
        let estimate = |percentile| Estimate {
            percentile,
            window: 10,
        };
        let nine_short = [4, 4, 4, 4, 4, 8, 8, 8, 8, 100];
        let table = [(40, 5), (50, 5), (51, 9), (90, 9), (91, 101), (100, 101)];
        for (percentile, ms) in table {
            assert_eq!(
                after(estimate(percentile), &nine_short),
                ms,
                "{percentile} %"
            );
        }
        assert_eq!(after(estimate(90), &[]), 0);
    }

    #[test]
    fn the_window_slides() {
        let estimate = Estimate {
            percentile: 90,
            window: 3,
        };
        assert_eq!(after(estimate, &[100, 100, 100, 4, 4]), 101);
        assert_eq!(after(estimate, &[100, 100, 100, 4, 4, 4]), 5);
    }
}
