//! Some runs of a plan, each with its figures on a line of its own.

use std::io;

use warmq_experiment::planned::{PlannedRun, Planning, Wanted};
use warmq_experiment::{Engine, Experiment, Measured, Options, RunError, Runner, Runs};

use super::lines::lines;
use crate::failure::Failure;
use crate::{output, study};

/// Runs that are held in memory before their lines are written.
const TOGETHER: usize = 1024;

/// The runs of one experiment, to be made one by one.
pub struct Only<'e> {
    planning: Planning<'e>,
    engine: &'e Engine,
    build: String,
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
    let numbers = only.planning.numbers(wanted)?;
    let mut failures = Vec::new();
    for chunk in numbers.chunks(TOGETHER) {
        let runs = chunk
            .iter()
            .map(|number| only.planning.at(*number))
            .collect::<Result<Vec<_>, _>>()?;
        only.run_all(&runs, threads, &mut failures)?;
    }
    match study::worst(failures.iter().map(|(_, error)| error)) {
        Some(exit) => {
            let sentences = failures
                .iter()
                .map(|(name, error)| format!("{name}: {error}"));
            Err(Failure::Runs(exit, sentences.collect()))
        }
        None => Ok(()),
    }
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
            planning: Planning::new(experiment, options, engine)?,
            engine,
            build: super::build()?,
        })
    }

    /// Makes each run that standard input names, and answers with its line before it reads on.
    fn answer(&self) -> Result<(), Failure> {
        for line in lines(io::stdin().lock()) {
            let line = line.map_err(|error| Failure::system("read standard input", &error))?;
            let wanted = line.parse::<Wanted>();
            let wanted = wanted.map_err(|why| Failure::usage(why, ""))?;
            for number in self.planning.numbers(&[wanted])? {
                let run = self.planning.at(number)?;
                self.print(&run, &self.engine.simulate(&run.job.plan))?;
            }
        }
        Ok(())
    }

    fn run_all(
        &self,
        runs: &[PlannedRun],
        threads: usize,
        failures: &mut Vec<(String, RunError)>,
    ) -> Result<(), Failure> {
        let jobs = runs.iter().map(|run| run.job.clone());
        let results = Runs::of(jobs, self.engine, threads, &|_| {})?;
        for run in runs {
            let Some(result) = results.0.get(&run.job.plan) else {
                continue;
            };
            self.print(run, result)?;
            if let Err(error) = result {
                let name = format!("{}, seed {}", run.job.name, run.job.plan.seed.0);
                failures.push((name, error.clone()));
            }
        }
        Ok(())
    }

    fn print(&self, run: &PlannedRun, result: &Result<Measured, RunError>) -> Result<(), Failure> {
        output::print_json(&self.planning.line(run, &self.build, result))
    }
}
