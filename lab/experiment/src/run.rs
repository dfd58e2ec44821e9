//! The runs of one or several experiments: each distinct plan once, on several threads.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use rayon::prelude::*;

use crate::experiment::{Experiment, Extent};
use crate::plan::Plan;
use crate::point::{Filter, Point};
use crate::simulator::{Cause, Measured, RunError, Runner};

/// Which runs of an experiment are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only the points, seeds and times of the quick run.
    pub quick: bool,
    /// These seeds in place of the file's; not empty.
    pub seeds: Option<Vec<u64>>,
    /// Only the points that it matches.
    pub only: Filter,
}

/// The progress of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Runs that have ended.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// The run that has just ended: `table2-miss-ratio: l2 = 256KB, colors = 1`.
    pub name: &'a str,
}

/// A run that an experiment needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The plan of the run.
    pub plan: Plan,
    /// Its point in the sweep.
    pub point: Point,
    /// Its name in progress messages.
    pub name: String,
}

/// The result of every plan, in the order of the plans, whatever the number of threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs(pub BTreeMap<Plan, Result<Measured, RunError>>);

/// More runs at the same time than this for each CPU only take memory.
const MOST_PER_CPU: usize = 4;

/// The operating system refused to start the threads of the runs; its answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start {threads} threads: {answer}")]
pub struct NoThreads {
    /// How many were wanted.
    pub threads: usize,
    /// What the system said.
    pub answer: String,
}

/// A plan that gave two different results: the simulator is not deterministic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The plan.
    pub plan: Plan,
    /// The digest (or error) of the first run.
    pub first: String,
    /// The digest (or error) of the second run.
    pub second: String,
}

impl Experiment {
    /// The points of a quick run, in order.
    pub fn quick_points(&self) -> impl Iterator<Item = &Point> {
        self.points
            .iter()
            .filter(|point| self.quick_points.matches(point))
    }

    /// The points that are run.
    pub fn points_of(&self, options: &Options) -> Vec<&Point> {
        let usual = |point: &&Point| !options.quick || self.quick_points.matches(point);
        let points = self.points.iter().filter(usual);
        points.filter(|point| options.only.matches(point)).collect()
    }

    /// Seeds and times of the runs.
    pub fn extent(&self, options: &Options) -> Extent {
        let usual = if options.quick {
            &self.quick
        } else {
            &self.full
        };
        let seeds = options.seeds.clone().unwrap_or_else(|| usual.seeds.clone());
        Extent {
            seeds,
            ..usual.clone()
        }
    }

    /// Every run that this experiment needs: point by point, seed by seed.
    pub fn jobs(&self, options: &Options) -> Vec<Job> {
        self.job_list(options).iter().collect()
    }

    /// The jobs of these seeds, each called `name`.
    pub(crate) fn jobs_called(&self, name: &str, seeds: Vec<u64>) -> Vec<Job> {
        let options = Options {
            seeds: Some(seeds),
            ..Options::default()
        };
        let mut jobs = self.jobs(&options);
        jobs.iter_mut().for_each(|job| job.name = name.to_owned());
        jobs
    }
}

impl Runs {
    /// Runs every distinct plan of `jobs` once, on `threads` threads (0: one per core), and calls
    /// `progress` after each run, on its thread. A run that panics is a failure of that run: the
    /// others stay.
    ///
    /// # Errors
    /// When the operating system refuses to start threads.
    pub fn of(
        jobs: impl IntoIterator<Item = Job>,
        runner: &dyn Runner,
        threads: usize,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Runs, NoThreads> {
        let mut named: BTreeMap<Plan, String> = BTreeMap::new();
        for job in jobs {
            named.entry(job.plan).or_insert(job.name);
        }
        let (total, done) = (named.len(), AtomicUsize::new(0));
        let one = |(plan, name): (Plan, String)| {
            let run = AssertUnwindSafe(|| runner.simulate(&plan));
            let result = catch_unwind(run).unwrap_or_else(|panic| Err(panicked(&*panic)));
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(Progress {
                done,
                total,
                name: &name,
            });
            (plan, result)
        };
        let threads = bounded(threads, total);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| NoThreads {
            threads,
            answer: error.to_string(),
        })?;
        let needs_quiet = |(plan, _): &(Plan, String)| runner.needs_quiet(plan);
        let (alone, together): (Vec<_>, Vec<_>) = named.into_iter().partition(needs_quiet);
        let results: Vec<_> =
            pool.install(|| together.into_par_iter().with_max_len(1).map(one).collect());
        // A run on real CPUs shares them with nobody of ours.
        let measured = alone.into_iter().map(one);
        Ok(Runs(results.into_iter().chain(measured).collect()))
    }

    /// The plans whose two runs gave different results.
    pub fn differences(&self, again: &Runs) -> Vec<Difference> {
        let result_of = |result: Option<&Result<Measured, RunError>>| match result {
            Some(Ok(measured)) => measured.digest.clone(),
            Some(Err(error)) => error.to_string(),
            None => "not run".to_owned(),
        };
        let mut differences = Vec::new();
        // What real threads do is not the same twice.
        for (plan, result) in self.0.iter().filter(|(plan, _)| plan.is_simulated()) {
            let (first, second) = (result_of(Some(result)), result_of(again.0.get(plan)));
            if first != second {
                differences.push(Difference {
                    plan: plan.clone(),
                    first,
                    second,
                });
            }
        }
        differences
    }

    /// The measurement of `plan`, if it gave one.
    pub fn measured(&self, plan: &Plan) -> Option<&Measured> {
        self.0.get(plan).and_then(|result| result.as_ref().ok())
    }
}

/// The threads for `runs` where `wanted` were asked for (0: one per CPU): no more than have work.
fn bounded(wanted: usize, runs: usize) -> usize {
    let cpus = available_parallelism().map_or(1, usize::from);
    let wanted = if wanted == 0 { cpus } else { wanted };
    wanted.min(cpus * MOST_PER_CPU).min(runs).max(1)
}

/// A panic is a mistake of ours, in this run.
fn panicked(panic: &(dyn Any + Send)) -> RunError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    RunError {
        what: format!("a mistake of warmq: {}", text.unwrap_or("it panicked")),
        cause: Cause::InvariantBroken,
    }
}

/// The seeds 1..=`count`, for `--seeds 5`.
pub fn seeds(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_bound_by_runs_and_cpus() {
        let cpus = available_parallelism().map_or(1, usize::from);
        assert_eq!(bounded(1_000_000, 5).min(5 * cpus), bounded(1_000_000, 5));
        assert_eq!(bounded(1_000_000, usize::MAX), cpus * MOST_PER_CPU);
        assert_eq!(bounded(0, usize::MAX), cpus);
        assert_eq!(bounded(3, 1), 1);
        assert_eq!(bounded(0, 0), 1);
    }
}
