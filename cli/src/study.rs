//! Experiments read, run and judged: what `run` and `reproduce` have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use warmq_experiment::{
    Cause, Engine, Experiment, Kernels, Options, Progress, Request, RunError, RunFailure, Runner,
    Runs, Study,
};

use crate::arguments::Extent;
use crate::calibrated;
use crate::clocked::Clocked;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::machines::HOST;
use crate::output;
use crate::progress::OfRuns;
use crate::seeds::Seeds;
use crate::typed;
use crate::worlds::kernels;

/// Checks all of `requests`.
///
/// # Errors
/// Everything that is wrong in any of them; two of the same name.
pub fn read(requests: &[Request], engine: &Engine) -> Result<Vec<Experiment>, Failure> {
    let read = |request: &Request| Ok(beside_real_kernels(request.experiment(engine)?));
    let experiments = failure::all(requests.iter().map(read))?;
    let mut ids = BTreeSet::new();
    let mut all = experiments.iter();
    match all.find(|experiment| !ids.insert(experiment.id.as_str())) {
        Some(twice) => Err(Failure::usage(
            format!("two of the files are called {}", twice.id),
            "rows and links use that name: run one at a time, or rename one",
        )),
        None => Ok(experiments),
    }
}

/// The lab plays the kernels of this machine and of guests where both play.
fn beside_real_kernels(mut experiment: Experiment) -> Experiment {
    let kernels = Kernels {
        host: &kernels::running,
        guest: &kernels::of_guest,
    };
    warmq_experiment::beside(&mut experiment, &kernels);
    if warmq_experiment::simulates(&experiment, HOST) {
        experiment.notes.push(calibrated::sentence());
    }
    experiment
}

/// Checks `request`, which may have a sweep that is too large for anything but planning.
///
/// # Errors
/// Everything that is wrong in it.
pub fn planned(request: &Request, engine: &Engine) -> Result<Experiment, Failure> {
    Ok(beside_real_kernels(request.planned(engine)?))
}

/// Runs all `experiments`, which `names` name, on `threads` threads (0: one per CPU), showing
/// progress.
///
/// # Errors
/// When no threads can be started.
pub fn run(
    experiments: Vec<Experiment>,
    names: Vec<String>,
    options: Options,
    engine: &Engine,
    threads: usize,
) -> Result<Study, Failure> {
    let (began, clocked) = (Instant::now(), Clocked::new(engine));
    let runs = runs(&experiments, &options, &clocked, threads)?;
    let mut study = Study::of(experiments, names, options, runs);
    study.took = clocked.into_took();
    study.elapsed = began.elapsed();
    Ok(study)
}

fn runs(
    experiments: &[Experiment],
    options: &Options,
    runner: &dyn Runner,
    threads: usize,
) -> Result<Runs, Failure> {
    let shown = OfRuns::default();
    let see = |progress: Progress<'_>| shown.see(progress);
    Ok(Runs::of_all(experiments, options, runner, threads, &see)?)
}

/// Checks for determinism if `extent` asks for it, and gives the verdict; `changed` are the options
/// that changed the experiments.
///
/// # Errors
/// Two different results of one run; then what must end the command: runs without a measurement,
/// failed claims if `extent` is strict.
pub fn finish(
    study: &Study,
    extent: &Extent,
    engine: &Engine,
    changed: &[String],
) -> Result<(), Failure> {
    if extent.check_determinism {
        // With another number of threads.
        let threads = if extent.threads() == 1 { 2 } else { 1 };
        let again = runs(&study.experiments, &study.options, engine, threads)?;
        let differences = study.runs.differences(&again);
        if !differences.is_empty() {
            return Err(Failure::NotDeterministic(differences));
        }
        let count = study.count();
        output::say(&format!(
            "warmq: deterministic: {count} runs, twice the same"
        ));
    }
    if let Some(failure) = nothing_played(study) {
        return Err(failure);
    }
    let errors = study.errors().filter(|error| !error.is_left_out());
    if let Some(exit) = worst(errors) {
        let sentences = study.failures().map(|(name, failed, names)| {
            let again = again(extent, changed, name, failed);
            format!("{names}: {}; again: {again}", failed.error)
        });
        return Err(Failure::Runs(exit, sentences.collect()));
    }
    match study.claims().failed {
        0 => Ok(()),
        failed if extent.strict => Err(Failure::Claims(failed)),
        _ => Ok(()),
    }
}

/// That every run was left out, and why.
fn nothing_played(study: &Study) -> Option<Failure> {
    let mut whys: BTreeMap<&RunError, usize> = BTreeMap::new();
    for run in study.runs.0.values() {
        let why = run.as_ref().err().filter(|why| why.is_left_out())?;
        *whys.entry(why).or_default() += 1;
    }
    let sentence = |(why, runs): (&&RunError, &usize)| {
        let s = if *runs == 1 { "" } else { "s" };
        format!("{runs} run{s}: {why}")
    };
    let sentences: Vec<String> = whys.iter().map(sentence).collect();
    (!sentences.is_empty()).then_some(Failure::Runs(Exit::MachineCannot, sentences))
}

/// The command that does a failed run again, and writes what happened in it.
fn again(extent: &Extent, changed: &[String], name: &str, run: &RunFailure) -> String {
    let seeds = Some(Seeds(vec![run.seed]));
    let extent = Extent {
        seeds,
        ..extent.clone()
    };
    let point = run.point.0.iter();
    let point: Vec<String> = point.map(|(key, value)| format!("{key}={value}")).collect();
    let point = typed::list("point", &point);
    let trace = typed::option("trace", "failed.perfetto");
    let options = [&extent.typed(), changed, &point, &trace].concat();
    typed::line("run", &[name], &options)
}

/// That the run called `name` gave no measurement.
pub fn failed(name: &str, error: &RunError) -> Failure {
    Failure::Runs(exit_of(error), vec![format!("{name}: {error}")])
}

/// The exit code of a command whose run gave no measurement.
pub fn exit_of(error: &RunError) -> Exit {
    match error.cause {
        Cause::Setting => Exit::BadInput,
        Cause::SchedulerBroke => Exit::SchedulerBroke,
        Cause::Stalled | Cause::MemoryFull => Exit::Stalled,
        Cause::InvariantBroken => Exit::InvariantBroken,
        Cause::ProgramBroke => Exit::ProgramBroke,
        Cause::WorldRefused | Cause::NoProgram => Exit::MachineCannot,
    }
}

/// Codes of runs that failed, the worst first: after a broken invariant nothing of a run can be
/// trusted, and a broken rule (first the scheduler's, then a program's) explains a stall.
const WORST: [Exit; 4] = [
    Exit::InvariantBroken,
    Exit::SchedulerBroke,
    Exit::ProgramBroke,
    Exit::Stalled,
];

/// The code that stands for all of `errors`; nothing if there is none.
pub fn worst<'e>(errors: impl Iterator<Item = &'e RunError>) -> Option<Exit> {
    let place = |exit: &Exit| WORST.iter().position(|known| known == exit);
    let exits = errors.map(exit_of);
    exits.max_by_key(|exit| Reverse(place(exit).unwrap_or(WORST.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_is_reproduced_by_one_command() {
        let extent = Extent {
            quick: true,
            check_determinism: true,
            ..Extent::default()
        };
        let run = RunFailure {
            name: "fig1: colors = 32, seed 2".to_owned(),
            point: warmq_experiment::Point([("colors".to_owned(), 32.into())].into()),
            seed: 2,
            error: RunError {
                what: "an invariant was broken".to_owned(),
                cause: Cause::InvariantBroken,
            },
        };
        assert_eq!(
            again(&extent, &typed::option("machine", "host"), "fig1", &run),
            "warmq run fig1 --quick --seeds 2, --machine host --point colors=32 \
             --trace failed.perfetto"
        );
    }

    #[test]
    fn every_cause_of_a_run_without_a_measurement_has_its_code() {
        let table = [
            (Cause::Setting, Exit::BadInput),
            (Cause::SchedulerBroke, Exit::SchedulerBroke),
            (Cause::Stalled, Exit::Stalled),
            (Cause::MemoryFull, Exit::Stalled),
            (Cause::InvariantBroken, Exit::InvariantBroken),
            (Cause::ProgramBroke, Exit::ProgramBroke),
            (Cause::NoProgram, Exit::MachineCannot),
        ];
        for (cause, exit) in table {
            let what = String::new();
            assert_eq!(exit_of(&RunError { what, cause }), exit);
        }
    }
}
