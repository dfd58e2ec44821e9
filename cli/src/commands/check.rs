//! `warmq check`: is an experiment's file right?

use std::collections::BTreeSet;

use clap::Args;
use warmq_experiment::{Experiment, Options};

use crate::failure::Failure;
use crate::source::Source;
use crate::{machines, output, study};

/// Check experiments' files without running anything.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Files of experiments, or names of those that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

/// Reads every file, and says of each what it would run.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let opened = arguments.files.iter().map(|file| Source::open(file));
    let sources = opened.collect::<Result<Vec<Source>, Failure>>()?;
    let lab = machines::lab(sources.iter().map(|source| source.text.as_str()))?;
    let experiments = study::read(&sources, &lab)?;
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
