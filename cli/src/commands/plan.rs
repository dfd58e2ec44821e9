//! `warmq plan`: the runs of an experiment, before any is made.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Value, json};
use warmq_config::Pair;
use warmq_experiment::planned::{Identity, Planned};
use warmq_experiment::{Engine, Experiment, Options, Part, shown_value};
use warmq_report::{PointValue, Versioned};

use crate::arguments::Extent;
use crate::failure::Failure;
use crate::planned;
use crate::scenario::Worlds;
use crate::source::{self, Changes};
use crate::{machines, output, study};

const EXAMPLES: &str = "\
Examples:
  warmq plan mine.toml                      how many runs, and of what
  warmq plan mine.toml --json               a run a line, with its number and its digest
  warmq run mine.toml --only 0-99           the first hundred, a line each
  warmq plan mine.toml --json | jq .number | parallel --pipe -N 100 warmq run mine.toml --only -";

/// List the runs of an experiment without making any.
///
/// `warmq run FILE --only` makes some of them, on any machine (docs/sweeps.md). A plan may have
/// more points than `warmq run` takes; they are listed as they are made, and never all in memory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file of an experiment or scenario, or the name of one that comes with warmq.
    #[arg(value_name = "FILE")]
    file: String,
    /// Plan only the points, seeds and times that the file marks as quick.
    #[arg(long)]
    quick: bool,
    /// How many seeds (3), or which (4,7; a single one with a comma: 7,) [default: the file's].
    #[arg(long, value_name = "N|LIST")]
    seeds: Option<crate::seeds::Seeds>,
    #[command(flatten)]
    worlds: Worlds,
    /// Plan for another machine: a name, a .toml or hwloc .xml file, or `host`.
    #[arg(long, value_name = "NAME|FILE|host")]
    machine: Option<String>,
    /// Set a setting for all runs, as under [settings] in the file.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Pair>,
    /// Print one JSON object a run: number, digest, point, seed.
    #[arg(long)]
    json: bool,
    /// Print one JSON object for the whole plan: its digest, keys, measures and files, and the
    /// build of this program.
    #[arg(long, conflicts_with = "json")]
    summary: bool,
}

/// Reads the experiment, and lists its runs.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let changes = Changes {
        worlds: arguments.worlds.clone(),
        machine: arguments.machine.clone(),
        settings: arguments.set.clone(),
    };
    let requests = source::requests(std::slice::from_ref(&arguments.file), &changes)?;
    let engine = machines::engine(&requests)?;
    let options = Extent {
        quick: arguments.quick,
        seeds: arguments.seeds.clone(),
        ..Extent::default()
    }
    .options();
    for request in &requests {
        let experiment = study::planned(request, &engine)?;
        shown(arguments, &experiment, &options, &engine)?;
    }
    Ok(())
}

fn shown(
    arguments: &Arguments,
    experiment: &Experiment,
    options: &Options,
    engine: &Engine,
) -> Result<(), Failure> {
    let identity = Identity::of(experiment, engine)?;
    match (arguments.json, arguments.summary) {
        (true, _) => lines(experiment, options, &identity),
        (_, true) => output::print_json(&summary(experiment, options, &identity)?),
        _ => output::print(&text(experiment, options, &identity)),
    }
}

fn lines(experiment: &Experiment, options: &Options, identity: &Identity) -> Result<(), Failure> {
    let jobs = experiment.job_list(options);
    output::write(|out| {
        for (number, job) in (0..).zip(jobs.iter()) {
            let planned = Planned::new(experiment, number, identity.digest(&job), &job);
            serde_json::to_writer(&mut *out, &Versioned::of(planned))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

fn text(experiment: &Experiment, options: &Options, identity: &Identity) -> String {
    let jobs = experiment.job_list(options);
    let (points, runs) = (jobs.points(), jobs.count());
    let keys = experiment.parts.axes.iter();
    let keys = keys.map(|axis| format!("{} ({})", axis.key, axis.values.len()));
    let swept = match itertools::join(keys, ", ").as_str() {
        "" => String::new(),
        keys => format!("; swept: {keys}"),
    };
    format!(
        "{}: {points} points, {runs} runs{swept}; plan {}",
        experiment.file,
        identity.of_plan(experiment, options)
    )
}

fn summary(
    experiment: &Experiment,
    options: &Options,
    identity: &Identity,
) -> Result<Value, Failure> {
    let jobs = experiment.job_list(options);
    let axes = experiment.parts.axes.iter();
    let keys = axes.map(|axis| {
        let values = axis.values.iter().map(shown_value);
        json!({"name": axis.key, "type": kind(values.collect())})
    });
    let measures = experiment.measures_of_runs();
    let measures = measures.map(|measure| json!({"name": measure.name, "unit": measure.unit}));
    let names = experiment.parts.defaults.keys();
    let worlds: BTreeSet<&str> = names
        .filter(|(part, _)| *part == Part::World)
        .map(|(_, name)| name.as_str())
        .collect();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": planned::build()?,
        "plan": identity.of_plan(experiment, options),
        "experiment": experiment.id,
        "title": experiment.title,
        "points": jobs.points(),
        "runs": jobs.count(),
        "keys": keys.collect::<Vec<Value>>(),
        "measures": measures.collect::<Vec<Value>>(),
        "worlds": worlds,
        "files": identity.files(),
    }))
}

/// The type of a column that holds `values`.
fn kind(values: Vec<PointValue>) -> &'static str {
    let all = |fits: fn(&PointValue) -> bool| values.iter().all(fits);
    if all(|value| matches!(value, PointValue::Integer(_))) {
        "integer"
    } else if all(|value| matches!(value, PointValue::Flag(_))) {
        "flag"
    } else {
        "text"
    }
}
