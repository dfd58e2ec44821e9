//! Experiments read, run and judged: what `run` and `reproduce` have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use warmq_config::Value;
use warmq_experiment::{
    Cause, Engine, Experiment, Finding, Job, NoThreads, Options, Outcome, Plan, Request, RunError,
    RunFailure, Runs,
};
use warmq_record::RunningKernel;
use warmq_report::{Fact, Section};

use crate::arguments::Extent;
use crate::clocked::Clocked;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host_kernel;
use crate::output;
use crate::points;
use crate::progress::Watch;
use crate::seeds::Seeds;
use crate::typed;
use warmq_config::Pair;

/// Experiments that were run.
pub struct Study {
    /// The experiments, in the order in which they were named.
    pub experiments: Vec<Experiment>,
    /// What names each of them on a command line.
    names: Vec<String>,
    /// The outcome of each.
    pub outcomes: Vec<Outcome>,
    options: Options,
    runs: Runs,
    took: BTreeMap<Plan, Duration>,
    elapsed: Duration,
}

/// The claims of a study that did not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Claims that fail.
    pub failed: usize,
    /// Claims about points that were not run.
    pub unchecked: usize,
}

/// Checks all of `requests`.
///
/// # Errors
/// Everything that is wrong in any of them; two of the same name.
pub fn read(requests: &[Request], engine: &Engine) -> Result<Vec<Experiment>, Failure> {
    let (mut experiments, mut wrong) = (Vec::new(), Vec::new());
    for request in requests {
        match request.experiment(engine) {
            Ok(mut experiment) => {
                host_kernel::beside(&mut experiment, RunningKernel::look);
                experiments.push(experiment);
            }
            Err(problems) => wrong.push(problems),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Problems(wrong));
    }
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

/// Checks `request`, which may have a sweep that is too large for anything but planning.
///
/// # Errors
/// Everything that is wrong in it.
pub fn planned(request: &Request, engine: &Engine) -> Result<Experiment, Failure> {
    let planned = request.planned(engine);
    let mut planned = planned.map_err(|problems| Failure::Problems(vec![problems]))?;
    host_kernel::beside(&mut planned, RunningKernel::look);
    Ok(planned)
}

impl Study {
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
        let began = Instant::now();
        let clocked = Clocked::new(engine);
        let runs = simulate(&experiments, &options, &clocked, threads)?;
        Ok(Study {
            took: clocked.into_took(),
            elapsed: began.elapsed(),
            ..Study::of(experiments, names, options, runs)
        })
    }

    /// All `experiments`, which `names` name, of `runs` that were made before.
    pub fn of(
        experiments: Vec<Experiment>,
        names: Vec<String>,
        options: Options,
        runs: Runs,
    ) -> Study {
        let outcomes = experiments
            .iter()
            .map(|experiment| experiment.outcome(&options, &runs))
            .collect();
        Study {
            experiments,
            names,
            outcomes,
            options,
            runs,
            took: BTreeMap::new(),
            elapsed: Duration::ZERO,
        }
    }

    /// Runs everything again, with another number of threads, and compares.
    ///
    /// # Errors
    /// Every plan whose two runs differ; when no threads can be started.
    pub fn check_determinism(&self, engine: &Engine, threads: usize) -> Result<(), Failure> {
        let other = if threads == 1 { 2 } else { 1 };
        let again = simulate(
            &self.experiments,
            &self.options,
            &Clocked::new(engine),
            other,
        )?;
        match self.runs.differences(&again) {
            differences if differences.is_empty() => Ok(()),
            differences => Err(Failure::NotDeterministic(differences)),
        }
    }

    /// A section an experiment; `command` says how to make that of a name again.
    pub fn sections(&self, command: impl Fn(&str) -> String) -> Vec<Section> {
        let section = |((experiment, name), outcome): ((&Experiment, &String), &Outcome)| Section {
            took_s: self.took_by(experiment).as_secs_f64(),
            ..experiment.section(&self.options, &self.runs, outcome, &command(name))
        };
        let named = self.experiments.iter().zip(&self.names);
        named.zip(&self.outcomes).map(section).collect()
    }

    fn took_by(&self, experiment: &Experiment) -> Duration {
        let jobs = experiment.jobs(&self.options);
        let plans: BTreeSet<Plan> = jobs.into_iter().map(|job| job.plan).collect();
        plans.iter().filter_map(|plan| self.took.get(plan)).sum()
    }

    /// The claims that did not hold.
    pub fn claims(&self) -> Claims {
        let mut claims = Claims::default();
        for judged in self.outcomes.iter().flat_map(|outcome| &outcome.claims) {
            match judged.finding {
                Finding::Holds => {}
                Finding::Fails => claims.failed += 1,
                Finding::NotChecked => claims.unchecked += 1,
            }
        }
        claims
    }

    /// Short facts for the head of a page.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |name: &str, value: String| Fact {
            name: name.to_owned(),
            value,
        };
        let seeds: BTreeSet<u64> = self.runs.0.keys().map(|plan| plan.seed.0).collect();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let extent = if self.options.quick { "quick" } else { "full" };
        vec![
            fact("Extent", extent.to_owned()),
            fact("Runs", self.runs.0.len().to_string()),
            fact("Seeds", seeds.join(", ")),
            fact("Done in", format!("{:.0} s", self.elapsed.as_secs_f64())),
        ]
    }

    /// What was not played as the workloads say.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.outcomes.iter().flat_map(|outcome| &outcome.notes)
    }

    /// Runs in all.
    pub fn count(&self) -> usize {
        self.runs.0.len()
    }

    /// How long all of it took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Checks for determinism if `extent` asks for it, and gives the verdict; `changed` are the
    /// options that changed the experiments.
    ///
    /// # Errors
    /// Two different results of one run; then as [`Study::verdict`].
    pub fn finish(
        &self,
        extent: &Extent,
        engine: &Engine,
        changed: &[String],
    ) -> Result<(), Failure> {
        if extent.check_determinism {
            self.check_determinism(engine, extent.threads())?;
            let count = self.count();
            output::say(&format!(
                "warmq: deterministic: {count} runs, twice the same"
            ));
        }
        self.verdict(extent.strict, |name, run| again(extent, changed, name, run))
    }

    /// What must end the command with an error: runs without a measurement; failed claims, if
    /// `strict`. `again` is the command that reproduces a failed run.
    ///
    /// # Errors
    /// That.
    pub fn verdict(
        &self,
        strict: bool,
        again: impl Fn(&str, &RunFailure) -> String,
    ) -> Result<(), Failure> {
        let errors = self.runs.0.values().filter_map(|run| run.as_ref().err());
        if let Some(exit) = errors.map(exit_of).max_by_key(|exit| severity(*exit)) {
            let mut sentences = Vec::new();
            for (name, outcome) in self.names.iter().zip(&self.outcomes) {
                let sentence = |(failed, names): (&RunFailure, String)| {
                    format!("{names}: {}; again: {}", failed.error, again(name, failed))
                };
                sentences.extend(outcome.failures_by_reason().into_iter().map(sentence));
            }
            return Err(Failure::Runs(exit, sentences));
        }
        match self.claims().failed {
            0 => Ok(()),
            failed if strict => Err(Failure::Claims(failed)),
            _ => Ok(()),
        }
    }
}

/// The command that does a failed run again, and writes what happened in it.
fn again(extent: &Extent, changed: &[String], name: &str, run: &RunFailure) -> String {
    let seeds = Some(Seeds(vec![run.seed]));
    let extent = Extent {
        seeds,
        ..extent.clone()
    };
    let pair = |(key, value): (&String, &Value)| Pair {
        key: key.clone(),
        value: value.to_string(),
    };
    let point = points::typed(run.point.0.iter().map(pair));
    let trace = typed::option("trace", "failed.perfetto");
    let options = [&extent.typed(), changed, &point, &trace].concat();
    typed::line("run", &[name], &options)
}

/// The exit code of a command whose run gave no measurement.
pub fn exit_of(error: &RunError) -> Exit {
    match error.cause {
        Cause::Setting => Exit::BadInput,
        Cause::SchedulerBroke => Exit::SchedulerBroke,
        Cause::Stalled | Cause::MemoryFull => Exit::Stalled,
        Cause::InvariantBroken => Exit::InvariantBroken,
        Cause::ProgramBroke => Exit::ProgramBroke,
        Cause::WorldRefused => Exit::MachineCannot,
    }
}

/// Which code stands for runs that failed for different reasons: after a broken invariant nothing
/// of a run can be trusted, and a broken rule (first the scheduler's, then a program's) explains a
/// stall.
pub fn severity(exit: Exit) -> u8 {
    match exit {
        Exit::InvariantBroken => 4,
        Exit::SchedulerBroke => 3,
        Exit::ProgramBroke => 2,
        Exit::Stalled => 1,
        _ => 0,
    }
}

fn simulate(
    experiments: &[Experiment],
    options: &Options,
    clocked: &Clocked<'_>,
    threads: usize,
) -> Result<Runs, NoThreads> {
    let all = experiments.iter();
    let jobs: Vec<Job> = all
        .flat_map(|experiment| experiment.jobs(options))
        .collect();
    let distinct: BTreeSet<&Plan> = jobs.iter().map(|job| &job.plan).collect();
    let watch = Watch::over("runs", distinct.len());
    Runs::of(jobs, clocked, threads, &|progress| {
        watch.see(progress.done, progress.total, progress.name);
    })
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
        ];
        for (cause, exit) in table {
            let what = String::new();
            assert_eq!(exit_of(&RunError { what, cause }), exit);
        }
    }
}
