//! The verdict on a mode compared with plain.

use serde::Serialize;

use super::spread::Spread;

/// The fewest rounds for a verdict. Five rounds all fall on one side by chance in one case of 16,
/// six rounds in one of 32.
pub const FEWEST_ROUNDS: usize = 6;

/// The smallest difference that is reported: one percent of the speed.
const WORTH_A_WORD: f64 = 0.01;

/// How often the interval may miss the true median: 1 in 20.
const MAY_MISS: f64 = 0.05;

/// The verdict on a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster, by more than chance explains.
    Pays,
    /// Slower, by more than chance explains.
    DoesNotPay,
    /// The rounds do not agree on which is faster.
    WithinTheSpread,
    /// The rounds agree, on less than one percent.
    TooSmall,
    /// No scheduler heard the hints, so it is a second plain run.
    NotHeard,
    /// Fewer than [`FEWEST_ROUNDS`] rounds.
    TooFewRounds,
}

/// The speed of a mode as a multiple of another's, round by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The ratios of the rounds: above 1 is faster.
    pub speed: Spread,
    /// Where the true median lies, at about 95 %; see [`Against::of`].
    pub interval: (f64, f64),
    /// The verdict.
    pub verdict: Verdict,
}

impl Against {
    /// Computed from one ratio per round. `None` if there is no round.
    ///
    /// The interval is that of the sign test, which assumes nothing about the distribution: of
    /// `n` ratios, each lies below the true median with probability 1/2, so that
    ///
    /// ```text
    ///     P(the median lies outside of [x_k, x_(n+1-k)]) = 2 * P(Binomial(n, 1/2) < k)
    /// ```
    ///
    /// and `k` is the largest rank for which that is at most 5 %; 1 where there is none, below six
    /// rounds.
    pub fn of(ratios: &[f64]) -> Option<Against> {
        let speed = Spread::of(ratios)?;
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = rank(sorted.len());
        let interval = (sorted[rank - 1], sorted[sorted.len() - rank]);
        Some(Against {
            speed,
            interval,
            verdict: verdict(ratios.len(), speed.median, interval),
        })
    }
}

fn verdict(rounds: usize, median: f64, (low, high): (f64, f64)) -> Verdict {
    if rounds < FEWEST_ROUNDS {
        Verdict::TooFewRounds
    } else if low <= 1.0 && high >= 1.0 {
        Verdict::WithinTheSpread
    } else if (median - 1.0).abs() < WORTH_A_WORD {
        Verdict::TooSmall
    } else if low > 1.0 {
        Verdict::Pays
    } else {
        Verdict::DoesNotPay
    }
}

/// The rank `k` of [`Against::of`], from 1 on.
fn rank(rounds: usize) -> usize {
    // Binomial coefficients over 2^n, one after the other; all are far above the least float for
    // the rounds that settings allow.
    let mut term = 0.5_f64.powi(rounds as i32);
    let mut below = term;
    let mut rank = 0;
    while 2.0 * below <= MAY_MISS && rank < rounds.div_ceil(2) {
        rank += 1;
        term *= (rounds + 1 - rank) as f64 / rank as f64;
        below += term;
    }
    rank.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables_of_the_sign_test() {
        let ranks = [1, 2, 5, 6, 8, 9, 10, 15, 20, 25, 30, 50, 100].map(rank);
        assert_eq!(ranks, [1, 1, 1, 1, 1, 2, 2, 4, 6, 8, 10, 18, 40]);
    }

    #[test]
    fn what_is_said_follows_from_the_rounds_alone() {
        let said = |ratios: &[f64]| Against::of(ratios).unwrap().verdict;
        assert_eq!(said(&[1.2, 1.3, 1.25, 1.31, 1.22, 1.2]), Verdict::Pays);
        assert_eq!(
            said(&[0.9, 0.93, 0.95, 0.91, 0.92, 0.9]),
            Verdict::DoesNotPay
        );
        assert_eq!(
            said(&[0.9, 1.1, 1.2, 1.2, 1.2, 1.2]),
            Verdict::WithinTheSpread
        );
        assert_eq!(
            said(&[1.001, 1.002, 1.003, 1.001, 1.004, 1.002]),
            Verdict::TooSmall
        );
        assert_eq!(said(&[2.0, 2.0, 2.0, 2.0, 2.0]), Verdict::TooFewRounds);
        assert_eq!(Against::of(&[]), None);
    }

    #[test]
    fn one_wild_round_among_nine_does_not_change_what_is_said() {
        let mut ratios = vec![1.2; 8];
        ratios.push(0.5);
        assert_eq!(Against::of(&ratios).unwrap().verdict, Verdict::Pays);
        ratios.push(0.5);
        let two_of_ten = Against::of(&ratios).unwrap().verdict;
        assert_eq!(two_of_ten, Verdict::WithinTheSpread);
    }
}
