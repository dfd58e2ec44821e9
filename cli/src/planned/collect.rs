//! `--collect`: runs that were made elsewhere, read from their lines.

use std::fs::File;
use std::io::{self, BufReader};

use warmq_experiment::planned::{Planning, read};
use warmq_experiment::{Engine, Experiment, Options, Runs};

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
    let plans = Planning::new(experiment, options, engine)?.by_digest();
    let build = super::build()?;
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
