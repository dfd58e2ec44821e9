//! An experiment as a list of runs, each with a number and a digest, and any of them alone: what
//! sweeps on several machines stand on (docs/sweeps.md).

mod identity;
mod line;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};

pub use self::identity::Identity;
use self::line::Line;
pub use self::line::{Planned, Taken};
pub use self::wanted::Wanted;
use crate::engine::Engine;
use crate::experiment::Experiment;
use crate::jobs::Jobs;
use crate::not_done::NotDone;
use crate::plan::Plan;
use crate::run::{Job, Options};
use crate::simulator::{Measured, RunError};

/// The runs of one experiment, to be made one by one.
pub struct Planning<'e> {
    experiment: &'e Experiment,
    identity: Identity,
    jobs: Jobs<'e>,
}

/// A run of a plan.
pub struct PlannedRun {
    /// Its place in the plan, counted from 0.
    pub number: u64,
    /// Its digest.
    pub digest: String,
    /// The run.
    pub job: Job,
}

/// A run that was made elsewhere: its plan, and what came of it.
pub type Collected = (Plan, Result<Measured, RunError>);

impl<'e> Planning<'e> {
    /// The runs of `experiment` that `options` leave.
    ///
    /// # Errors
    /// When a machine, workload or scheduler of it can no longer be read.
    pub fn new(
        experiment: &'e Experiment,
        options: &Options,
        engine: &Engine,
    ) -> Result<Planning<'e>, NotDone> {
        Ok(Planning {
            experiment,
            identity: Identity::of(experiment, engine)?,
            jobs: experiment.job_list(options),
        })
    }

    /// All runs by their digests.
    pub fn by_digest(&self) -> BTreeMap<String, Plan> {
        let jobs = self.jobs.iter();
        jobs.map(|job| (self.identity.digest(&job), job.plan))
            .collect()
    }

    /// A line of the run, of which `result` came in the program `build`.
    pub fn line<'b>(
        &'b self,
        run: &PlannedRun,
        build: &'b str,
        result: &'b Result<Measured, RunError>,
    ) -> Taken<'b> {
        let digest = run.digest.clone();
        let planned = Planned::new(self.experiment, run.number, digest, &run.job);
        Taken::new(self.experiment, planned, build, result)
    }

    /// The numbers of the runs that are `wanted`, ascending, each once.
    ///
    /// # Errors
    /// The plan has no such run.
    pub fn numbers(&self, wanted: &[Wanted]) -> Result<Vec<u64>, NotDone> {
        let (mut numbers, mut digests) = (BTreeSet::new(), BTreeSet::new());
        for choice in wanted {
            match choice {
                Wanted::Numbers(first, last) => {
                    self.must_have(*last)?;
                    numbers.extend(*first..=*last);
                }
                Wanted::Digest(digest) => drop(digests.insert(digest.clone())),
                Wanted::Checked(number, digest) => {
                    self.must_be(*number, digest)?;
                    numbers.insert(*number);
                }
                Wanted::Input => {}
            }
        }
        let mut jobs =
            (0..self.jobs.count()).map_while(|number| Some((number, self.jobs.get(number)?)));
        while !digests.is_empty() {
            let Some((number, job)) = jobs.next() else {
                break;
            };
            if digests.remove(&self.identity.digest(&job)) {
                numbers.insert(number);
            }
        }
        match digests.first() {
            Some(digest) => Err(self.lacks(digest)),
            None => Ok(numbers.into_iter().collect()),
        }
    }

    fn must_have(&self, number: u64) -> Result<(), NotDone> {
        match self.jobs.count() {
            count if number < count => Ok(()),
            count => Err(NotDone::File {
                file: self.experiment.file.clone(),
                what: format!("there is no run {number}: the plan has {count}"),
                help: "count from 0".to_owned(),
            }),
        }
    }

    fn must_be(&self, number: u64, digest: &str) -> Result<(), NotDone> {
        self.must_have(number)?;
        match self.at(number)?.digest == digest {
            true => Ok(()),
            false => Err(self.lacks(digest)),
        }
    }

    fn lacks(&self, digest: &str) -> NotDone {
        NotDone::File {
            file: self.experiment.file.clone(),
            what: format!("the plan has no run {digest} there"),
            help: "plan it again with `warmq plan`, the same options and the same build of warmq: a digest changes with the settings and with the files of machine and workload".to_owned(),
        }
    }

    /// The run with this number, counted from 0.
    ///
    /// # Errors
    /// The plan has no such run.
    pub fn at(&self, number: u64) -> Result<PlannedRun, NotDone> {
        self.must_have(number)?;
        let job = self
            .jobs
            .get(number)
            .ok_or_else(|| self.lacks(&number.to_string()))?;
        let digest = self.identity.digest(&job);
        Ok(PlannedRun {
            number,
            digest,
            job,
        })
    }
}

/// The run of one of `plans` that a line is of, which the program `build` printed.
///
/// # Errors
/// Why it is none.
pub fn read(line: &str, plans: &BTreeMap<String, Plan>, build: &str) -> Result<Collected, String> {
    let read: Line =
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
