//! Experiments read, run and judged: what `run` and `reproduce` have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use warmq_experiment::{
    Cause, Experiment, Finding, Job, Lab, Options, Outcome, Plan, RunError, Runs,
};
use warmq_report::{Fact, Section};

use crate::clocked::Clocked;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::source::Source;

/// Experiments that were run.
pub struct Study {
    /// The experiments, in the order in which they were named.
    pub experiments: Vec<Experiment>,
    /// What each came to.
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

/// Reads all of `sources`.
///
/// # Errors
/// Everything that is wrong in any of them; two of the same name.
pub fn read(sources: &[Source], lab: &Lab) -> Result<Vec<Experiment>, Failure> {
    let (mut experiments, mut wrong) = (Vec::new(), Vec::new());
    for Source { file, text } in sources {
        match Experiment::read(file, text, lab) {
            Ok(experiment) => experiments.push(experiment),
            Err(problems) => wrong.push(problems),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Problems(wrong));
    }
    let mut ids = BTreeSet::new();
    match experiments.iter().find(|it| !ids.insert(it.id.as_str())) {
        Some(twice) => Err(Failure::usage(
            format!("two of the files are called {}", twice.id),
            "rows and links go by that name: run one at a time, or rename one",
        )),
        None => Ok(experiments),
    }
}

impl Study {
    /// Runs all `experiments` on `threads` threads (0: one a CPU), showing progress.
    pub fn run(experiments: Vec<Experiment>, options: Options, lab: &Lab, threads: usize) -> Study {
        let began = Instant::now();
        let clocked = Clocked::new(lab);
        let runs = simulate(&experiments, &options, &clocked, threads);
        let outcomes = experiments
            .iter()
            .map(|it| it.outcome(&options, &runs))
            .collect();
        Study {
            experiments,
            outcomes,
            options,
            runs,
            took: clocked.into_took(),
            elapsed: began.elapsed(),
        }
    }

    /// Runs everything again, with another number of threads, and compares.
    ///
    /// # Errors
    /// Every plan whose two runs differ.
    pub fn check_determinism(&self, lab: &Lab, threads: usize) -> Result<(), Failure> {
        let other = if threads == 1 { 2 } else { 1 };
        let again = simulate(&self.experiments, &self.options, &Clocked::new(lab), other);
        match self.runs.differences(&again) {
            differences if differences.is_empty() => Ok(()),
            differences => Err(Failure::NotDeterministic(differences)),
        }
    }

    /// A section an experiment; `command` says how to make one of them again.
    pub fn sections(&self, command: impl Fn(&Experiment) -> String) -> Vec<Section> {
        let pairs = self.experiments.iter().zip(&self.outcomes);
        let section = |(it, outcome): (&Experiment, &Outcome)| Section {
            took_s: self.took_by(it).as_secs_f64(),
            ..it.section(&self.options, &self.runs, outcome, &command(it))
        };
        pairs.map(section).collect()
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
            fact(
                "Simulated in",
                format!("{:.0} s", self.elapsed.as_secs_f64()),
            ),
        ]
    }

    /// Runs in all.
    pub fn count(&self) -> usize {
        self.runs.0.len()
    }

    /// How long all of it took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What must end the command with an error: runs without a measurement; failed claims, if
    /// `strict`.
    ///
    /// # Errors
    /// That.
    pub fn verdict(&self, strict: bool) -> Result<(), Failure> {
        let errors = self
            .runs
            .0
            .values()
            .filter_map(|result| result.as_ref().err());
        if let Some(exit) = errors.map(exit_of).max_by_key(|exit| severity(*exit)) {
            let failures = self.outcomes.iter().flat_map(|outcome| &outcome.failures);
            let sentences = failures.map(|(run, why)| format!("{run}: {why}")).collect();
            return Err(Failure::Runs(exit, sentences));
        }
        match self.claims().failed {
            0 => Ok(()),
            failed if strict => Err(Failure::Claims(failed)),
            _ => Ok(()),
        }
    }
}

/// The exit code of a command whose run gave no measurement.
pub fn exit_of(error: &RunError) -> Exit {
    match error.cause {
        Cause::Setting => Exit::BadInput,
        Cause::SchedulerBroke => Exit::SchedulerBroke,
        Cause::Stalled | Cause::MemoryFull => Exit::Stalled,
    }
}

/// Which code speaks for runs that failed for different reasons: a broken rule explains a stall.
fn severity(exit: Exit) -> u8 {
    match exit {
        Exit::SchedulerBroke => 2,
        Exit::Stalled => 1,
        _ => 0,
    }
}

fn simulate(
    experiments: &[Experiment],
    options: &Options,
    clocked: &Clocked<'_>,
    threads: usize,
) -> Runs {
    let jobs: Vec<Job> = experiments.iter().flat_map(|it| it.jobs(options)).collect();
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
    fn every_cause_of_a_run_without_a_measurement_has_its_code() {
        let table = [
            (Cause::Setting, Exit::BadInput),
            (Cause::SchedulerBroke, Exit::SchedulerBroke),
            (Cause::Stalled, Exit::Stalled),
            (Cause::MemoryFull, Exit::Stalled),
        ];
        for (cause, exit) in table {
            let what = String::new();
            assert_eq!(exit_of(&RunError { what, cause }), exit);
        }
    }
}
