//! Lines of JSON: a run as it is planned, and as it was taken.

use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use warmq_report::Point;

use crate::experiment::Experiment;
use crate::run::Job;
use crate::simulator::{Measured, RunError};

/// A run to be made.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// Its place in the plan, counted from 0.
    number: u64,
    /// Its digest.
    run: String,
    /// The id of the experiment.
    experiment: String,
    /// Where in the sweep.
    point: Point,
    /// Its seed.
    seed: u64,
}

/// A run that was made: a [`Planned`] with what came of it.
#[derive(Debug, Serialize)]
pub struct Taken<'e> {
    #[serde(flatten)]
    planned: Planned,
    /// The digest of the program that made it.
    build: &'e str,
    #[serde(flatten)]
    came: Came<'e>,
}

/// What came of a run.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Came<'e> {
    Measured {
        /// The digest of everything that happened.
        digest: String,
        ending: String,
        #[serde(serialize_with = "as_map")]
        figures: Vec<(&'e str, f64)>,
    },
    Failed {
        error: &'e RunError,
    },
}

impl Planned {
    /// The run `job` of `experiment`.
    pub fn new(experiment: &Experiment, number: u64, run: String, job: &Job) -> Planned {
        Planned {
            number,
            run,
            experiment: experiment.id.clone(),
            point: experiment.shown_point(&job.point),
            seed: job.plan.seed.0,
        }
    }
}

impl<'e> Taken<'e> {
    /// `planned`, of which `result` came in the program `build`.
    pub fn new(
        experiment: &'e Experiment,
        planned: Planned,
        build: &'e str,
        result: &'e Result<Measured, RunError>,
    ) -> Taken<'e> {
        let came = match result {
            Ok(measured) => Came::Measured {
                digest: measured.digest.clone(),
                ending: measured.ending.clone(),
                figures: experiment.figures_of(measured),
            },
            Err(error) => Came::Failed { error },
        };
        Taken {
            planned,
            build,
            came,
        }
    }
}

/// In the order of the experiment's measures. A figure that is not finite is null.
fn as_map<S: Serializer>(figures: &Vec<(&str, f64)>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(figures.iter().copied())
}

/// A line that is read back. What it says of its point is in the plan, too.
#[derive(Debug, Deserialize)]
pub struct Line {
    /// The digest of the run.
    pub run: String,
    build: Option<String>,
    digest: Option<String>,
    ending: Option<String>,
    figures: Option<BTreeMap<String, Option<f64>>>,
    error: Option<RunError>,
}

impl Line {
    /// Returns true if the run was made, and not by the program `build`.
    pub fn is_of_another(&self, build: &str) -> bool {
        let made = self.figures.is_some() || self.error.is_some();
        made && self.build.as_deref() != Some(build)
    }

    /// What came of the run; none if the line is of a run that was only planned.
    pub fn result(self) -> Option<Result<Measured, RunError>> {
        if let Some(error) = self.error {
            return Some(Err(error));
        }
        let figures = self.figures?.into_iter();
        Some(Ok(Measured {
            figures: figures
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            digest: self.digest?,
            ending: self.ending?,
            ..Measured::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Cause;

    /// The name of each cause in lines (docs/sweeps.md).
    const CAUSES: [(Cause, &str); 8] = [
        (Cause::Setting, "setting"),
        (Cause::SchedulerBroke, "scheduler-broke"),
        (Cause::Stalled, "stalled"),
        (Cause::MemoryFull, "memory-full"),
        (Cause::InvariantBroken, "invariant-broken"),
        (Cause::ProgramBroke, "program-broke"),
        (Cause::WorldRefused, "world-refused"),
        (Cause::NoProgram, "no-program"),
    ];

    #[test]
    fn every_cause_is_read_back_as_it_was_written() {
        for (cause, name) in CAUSES {
            let line = format!(r#"{{"run": "0", "error": {{"cause": "{name}", "what": "it"}}}}"#);
            let read: Line = serde_json::from_str(&line).unwrap();
            assert_eq!(
                read.result(),
                Some(Err(RunError {
                    what: "it".to_owned(),
                    cause
                }))
            );
            assert_eq!(serde_json::to_value(cause).unwrap(), name);
        }
    }
}
