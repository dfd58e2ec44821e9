//! How far the online algorithm is from the optimum: on one instance, and on many.

use crate::model::Instance;
use crate::online::{Policy, online};
use crate::optimum::{Optimum, TooLarge, optimum};
use crate::random::{Shape, draw};

/// When each way is done with one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The seed of the instance.
    pub seed: u64,
    /// The online algorithm.
    pub online: u64,
    /// The best that splits no bin.
    pub whole_bins: u64,
    /// The best of all.
    pub optimum: u64,
    /// Whether the online algorithm split a group.
    pub split: bool,
}

/// A figure of a gap, in tenths of a percent.
pub type Figure = fn(&Gap) -> u64;

impl Gap {
    /// Measures `instance`, which `seed` made, under the usual policy.
    ///
    /// # Errors
    /// The instance is too large.
    pub fn of(instance: &Instance, seed: u64) -> Result<Gap, TooLarge> {
        let quiet = &mut |_, _| {};
        let online = online(instance, &Policy::usual(instance));
        Ok(Gap {
            seed,
            online: online.schedule.end(),
            whole_bins: optimum(instance, Optimum::WholeBins, quiet)?.end,
            optimum: optimum(instance, Optimum::SplitBins, quiet)?.end,
            split: online.counts.splits > 0,
        })
    }

    /// By how many tenths of a percent the online algorithm ends after the optimum, rounded up: 0
    /// means that it is optimal.
    pub fn online_permille(&self) -> u64 {
        beyond(self.online, self.optimum)
    }

    /// By how many tenths of a percent the best with whole bins ends after the optimum.
    pub fn whole_bins_permille(&self) -> u64 {
        beyond(self.whole_bins, self.optimum)
    }
}

/// By how many thousandths of `least` is `end` beyond it, rounded up?
fn beyond(end: u64, least: u64) -> u64 {
    let thousandths = u128::from(end - least) * 1000;
    thousandths.div_ceil(u128::from(least)) as u64
}

/// The gaps of many instances; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// In the order of their seeds.
    pub all: Vec<Gap>,
}

impl Gaps {
    /// Those of `count` instances of `shape`, of which the first has the seed `first`; `seen`
    /// learns how many are solved.
    ///
    /// # Errors
    /// The seed of an instance that is too large.
    pub fn of(
        shape: &Shape,
        first: u64,
        count: u64,
        seen: &mut dyn FnMut(usize),
    ) -> Result<Gaps, (u64, TooLarge)> {
        let mut all = Vec::new();
        for seed in (0..count).map(|index| first.wrapping_add(index)) {
            let gap = Gap::of(&draw(shape, seed), seed).map_err(|error| (seed, error))?;
            all.push(gap);
            seen(all.len());
        }
        Ok(Gaps { all })
    }

    /// The instance on which the online algorithm is worst, of several the one with the lowest
    /// seed.
    pub fn worst(&self) -> &Gap {
        let worst = self
            .all
            .iter()
            .rev()
            .max_by_key(|gap| gap.online_permille());
        worst.expect("there is an instance")
    }

    /// How many instances have a `figure` of at most `most`.
    pub fn at_most(&self, figure: Figure, most: u64) -> usize {
        self.all.iter().filter(|gap| figure(gap) <= most).count()
    }

    /// The `figure` that `percent` of all instances do not exceed (the nearest rank).
    pub fn percentile(&self, figure: Figure, percent: u64) -> u64 {
        let mut figures: Vec<u64> = self.all.iter().map(figure).collect();
        figures.sort_unstable();
        let rank = (figures.len() as u64 * percent).div_ceil(100).max(1);
        figures[rank as usize - 1]
    }

    /// The mean of `figure`, rounded down.
    pub fn mean(&self, figure: Figure) -> u64 {
        let sum: u64 = self.all.iter().map(figure).sum();
        sum / self.all.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(seed: u64, online: u64, optimum: u64) -> Gap {
        Gap {
            seed,
            online,
            optimum,
            whole_bins: optimum,
            split: false,
        }
    }

    #[test]
    fn gaps_are_rounded_up_so_that_nothing_is_called_optimal_that_is_not() {
        assert_eq!(gap(1, 14, 14).online_permille(), 0);
        assert_eq!(gap(1, 3001, 3000).online_permille(), 1);
        assert_eq!(gap(1, 22, 14).online_permille(), 572);
    }

    #[test]
    fn a_distribution_has_percentiles_by_rank_and_a_worst_case() {
        let all = (0..10)
            .map(|number| gap(number, 10 + number.min(8), 10))
            .collect();
        let gaps = Gaps { all };
        let figure = Gap::online_permille;
        assert_eq!(gaps.percentile(figure, 50), 400);
        assert_eq!(gaps.percentile(figure, 100), 800);
        assert_eq!(gaps.percentile(figure, 1), 0);
        assert_eq!(gaps.at_most(figure, 100), 2);
        assert_eq!(gaps.mean(figure), 440);
        assert_eq!(gaps.worst().seed, 8);
    }
}
