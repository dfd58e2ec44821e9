//! The outcome of an experiment: its rows, checked claims and failed runs.

use std::collections::{BTreeMap, BTreeSet};

use warmq_report::{PointValue, Row};
use xxhash_rust::xxh3::Xxh3;

use crate::experiment::Experiment;
use crate::figures::{Figures, Spread};
use crate::judge::{self, Judged, View};
use crate::point::Point;
use crate::run::{Options, Runs};
use crate::simulator::{Parameter, RunError};
use warmq_config::Value;

/// The outcome of an experiment.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every measure at every point, measure by measure, in the order of the sweep.
    pub rows: Vec<Row>,
    /// Every claim, checked.
    pub claims: Vec<Judged>,
    /// The digest of all runs: equal digests, equal runs.
    pub digest: String,
    /// Runs that gave no measurement.
    pub failures: Vec<RunFailure>,
    /// Every parameter of the model in any run, by name.
    pub parameters: Vec<Parameter>,
    /// What was not played as the workload says, in any run.
    pub notes: Vec<String>,
    pub(crate) figures: Figures,
}

/// A run that gave no measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// The run: `table6-lock: cpus = 4, colors = 32, seed 1`.
    pub name: String,
    /// Its point in the sweep.
    pub point: Point,
    /// Its seed.
    pub seed: u64,
    /// Why it gave none.
    pub error: RunError,
}

impl Outcome {
    /// The runs that gave no measurement, those that gave none for the same reason together: the
    /// first, and what names them all.
    pub fn failures_by_reason(&self) -> Vec<(&RunFailure, String)> {
        let mut reasons: Vec<(&RunFailure, usize)> = Vec::new();
        for failure in &self.failures {
            let same = |(reason, _): &&mut (&RunFailure, usize)| reason.error == failure.error;
            let known = reasons.iter_mut().find(same);
            match known {
                Some((_, others)) => *others += 1,
                None => reasons.push((failure, 0)),
            }
        }
        let names = |name: &str, others| match others {
            0 => name.to_owned(),
            1 => format!("{name} and another run"),
            others => format!("{name} and {others} other runs"),
        };
        let reasons = reasons.into_iter();
        reasons
            .map(|(failure, others)| (failure, names(&failure.name, others)))
            .collect()
    }
}

impl Experiment {
    /// The outcome of the experiment, given its runs; points that were not run are left out.
    pub fn outcome(&self, options: &Options, runs: &Runs) -> Outcome {
        let figures = Figures::of(self, options, runs);
        let view = View {
            experiment: self,
            figures: &figures,
        };
        let claims = self.claims.iter();
        let claims = claims.map(|claim| judge::judge(claim, &view)).collect();
        let jobs = self.jobs(options);
        let mut parameters = BTreeSet::new();
        let mut notes = BTreeSet::new();
        let mut failures = Vec::new();
        let mut left_out: BTreeMap<&RunError, usize> = BTreeMap::new();
        let mut digest = Xxh3::new();
        for job in &jobs {
            let result = match runs.0.get(&job.plan) {
                Some(Ok(measured)) => {
                    parameters.extend(measured.parameters.iter().cloned());
                    notes.extend(measured.notes.iter().cloned());
                    measured.digest.clone()
                }
                Some(Err(error)) if error.is_left_out() => {
                    *left_out.entry(error).or_default() += 1;
                    error.to_string()
                }
                Some(Err(error)) => {
                    failures.push(RunFailure {
                        name: format!("{}, seed {}", job.name, job.plan.seed.0),
                        point: job.point.clone(),
                        seed: job.plan.seed.0,
                        error: error.clone(),
                    });
                    error.to_string()
                }
                None => "not run".to_owned(),
            };
            digest.update(format!("{}\n{result}\n", job.plan).as_bytes());
        }
        notes.extend(left_out.into_iter().map(|(why, runs)| {
            let s = if runs == 1 { "" } else { "s" };
            format!("Left out, {runs} run{s}: {why}.")
        }));
        Outcome {
            rows: self.rows(&figures),
            claims,
            digest: format!("{:032x}", digest.digest128()),
            failures,
            parameters: parameters.into_iter().collect(),
            notes: notes.into_iter().collect(),
            figures,
        }
    }

    fn rows(&self, figures: &Figures) -> Vec<Row> {
        let mut rows = Vec::new();
        for measure in self.measures.iter() {
            for point in &measure.domain {
                let Some(Spread { value, low, high }) = figures.at(&measure.name, point) else {
                    continue;
                };
                if self.everything && value.is_nan() {
                    continue;
                }
                let published = self.published_at(&measure.name, point);
                rows.push(Row {
                    experiment: self.id.clone(),
                    point: self.shown_point(point),
                    metric: measure.name.clone(),
                    value,
                    unit: measure.unit.clone(),
                    low,
                    high,
                    published: published.map(|published| published.value),
                    calibration: published.is_some_and(|published| published.calibration),
                });
            }
        }
        rows
    }

    /// A point as reports show it: its keys in the order of the sweep.
    pub fn shown_point(&self, point: &Point) -> warmq_report::Point {
        let axes = self.parts.axes.iter();
        let pair = |key: &String| Some((key.clone(), shown_value(point.0.get(key)?)));
        warmq_report::Point::new(axes.filter_map(|axis| pair(&axis.key)))
    }
}

/// A value as reports show it: sizes and times as people write them.
pub fn shown_value(value: &Value) -> PointValue {
    match value {
        Value::Integer(count) => (*count).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Text(name) => name.as_str().into(),
        Value::Bytes(_) | Value::Duration(_) => value.to_string().into(),
    }
}
