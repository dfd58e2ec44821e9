//! Experiments that were run together, and what came of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use warmq_report::{Fact, Section};

use crate::experiment::Experiment;
use crate::judge::Finding;
use crate::outcome::{Outcome, RunFailure};
use crate::plan::Plan;
use crate::run::{Job, NoThreads, Options, Progress, Runs};
use crate::simulator::{RunError, Runner};

/// Experiments that were run.
pub struct Study {
    /// The experiments, in the order in which they were named.
    pub experiments: Vec<Experiment>,
    /// What names each of them on a command line.
    names: Vec<String>,
    /// The outcome of each.
    pub outcomes: Vec<Outcome>,
    /// Which of their runs were made.
    pub options: Options,
    /// Those.
    pub runs: Runs,
    /// How long each run took in real time, which whoever runs them knows.
    pub took: BTreeMap<Plan, Duration>,
    /// How long all of it took.
    pub elapsed: Duration,
}

/// The claims of a study that did not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Claims that fail.
    pub failed: usize,
    /// Claims about points that were not run.
    pub unchecked: usize,
}

impl Study {
    /// All `experiments`, which `names` name, of their `runs`.
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
        let extent = if self.options.quick { "quick" } else { "full" };
        vec![
            fact("Extent", extent.to_owned()),
            fact("Runs", self.runs.0.len().to_string()),
            fact("Seeds", itertools::join(seeds, ", ")),
            fact("Done in", format!("{:.0} s", self.elapsed.as_secs_f64())),
        ]
    }

    /// What is to be said of the experiments, and what was not played as the workloads say.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        let of_runs = self.outcomes.iter().flat_map(|outcome| &outcome.notes);
        let experiments = self.experiments.iter();
        let of_experiments = experiments.flat_map(|experiment| &experiment.notes);
        of_experiments.chain(of_runs)
    }

    /// Runs in all.
    pub fn count(&self) -> usize {
        self.runs.0.len()
    }

    /// Why runs gave no measurement.
    pub fn errors(&self) -> impl Iterator<Item = &RunError> {
        self.runs.0.values().filter_map(|run| run.as_ref().err())
    }

    /// The runs that gave no measurement, as [`Outcome::failures_by_reason`] has them, with what
    /// names their experiment.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &RunFailure, String)> {
        let outcomes = self.names.iter().zip(&self.outcomes);
        outcomes.flat_map(|(name, outcome)| {
            let failures = outcome.failures_by_reason().into_iter();
            failures.map(move |(failure, names)| (name.as_str(), failure, names))
        })
    }
}

impl Runs {
    /// The runs of all `experiments`, as [`Runs::of`] makes them; `progress` sees how many there
    /// are before the first.
    ///
    /// # Errors
    /// When no threads can be started.
    pub fn of_all(
        experiments: &[Experiment],
        options: &Options,
        runner: &dyn Runner,
        threads: usize,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Runs, NoThreads> {
        let jobs = experiments.iter();
        let jobs: Vec<Job> = jobs.flat_map(|one| one.jobs(options)).collect();
        let distinct: BTreeSet<&Plan> = jobs.iter().map(|job| &job.plan).collect();
        progress(Progress {
            done: 0,
            total: distinct.len(),
            name: "",
        });
        Runs::of(jobs, runner, threads, progress)
    }
}
