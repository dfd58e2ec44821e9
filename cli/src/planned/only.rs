//! Some runs of a plan, each with its figures on a line of its own.

use std::collections::BTreeSet;
use std::io;

use warmq_experiment::{Engine, Experiment, Job, Jobs, Options, Runner, Runs};

use super::identity::{self, Identity};
use super::line::{Planned, Taken};
use super::lines::lines;
use super::wanted::Wanted;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{output, study};

/// Runs that are held in memory before their lines are written.
const TOGETHER: usize = 1024;

/// The runs of one experiment, to be made one by one.
pub struct Only<'e> {
    experiment: &'e Experiment,
    engine: &'e Engine,
    identity: Identity,
    build: String,
    jobs: Jobs<'e>,
}

/// A run of a plan.
struct Run {
    number: u64,
    digest: String,
    job: Job,
}

/// Makes the runs that are `wanted`, on `threads` threads (0: one per CPU), and prints a line for
/// each in the order of the plan, or of standard input.
///
/// # Errors
/// A run that is not in the plan; runs that gave no measurement, after all lines.
pub fn run(only: &Only<'_>, wanted: &[Wanted], threads: usize) -> Result<(), Failure> {
    if wanted.contains(&Wanted::Input) {
        return match wanted {
            [_] => only.answer(),
            _ => Err(Failure::usage(
                "--only -: standard input names all runs",
                "leave out the others",
            )),
        };
    }
    let numbers = only.numbers(wanted)?;
    let mut failures = Failures::default();
    for chunk in numbers.chunks(TOGETHER) {
        let runs = chunk
            .iter()
            .map(|number| only.at(*number))
            .collect::<Result<Vec<_>, _>>()?;
        only.run_all(&runs, threads, &mut failures)?;
    }
    failures.verdict()
}

impl<'e> Only<'e> {
    /// The runs of `experiment` that `options` leave.
    ///
    /// # Errors
    /// When a machine or workload of it, or the file of this program, can no longer be read.
    pub fn new(
        experiment: &'e Experiment,
        options: &Options,
        engine: &'e Engine,
    ) -> Result<Only<'e>, Failure> {
        Ok(Only {
            experiment,
            engine,
            identity: Identity::of(experiment, engine)?,
            build: identity::build()?,
            jobs: experiment.job_list(options),
        })
    }

    /// Makes each run that standard input names, and answers with its line before it reads on.
    fn answer(&self) -> Result<(), Failure> {
        for line in lines(io::stdin().lock()) {
            let line = line.map_err(|error| Failure::system("read standard input", &error))?;
            let wanted = line.parse::<Wanted>();
            let wanted = wanted.map_err(|why| Failure::usage(why, ""))?;
            for number in self.numbers(&[wanted])? {
                let run = self.at(number)?;
                self.print(&run, &self.engine.simulate(&run.job.plan))?;
            }
        }
        Ok(())
    }

    fn run_all(
        &self,
        runs: &[Run],
        threads: usize,
        failures: &mut Failures,
    ) -> Result<(), Failure> {
        let jobs = runs.iter().map(|run| run.job.clone());
        let results = Runs::of(jobs, self.engine, threads, &|_| {})?;
        for run in runs {
            let Some(result) = results.0.get(&run.job.plan) else {
                continue;
            };
            self.print(run, result)?;
            if let Err(error) = result {
                failures.add(
                    format!("{}, seed {}: {error}", run.job.name, run.job.plan.seed.0),
                    study::exit_of(error),
                );
            }
        }
        Ok(())
    }

    fn print(
        &self,
        run: &Run,
        result: &Result<warmq_experiment::Measured, warmq_experiment::RunError>,
    ) -> Result<(), Failure> {
        let planned = Planned::new(self.experiment, run.number, run.digest.clone(), &run.job);
        print(&Taken::new(self.experiment, planned, &self.build, result))
    }

    /// The numbers of the runs that are `wanted`, ascending, each once.
    fn numbers(&self, wanted: &[Wanted]) -> Result<Vec<u64>, Failure> {
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

    fn must_have(&self, number: u64) -> Result<(), Failure> {
        match self.jobs.count() {
            count if number < count => Ok(()),
            count => Err(Failure::File {
                file: self.experiment.file.clone(),
                what: format!("there is no run {number}: the plan has {count}"),
                help: "count from 0".to_owned(),
            }),
        }
    }

    fn must_be(&self, number: u64, digest: &str) -> Result<(), Failure> {
        self.must_have(number)?;
        match self.at(number)?.digest == digest {
            true => Ok(()),
            false => Err(self.lacks(digest)),
        }
    }

    fn lacks(&self, digest: &str) -> Failure {
        Failure::File {
            file: self.experiment.file.clone(),
            what: format!("the plan has no run {digest} there"),
            help: "plan it again with `warmq plan`, the same options and the same build of warmq: a digest changes with the settings and with the files of machine and workload".to_owned(),
        }
    }

    fn at(&self, number: u64) -> Result<Run, Failure> {
        self.must_have(number)?;
        let job = self
            .jobs
            .get(number)
            .ok_or_else(|| self.lacks(&number.to_string()))?;
        let digest = self.identity.digest(&job);
        Ok(Run {
            number,
            digest,
            job,
        })
    }
}

/// Prints `value` as a line of JSON.
fn print(value: &impl serde::Serialize) -> Result<(), Failure> {
    output::write(|out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Runs that gave no measurement.
#[derive(Default)]
struct Failures {
    sentences: Vec<String>,
    worst: Option<Exit>,
}

impl Failures {
    fn add(&mut self, sentence: String, exit: Exit) {
        self.sentences.push(sentence);
        self.worst = self
            .worst
            .into_iter()
            .chain([exit])
            .max_by_key(|exit| study::severity(*exit));
    }

    fn verdict(self) -> Result<(), Failure> {
        match self.worst {
            Some(exit) => Err(Failure::Runs(exit, self.sentences)),
            None => Ok(()),
        }
    }
}
