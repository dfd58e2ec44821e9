//! `--collect`: runs that were made elsewhere, read from their lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};

use warmq_experiment::{Engine, Experiment, Options, Plan, Runs};

use super::identity::{self, Identity};
use super::line::Read;
use super::lines::lines as bounded;
use crate::failure::Failure;
use crate::output;

/// The runs of `experiment` whose lines stand in `files` (`-`: standard input). Those that are
/// missing are counted on standard error.
///
/// # Errors
/// A file that cannot be read; a line that is of no run of the plan, or that another build printed.
pub fn collect(
    experiment: &Experiment,
    options: &Options,
    engine: &Engine,
    files: &[String],
) -> Result<Runs, Failure> {
    let identity = Identity::of(experiment, engine)?;
    let jobs = experiment.job_list(options);
    let plans = jobs.iter().map(|job| (identity.digest(&job), job.plan));
    let plans: BTreeMap<String, Plan> = plans.collect();
    let build = identity::build()?;
    let mut runs = Runs::default();
    for name in files {
        let lines = lines(name)?;
        for (at, line) in lines.enumerate() {
            let line = line.map_err(|error| refused(name, &error))?;
            let (plan, result) = read(&line, &plans, &build).map_err(|what| Failure::File {
                file: format!("{name}:{}", at + 1),
                what,
                help: "give the lines that `warmq run --only` of this build printed for this experiment, with the same options".to_owned(),
            })?;
            runs.0.insert(plan, result);
        }
    }
    match plans
        .values()
        .filter(|plan| !runs.0.contains_key(plan))
        .count()
    {
        0 => {}
        missing => output::say(&format!(
            "warmq: note: {missing} of {} runs are not among the lines; what needs them is left out",
            plans.len()
        )),
    }
    Ok(runs)
}

type Of = (
    Plan,
    Result<warmq_experiment::Measured, warmq_experiment::RunError>,
);

fn read(line: &str, plans: &BTreeMap<String, Plan>, build: &str) -> Result<Of, String> {
    let read: Read =
        serde_json::from_str(line).map_err(|error| format!("this is no line of a run: {error}"))?;
    // Before its digest is looked for: other builds may make others, and other results under the
    // same.
    if read.is_of_another(build) {
        return Err("another build of warmq made this run".to_owned());
    }
    let Some(plan) = plans.get(&read.run) else {
        return Err(format!("the plan has no run {}", read.run));
    };
    let result = read.result();
    let result = result.ok_or("the line has no figures: the run is only planned")?;
    Ok((plan.clone(), result))
}

fn lines(name: &str) -> Result<Box<dyn Iterator<Item = io::Result<String>>>, Failure> {
    Ok(match name {
        "-" => Box::new(bounded(io::stdin().lock())),
        name => {
            let file = File::open(name).map_err(|error| refused(name, &error))?;
            Box::new(bounded(BufReader::new(file)))
        }
    })
}

fn refused(name: &str, error: &io::Error) -> Failure {
    Failure::File {
        file: name.to_owned(),
        what: format!("cannot read it: {error}"),
        help: "give a file of lines that `warmq run --only` printed".to_owned(),
    }
}
