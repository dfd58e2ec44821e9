//! Computes the measures of an experiment from its runs: seed by seed, then over the seeds.

use std::collections::BTreeMap;

use crate::experiment::{Compare, Experiment, HistogramRead, How, Measure, OverSeeds, Take};
use crate::point::Point;
use crate::run::{Options, Runs};
use crate::simulator::{Measured, RunError};

/// Every measure at every point for which all runs exist: one value per seed.
///
/// NaN if a run failed or gave no such figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    cells: BTreeMap<String, BTreeMap<Point, Vec<f64>>>,
}

/// A figure over the seeds. All NaN if that of any seed is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The median; of an even number, the mean of the middle two.
    pub(crate) value: f64,
    /// The smallest value.
    pub(crate) low: f64,
    /// The largest value.
    pub(crate) high: f64,
}

impl Spread {
    /// The median, with the range as the interval: three to five seeds do not justify a narrower
    /// one.
    pub(crate) fn of(values: &[f64]) -> Spread {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return Spread {
                value: f64::NAN,
                low: f64::NAN,
                high: f64::NAN,
            };
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (lower, upper) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let value = if lower == upper {
            lower
        } else {
            lower + (upper - lower) / 2.0
        };
        Spread {
            value,
            low: sorted[0],
            high: sorted[sorted.len() - 1],
        }
    }
}

impl Figures {
    /// Computes all measures of `experiment` from `runs`.
    pub(crate) fn of(experiment: &Experiment, options: &Options, runs: &Runs) -> Figures {
        let mut figures = Figures::default();
        for measure in experiment.measures.iter() {
            let cells = figures.cells_of(measure, experiment, options, runs);
            figures.cells.insert(measure.name.clone(), cells);
        }
        figures
    }

    /// The measure at a point, over the seeds; `None` if it was not run.
    pub(crate) fn at(&self, measure: &str, point: &Point) -> Option<Spread> {
        self.seeds_at(measure, point)
            .map(|values| Spread::of(values))
    }

    fn seeds_at(&self, measure: &str, point: &Point) -> Option<&Vec<f64>> {
        self.cells.get(measure)?.get(point)
    }

    fn cells_of(
        &self,
        measure: &Measure,
        experiment: &Experiment,
        options: &Options,
        runs: &Runs,
    ) -> BTreeMap<Point, Vec<f64>> {
        let mut cells = BTreeMap::new();
        for point in &measure.domain {
            let values = match &measure.how {
                How::Figure | How::Histogram { .. } => {
                    from_runs(measure, point, experiment, options, runs)
                }
                How::Relative { of, base, compare } => self.compared(of, point, base, *compare),
                How::Scaled {
                    of,
                    times,
                    each,
                    over,
                } => self.scaled(of, point, *times, each, *over),
                How::OverSeeds { of, take } => {
                    let values = self.seeds_at(of, point);
                    values.map(|values| vec![over_seeds(values, *take); values.len()])
                }
                How::Along { of, key, take } => self.taken(of, point, key, *take, experiment),
            };
            cells.extend(values.map(|values| (point.clone(), values)));
        }
        cells
    }

    fn compared(&self, of: &str, at: &Point, base: &Point, how: Compare) -> Option<Vec<f64>> {
        let here = self.seeds_at(of, at)?;
        let there = self.seeds_at(of, &at.moved(base))?;
        let compare = |(value, base): (&f64, &f64)| match how {
            Compare::Percent => (value / base - 1.0) * 100.0,
            Compare::Ratio => value / base,
            Compare::Difference => value - base,
        };
        let finite = |value: f64| if value.is_finite() { value } else { f64::NAN };
        Some(here.iter().zip(there).map(compare).map(finite).collect())
    }

    fn scaled(
        &self,
        of: &str,
        at: &Point,
        times: f64,
        each: &[String],
        over: bool,
    ) -> Option<Vec<f64>> {
        let number = |key: &String| at.0.get(key).and_then(|value| value.number());
        let factors = each.iter().map(|key| number(key).unwrap_or(f64::NAN));
        let factor = times * factors.product::<f64>();
        let scale = |value: &f64| match over {
            true => factor / value,
            false => factor * value,
        };
        let finite = |value: f64| if value.is_finite() { value } else { f64::NAN };
        let values = self.seeds_at(of, at)?.iter();
        Some(values.map(scale).map(finite).collect())
    }

    /// Only if every point along the key was run: the peak of some points need not be that of all.
    fn taken(
        &self,
        of: &str,
        group: &Point,
        key: &str,
        take: Take,
        experiment: &Experiment,
    ) -> Option<Vec<f64>> {
        let parent = experiment.measure(of)?;
        let along = parent.domain.iter().filter(|point| point.is_at(group));
        let along: Vec<&Point> = along.collect();
        let places: Vec<f64> = along
            .iter()
            .map(|point| {
                point
                    .0
                    .get(key)
                    .and_then(|value| value.number())
                    .unwrap_or(f64::NAN)
            })
            .collect();
        let columns: Vec<&Vec<f64>> = along
            .iter()
            .map(|point| self.seeds_at(of, point))
            .collect::<Option<_>>()?;
        let seeds = columns.first()?.len();
        let of_seed = |seed: usize| {
            let values: Vec<f64> = columns.iter().map(|column| column[seed]).collect();
            take_from(&places, &values, take)
        };
        Some((0..seeds).map(of_seed).collect())
    }
}

/// NaN if any value is.
fn over_seeds(values: &[f64], take: OverSeeds) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let Spread { low, high, .. } = Spread::of(values);
    match take {
        OverSeeds::Mean => mean,
        OverSeeds::Spread => 100.0 * (high - low) / mean,
    }
}

fn from_runs(
    measure: &Measure,
    point: &Point,
    experiment: &Experiment,
    options: &Options,
    runs: &Runs,
) -> Option<Vec<f64>> {
    let extent = experiment.extent(options);
    let mut values = Vec::new();
    for seed in &extent.seeds {
        let result = runs.0.get(&experiment.parts.plan(point, *seed, &extent))?;
        if result.as_ref().is_err_and(RunError::is_left_out) {
            return None;
        }
        let value = result
            .as_ref()
            .ok()
            .and_then(|measured| of_run(measure, measured));
        values.push(value.unwrap_or(f64::NAN));
    }
    Some(values)
}

/// What `measured` says of a measure of single runs. A run that was collected from elsewhere has
/// no histograms, but what was read off them, under the name of the measure.
fn of_run(measure: &Measure, measured: &Measured) -> Option<f64> {
    match &measure.how {
        How::Histogram { of, read } if measured.histograms.contains_key(of) => {
            read_off(measured.histograms.get(of)?, *read)
        }
        _ => measured.figures.get(&measure.name).copied(),
    }
}

impl Experiment {
    /// The measures that are taken of each run: all but those over others.
    pub fn measures_of_runs(&self) -> impl Iterator<Item = &Measure> {
        let each = |measure: &&Measure| matches!(measure.how, How::Figure | How::Histogram { .. });
        self.measures.iter().filter(each)
    }

    /// These measures of one run, by name; those that the run did not give are left out.
    pub fn figures_of<'e>(&'e self, measured: &Measured) -> Vec<(&'e str, f64)> {
        let of = |measure: &'e Measure| Some((measure.name.as_str(), of_run(measure, measured)?));
        self.measures_of_runs().filter_map(of).collect()
    }
}

fn read_off(bins: &[(f64, f64)], read: HistogramRead) -> Option<f64> {
    let tallest = first_largest(bins.iter().map(|(_, height)| *height))?;
    let (place, height) = bins[tallest];
    let others = bins
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != tallest);
    let next = others.map(|(_, (_, height))| *height).fold(0.0, f64::max);
    let whole: f64 = bins.iter().map(|(_, height)| *height).sum();
    let value = match read {
        HistogramRead::PeakAt => place,
        HistogramRead::PeakShare => height / whole * 100.0,
        HistogramRead::PeakOverNext => height / next,
        HistogramRead::Share { from, to } => {
            let within = |(place, _): &&(f64, f64)| (from as f64..=to as f64).contains(place);
            let heights = bins.iter().filter(within).map(|(_, height)| *height);
            heights.sum::<f64>() / whole * 100.0
        }
    };
    value.is_finite().then_some(value)
}

fn first_largest(values: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in values.enumerate() {
        if best.is_none_or(|(_, height)| value > height) {
            best = Some((index, value));
        }
    }
    best.map(|(index, _)| index)
}

/// `places` and `values` have the same length, at least one, in the order of the key.
fn take_from(places: &[f64], values: &[f64], take: Take) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    match take {
        Take::Largest => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Take::Smallest => values.iter().copied().fold(f64::INFINITY, f64::min),
        Take::PeakAt => first_largest(values.iter().copied()).map_or(f64::NAN, |at| places[at]),
        Take::Needed {
            share,
            lower_is_better,
        } => {
            let sign = if lower_is_better { -1.0 } else { 1.0 };
            let gain = |value: &f64| (value - values[0]) * sign;
            let best = values.iter().map(gain).fold(0.0, f64::max);
            let enough = |value: &f64| gain(value) >= best * share / 100.0;
            values
                .iter()
                .position(enough)
                .map_or(f64::NAN, |at| places[at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_median_and_range() {
        let table: [(&[f64], [f64; 3]); 4] = [
            (&[3.0], [3.0, 3.0, 3.0]),
            (&[9.0, 1.0, 2.0], [2.0, 1.0, 9.0]),
            (&[4.0, 1.0], [2.5, 1.0, 4.0]),
            (&[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]),
        ];
        for (values, [value, low, high]) in table {
            assert_eq!(Spread::of(values), Spread { value, low, high });
        }
        assert!(Spread::of(&[1.0, f64::NAN]).value.is_nan());
        assert!(Spread::of(&[]).low.is_nan());
    }

    #[test]
    fn what_is_taken_over_the_seeds() {
        let values = [4.0, 1.0, 7.0];
        assert_eq!(over_seeds(&values, OverSeeds::Mean), 4.0);
        assert_eq!(over_seeds(&values, OverSeeds::Spread), 150.0);
        for take in [OverSeeds::Mean, OverSeeds::Spread] {
            assert!(over_seeds(&[4.0, f64::NAN], take).is_nan());
        }
    }

    #[test]
    fn what_is_taken_along_a_key() {
        let places = [1.0, 2.0, 4.0, 8.0];
        let needed = |share, lower_is_better| Take::Needed {
            share,
            lower_is_better,
        };
        let table = [
            (Take::Largest, [5.0, 7.0, 7.0, 6.0], 7.0),
            (Take::Smallest, [5.0, 7.0, 7.0, 6.0], 5.0),
            (Take::PeakAt, [5.0, 7.0, 7.0, 6.0], 2.0),
            (needed(90.0, false), [100.0, 101.0, 119.0, 120.0], 4.0),
            (needed(100.0, false), [100.0, 101.0, 119.0, 120.0], 8.0),
            (needed(90.0, true), [99.0, 50.0, 8.0, 7.0], 4.0),
            (needed(90.0, false), [100.0, 99.0, 98.0, 97.0], 1.0),
        ];
        for (take, values, taken) in table {
            assert_eq!(
                take_from(&places, &values, take),
                taken,
                "{take:?} of {values:?}"
            );
        }
        assert!(take_from(&places, &[1.0, f64::NAN, 2.0, 3.0], Take::Largest).is_nan());
    }

    #[test]
    fn what_is_read_off_a_histogram() {
        let bins = [(0.0, 10.0), (16.0, 20.0), (48.0, 60.0), (64.0, 10.0)];
        let table = [
            (HistogramRead::PeakAt, 48.0),
            (HistogramRead::PeakShare, 60.0),
            (HistogramRead::PeakOverNext, 3.0),
            (HistogramRead::Share { from: 16, to: 48 }, 80.0),
            (HistogramRead::Share { from: 17, to: 47 }, 0.0),
        ];
        for (read, value) in table {
            assert_eq!(read_off(&bins, read), Some(value));
            assert_eq!(read_off(&[], read), None);
        }
    }
}
