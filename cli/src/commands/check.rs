//! `warmq check`: whether experiments' files are right.

use std::collections::BTreeSet;

use clap::Args;
use warmq_experiment::{Experiment, Options};

use crate::failure::Failure;
use crate::source::{self, Changes};
use crate::{machines, output, study};

/// Check experiments' files without running anything.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Files of experiments, or names of those that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

/// Reads every file, and shows what each would run.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let documents = source::documents(&arguments.files, &Changes::default())?;
    let experiments = study::read(&documents, &machines::engine(&documents)?)?;
    let lines: Vec<String> = experiments.iter().map(fine).collect();
    output::print(&lines.join("\n"))
}

fn fine(experiment: &Experiment) -> String {
    let runs = |quick| {
        let jobs = experiment.jobs(&Options { quick, seeds: None });
        jobs.into_iter()
            .map(|job| job.plan)
            .collect::<BTreeSet<_>>()
            .len()
    };
    format!(
        "{}: fine; {} points, {} runs ({} when quick), {} published figures, {} claims",
        experiment.file,
        experiment.points.len(),
        runs(false),
        runs(true),
        experiment.published.len(),
        experiment.claims.len(),
    )
}
