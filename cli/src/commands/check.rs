//! `warmq check`: whether files are right, of every kind that a command reads.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use warmq_affinity::Plan;
use warmq_config::{Chosen, read_text};
use warmq_experiment::{Experiment, Options, fidelity, fidelity_of_schedulers};
use warmq_law::Found;
use warmq_law::shown::asked;
use warmq_scenario::{Bound, Scenario, Site, TaskKindId, WorldKind};
use warmq_trace::{Header, Record};
use warmq_units::Instant;

use crate::arguments::Trust;
use crate::described;
use crate::failure::{self, Failure};
use crate::kind::{self, Kind};
use crate::laws::shipped::find;
use crate::recording::{self, Recording};
use crate::source::{self, Changes};
use crate::{machines, output, scenario, study};

/// Check files of every kind that a command reads, without running anything.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Scenarios (TOML or rt-app's JSON), experiments, laws, machines (TOML or hwloc's XML),
    /// instances of the affinity model and recordings (these also from a pipe, or as -); or names
    /// of scenarios and experiments that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    trust: Trust,
}

/// Reads every file, and shows what each is.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = arguments.files.iter();
    let shown = files.map(|name| output::print(&about(name, &arguments.trust)?));
    failure::all(shown).map(|_| ())
}

/// What `name` is, or what is wrong with it.
fn about(name: &str, trust: &Trust) -> Result<String, Failure> {
    // Of the kinds, only recordings are read from pipes.
    if recording::is_read_once(name) {
        return recorded(name);
    }
    match Kind::of(name) {
        Some(Kind::Law) => law(name, trust),
        Some(Kind::Machine) => machine(name),
        Some(Kind::Instance) => instance(name),
        Some(Kind::Recording) => recorded(name),
        Some(Kind::Foreign(format)) => Err(kind::foreign(name, format)),
        _ if scenario::is_named(name) => scene(name, trust),
        _ => experiment(name, trust),
    }
}

fn scene(name: &str, trust: &Trust) -> Result<String, Failure> {
    let found = scenario::find(name)?;
    if !scenario::is_shipped_as(name) {
        trust.admits(&found)?;
    }
    Ok(contents(name, "scenario", &found))
}

fn law(name: &str, trust: &Trust) -> Result<String, Failure> {
    let mut lines = Vec::new();
    for Found { law, .. } in find(&[name.to_owned()])? {
        trust.admits(&law.scenario)?;
        lines.push(contents(name, "law", &law.scenario));
        let bounds = itertools::join(law.bounds.iter().map(asked), ", ");
        lines.push(format!("  It asks for {bounds}."));
    }
    Ok(lines.join("\n"))
}

fn machine(name: &str) -> Result<String, Failure> {
    let found = machines::find(name)?;
    let places = described::places(&found);
    let mut lines = vec![format!("{name}: fine; a machine of {places}")];
    lines.extend(
        found
            .left_out
            .iter()
            .map(|text| format!("  Not modelled: {text}")),
    );
    Ok(lines.join("\n"))
}

fn instance(name: &str) -> Result<String, Failure> {
    let text = read_text(name).map_err(|error| Failure::File {
        file: name.to_owned(),
        what: format!("cannot read it: {error}"),
        help: String::new(),
    })?;
    let plan = Plan::read(name, &text)?;
    Ok(format!(
        "{name}: fine; an instance of the affinity model, of {} tasks on {} CPUs, {} orders",
        plan.instance.tasks.len(),
        plan.instance.cpus,
        plan.orders.len()
    ))
}

/// Reads all of a recording, so that damage anywhere in it is found.
fn recorded(name: &str) -> Result<String, Failure> {
    let file = Path::new(name);
    let recording = Recording::open(file)?;
    let begin = |_: &Header| (0_u64, Instant::START);
    let count = |seen: &mut (u64, Instant), at, _: &Record| *seen = (seen.0 + 1, at);
    let ((records, end), contents) = recording.each(begin, count)?;
    recording::has_events(file, contents.as_ref())?;
    recording::cut(file, contents.as_ref())?;
    Ok(format!(
        "{name}: fine; a recording of {records} records, which ends at {end}"
    ))
}

fn experiment(name: &str, trust: &Trust) -> Result<String, Failure> {
    let requests = source::requests(&[name.to_owned()], &Changes::default())?;
    let engine = trust.engine(machines::engine(&requests)?);
    let experiments = study::read(&requests, &engine)?;
    Ok(itertools::join(experiments.iter().map(fine), "\n"))
}

/// What a scenario is made of, and what each world plays otherwise.
fn contents(name: &str, kind: &str, scenario: &Scenario) -> String {
    let usual = Chosen::defaults(scenario.settings());
    let bound = scenario.bind(&usual, &Site::default()).ok();
    let tasks = |bound: &Bound| {
        let kinds = (0..scenario.tasks().len() as u32).map(TaskKindId);
        kinds.map(|kind| bound.tasks(kind)).sum::<u64>()
    };
    let tasks = bound.as_ref().map_or(0, tasks);
    let mut lines = vec![format!(
        "{name}: fine; a {kind} of {tasks} tasks in {} tables, {} tables of objects, {} settings, {} spans",
        scenario.tasks().len(),
        scenario.objects().len(),
        scenario.settings().len(),
        scenario.spans().len(),
    )];
    let of_worlds = WorldKind::ALL
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
