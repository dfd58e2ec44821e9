//! `warmq check`: whether the files of experiments and scenarios are right.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use warmq_config::Chosen;
use warmq_experiment::{Experiment, Options, fidelity, fidelity_of_schedulers};
use warmq_scenario::{Bound, Scenario, Site, TaskKindId, World};

use crate::arguments::Trust;
use crate::failure::Failure;
use crate::source::{self, Changes};
use crate::{machines, output, scenario, study};

/// Check the files of experiments and scenarios without running anything.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Files of experiments or scenarios, or names of those that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    trust: Trust,
}

/// Reads every file, and shows what each would run.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (scenarios, others): (Vec<_>, Vec<_>) = arguments
        .files
        .iter()
        .cloned()
        .partition(|it| scenario::is_named(it));
    let mut lines: Vec<String> = Vec::new();
    let (mut wrong, mut scenes) = (Vec::new(), Vec::new());
    for name in &scenarios {
        let found = scenario::find(name).and_then(|found| {
            if !scenario::is_shipped_as(name) {
                arguments.trust.admits(&found)?;
            }
            Ok(found)
        });
        match found {
            Ok(found) => scenes.push((name, found)),
            Err(Failure::Problems(problems)) => wrong.extend(problems),
            Err(other) => return Err(other),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Problems(wrong));
    }
    lines.extend(scenes.iter().map(|(name, scenario)| scene(name, scenario)));
    if !others.is_empty() {
        let documents = source::documents(&others, &Changes::default())?;
        let engine = arguments.trust.engine(machines::engine(&documents)?);
        let experiments = study::read(&documents, &engine)?;
        lines.extend(experiments.iter().map(fine));
    }
    output::print(&lines.join("\n"))
}

/// What a scenario is made of, and what each world plays otherwise.
fn scene(name: &str, scenario: &Scenario) -> String {
    let usual = Chosen::new(scenario.settings(), BTreeMap::new());
    let bound = usual
        .ok()
        .and_then(|usual| scenario.bind(&usual, &Site::default()).ok());
    let tasks = |bound: &Bound| {
        let kinds = (0..scenario.tasks().len() as u32).map(TaskKindId);
        kinds.map(|kind| bound.tasks(kind)).sum::<u64>()
    };
    let tasks = bound.as_ref().map_or(0, tasks);
    let mut lines = vec![format!(
        "{name}: fine; a scenario of {tasks} tasks in {} tables, {} tables of objects, {} settings, {} spans",
        scenario.tasks().len(),
        scenario.objects().len(),
        scenario.settings().len(),
        scenario.spans().len(),
    )];
    let of_worlds = World::ALL
        .into_iter()
        .flat_map(|world| fidelity(scenario, world));
    let notes = fidelity_of_schedulers(scenario)
        .into_iter()
        .chain(of_worlds);
    lines.extend(notes.map(|note| format!("  {note}")));
    // A script in another language says where it loses something.
    let remarks = scenario.remarks().iter();
    lines.extend(remarks.map(|remark| format!("  {remark}")));
    lines.join("\n")
}

fn fine(experiment: &Experiment) -> String {
    let runs = |quick| {
        let jobs = experiment.jobs(&Options {
            quick,
            ..Options::default()
        });
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
