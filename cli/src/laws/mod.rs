//! `warmq laws`: schedulers held to laws, in any world.

pub mod case;
pub mod column;
pub mod matrix;
pub mod page;
pub mod shipped;
pub mod witness;

use std::num::NonZeroUsize;
use std::path::Path;

use warmq_experiment::{Problems, Runs};
use warmq_law::{Bound, Finding, Judged, Law, Verdict, judge, skipped};

use self::case::Case;
use self::column::Column;
use self::witness::{Kept, Witness, repetition};
use crate::failure::Failure;
use crate::machines;
use crate::progress::Watch;
use crate::worlds;

/// A cell of the matrix.
pub struct Cell<'l> {
    /// The law.
    pub law: &'l Law,
    /// Who was held to it.
    pub column: &'l Column,
    /// The verdict.
    pub judged: Judged,
    /// What is kept of the first repetition that does not hold.
    pub kept: Option<Kept>,
    /// The command that judges it again.
    pub again: String,
}

/// The finding that stands for a cell: the first that does not hold, else the first.
pub fn told<'c>(cell: &'c Cell<'_>) -> Option<(&'c Finding, &'c Bound)> {
    let bounds = &cell.judged.bounds;
    let worst = bounds.iter().find(|it| it.verdict == Verdict::Broken);
    let doubtful = bounds.iter().find(|it| it.verdict != Verdict::Holds);
    let finding = worst.or(doubtful).or(bounds.first())?;
    Some((finding, &cell.law.bounds[finding.bound]))
}

/// How laws are played.
pub struct Playing<'p> {
    /// Repetitions by the wall clock; none: three.
    pub repetitions: Option<u64>,
    /// Runs at the same time; 0: one for each CPU.
    pub threads: usize,
    /// Where traces of what does not hold are kept.
    pub folder: Option<&'p Path>,
}

/// Plays all of `laws` in all of `columns`, and judges; law by law.
///
/// # Errors
/// A law, a scheduler or a kernel that cannot be used.
pub fn judged<'l>(
    laws: &'l [(Law, String)],
    columns: &'l [Column],
    playing: &Playing<'_>,
) -> Result<Vec<Cell<'l>>, Failure> {
    let engine = worlds::add(warmq_experiment::Engine::new(Some(machines::host()?))).checked();
    let witness = Witness::new(engine, laws, playing.folder)
        .map_err(|error| Failure::usage(error.to_string(), ""))?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut cases = Vec::new();
    let mut wrong: Vec<Problems> = Vec::new();
    for (law, _) in laws {
        for column in columns {
            match Case::new(law, column, &witness, playing.repetitions, cores) {
                Ok(case) => cases.push(case),
                Err(problems) => wrong.push(problems),
            }
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Problems(wrong));
    }
    let jobs = cases.iter().filter_map(|case| case.runs.as_ref().ok());
    let jobs: Vec<_> = jobs.flatten().cloned().collect();
    let runs = {
        let watch = Watch::over("runs", jobs.len());
        Runs::of(jobs, &witness, playing.threads, &|progress| {
            watch.see(progress.done, progress.total, progress.name);
        })
    };
    Ok(cases
        .iter()
        .map(|case| cell(case, &runs, &witness))
        .collect())
}

fn cell<'l>(case: &Case<'l>, runs: &Runs, witness: &Witness<'_>) -> Cell<'l> {
    let (judged, kept) = match &case.runs {
        Err(why) => (skipped(why), None),
        Ok(jobs) => {
            let results = jobs.iter().filter_map(|job| {
                let result = runs.0.get(&job.plan)?;
                Some(repetition(&job.plan, result))
            });
            let repetitions: Vec<_> = results.collect();
            let kept = jobs.iter().find_map(|job| witness.kept(&job.plan));
            (judge(case.law, &repetitions), kept)
        }
    };
    Cell {
        law: case.law,
        column: case.column,
        judged,
        kept,
        again: case.again(),
    }
}
