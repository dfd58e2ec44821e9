//! The runs of one or several experiments: each distinct plan once, on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::experiment::{Experiment, Extent};
use crate::plan::Plan;
use crate::point::{Filter, Point};
use crate::simulator::{Measured, RunError, Simulator};

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
}

impl Runs {
    /// Runs every distinct plan of `jobs` once, on `threads` threads (0: one per core), and calls
    /// `progress` after each run, on its thread.
    ///
    /// # Panics
    /// When the operating system refuses to start threads.
    pub fn of(
        jobs: impl IntoIterator<Item = Job>,
        simulator: &dyn Simulator,
        threads: usize,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Runs {
        let mut named: BTreeMap<Plan, String> = BTreeMap::new();
        for job in jobs {
            named.entry(job.plan).or_insert(job.name);
        }
        let (total, done) = (named.len(), AtomicUsize::new(0));
        let one = |(plan, name): (Plan, String)| {
            let result = simulator.simulate(&plan);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(Progress {
                done,
                total,
                name: &name,
            });
            (plan, result)
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("threads can be started");
        let needs_quiet = |(plan, _): &(Plan, String)| simulator.needs_quiet(plan);
        let (alone, together): (Vec<_>, Vec<_>) = named.into_iter().partition(needs_quiet);
        let results: Vec<_> =
            pool.install(|| together.into_par_iter().with_max_len(1).map(one).collect());
        // A run on real CPUs shares them with nobody of ours.
        let measured = alone.into_iter().map(one);
        Runs(results.into_iter().chain(measured).collect())
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

/// The seeds 1..=`count`, for `--seeds 5`.
pub fn seeds(count: u64) -> Vec<u64> {
    (1..=count).collect()
}
