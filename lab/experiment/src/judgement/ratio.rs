//! A figure of a scheduler over that of the base, and what many such ratios are together.

use crate::judgement::set::{Better, Figure, Margins};
use crate::judgement::welch::half_width;

/// A ratio to the base, above 1 where the scheduler is better, with its spread over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Of the geometric means over all seeds.
    pub mid: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Ratio {
    /// What the base is to itself.
    pub const ONE: Ratio = Ratio {
        mid: 1.0,
        low: 1.0,
        high: 1.0,
    };
}

warmq_units::named! {
    /// How a figure of a scheduler compares with that of the base.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Comparison {
        /// Both have it, and the scheduler's is better beyond chance and margin.
        Better = "better",
        /// Both have it, and with 95 % the ratio is near 1.
        Same = "same",
        /// Both have it, and the scheduler's is worse beyond chance and margin.
        Worse = "worse",
        /// Both have it, and its values vary too much to say.
        Inconclusive = "inconclusive",
        /// Some run of the scheduler does not have it: nothing finished, or the run failed.
        Absent = "absent",
        /// Only the base lacks it.
        OnlyHere = "absent in base",
        /// Both lack it.
        Neither = "absent in both",
    }
}

impl Comparison {
    /// Of the values of all seeds, and the ratio; none where a run does not have the figure.
    pub fn of(
        figure: &Figure,
        values: Option<&[f64]>,
        base: Option<&[f64]>,
        margins: Margins,
    ) -> (Comparison, Option<Ratio>) {
        match (values, base) {
            (Some(values), Some(base)) => {
                let (comparison, ratio) = decided(figure, values, base, margins);
                (comparison, Some(ratio))
            }
            (None, Some(_)) => (Comparison::Absent, None),
            (Some(_), None) => (Comparison::OnlyHere, None),
            (None, None) => (Comparison::Neither, None),
        }
    }

    /// Whether the scheduler lost.
    pub fn is_loss(self) -> bool {
        matches!(self, Comparison::Worse | Comparison::Absent)
    }
}

/// Welch's test at 5 %, on logarithms, because ratios are compared: the interval that has the ratio
/// with 95 % does not have 1. One seed says nothing of chance: then the margin decides alone.
fn decided(figure: &Figure, values: &[f64], base: &[f64], margins: Margins) -> (Comparison, Ratio) {
    let ratio = ratio(figure, values, base);
    let logarithms = |values: &[f64]| -> Vec<f64> {
        let floored = values.iter().map(|value| value.max(figure.floor).ln());
        floored.collect()
    };
    let width = half_width(&logarithms(values), &logarithms(base))
        .unwrap_or(0.0)
        .exp();
    let (low, high) = (ratio.mid / width, ratio.mid * width);
    let equal = 1.0 - margins.equal;
    let comparison = match ratio.mid {
        mid if high < 1.0 && mid < 1.0 - margins.difference => Comparison::Worse,
        mid if low > 1.0 && mid > 1.0 / (1.0 - margins.difference) => Comparison::Better,
        _ if low >= equal && high <= 1.0 / equal => Comparison::Same,
        _ => Comparison::Inconclusive,
    };
    (comparison, ratio)
}

/// How much better `value` is than `base`. Both count as the floor where they are below it, so that
/// zeros and what nobody notices give no ratio but 1.
pub fn of_values(figure: &Figure, value: f64, base: f64) -> f64 {
    let (value, base) = (value.max(figure.floor), base.max(figure.floor));
    match figure.better {
        Better::Higher => value / base,
        Better::Lower => base / value,
    }
}

/// The spread is that of every seed of the scheduler over every seed of the base: seeds of two
/// schedulers have nothing in common but the workload's random numbers.
fn ratio(figure: &Figure, values: &[f64], base: &[f64]) -> Ratio {
    let each = values.iter().flat_map(|value| {
        let over = move |base: &f64| of_values(figure, *value, *base);
        base.iter().map(over)
    });
    let each: Vec<f64> = each.collect();
    Ratio {
        mid: mean(each.iter().copied()).unwrap_or(1.0),
        low: each.iter().copied().fold(f64::INFINITY, f64::min),
        high: each.iter().copied().fold(0.0, f64::max),
    }
}

/// The geometric mean; none of nothing.
pub fn mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = ratios.fold((0.0, 0u32), |(sum, count), ratio| {
        (sum + ratio.ln(), count + 1)
    });
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::judgement::set::Family;

    const MARGINS: Margins = Margins {
        difference: 0.02,
        equal: 0.1,
    };

    fn figure(better: Better) -> Figure {
        Figure {
            name: "key_p99".to_owned(),
            family: Family::Latency,
            better,
            floor: 10.0,
        }
    }

    #[test]
    fn above_one_is_better_whatever_the_direction() {
        let table = [
            (Better::Higher, [20.0, 21.0], [10.0, 10.5], "better"),
            (Better::Lower, [20.0, 21.0], [10.0, 10.5], "worse"),
            (Better::Lower, [20.0, 25.0], [10.0, 20.0], "inconclusive"),
            (Better::Lower, [20.0, 40.0], [30.0, 31.0], "inconclusive"),
            (Better::Higher, [100.0, 100.0], [101.0, 101.0], "same"),
            (Better::Lower, [0.0, 9.0], [1.0, 2.0], "same"),
            (Better::Lower, [0.0, 0.0], [40.0, 40.0], "better"),
            (Better::Higher, [0.0, 0.0], [40.0, 40.0], "worse"),
        ];
        for (better, values, base, word) in table {
            let figure = figure(better);
            let found = Comparison::of(&figure, Some(&values), Some(&base), MARGINS);
            assert_eq!(found.0.name(), word, "{better:?} {values:?} {base:?}");
        }
    }

    #[test]
    fn what_is_absent_has_its_own_word() {
        let (figure, some) = (figure(Better::Lower), &[20.0][..]);
        let word = |values, base| Comparison::of(&figure, values, base, MARGINS).0.name();
        assert_eq!(word(Some(some), Some(&[10.0])), "worse");
        assert_eq!(word(None, Some(some)), "absent");
        assert_eq!(word(Some(some), None), "absent in base");
        assert_eq!(word(None, None), "absent in both");
        assert!(Comparison::Absent.is_loss() && !Comparison::Neither.is_loss());
    }

    proptest! {
        #[test]
        fn who_is_better_is_worse_the_other_way_round(
            values in prop::collection::vec(0.0..1e6f64, 1..5),
            base in prop::collection::vec(0.0..1e6f64, 1..5),
        ) {
            let figure = figure(Better::Lower);
            let there = ratio(&figure, &values, &base);
            let back = ratio(&figure, &base, &values);
            prop_assert!(there.low <= there.mid * 1.000_001 && there.mid <= there.high * 1.000_001);
            prop_assert!((there.mid * back.mid - 1.0).abs() < 1e-9);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
        }
    }
}
