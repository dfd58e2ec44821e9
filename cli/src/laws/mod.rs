//! `warmq laws`: schedulers held to laws, in any world.

pub mod beside;
pub mod case;
pub mod column;
pub mod line;
pub mod matrix;
#[cfg(test)]
mod numbers;
pub mod page;
#[cfg(test)]
mod red;
pub mod shipped;
pub mod witness;

use std::num::NonZeroUsize;
use std::path::Path;

use warmq_experiment::{Job, NoThreads, Problems, Runs};
use warmq_law::{Bound, Finding, Judged, Law, Verdict, judge, skipped};

use self::case::Case;
use self::column::Column;
use self::line::Line;
use self::shipped::Found;
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
    /// Changes with the text of the law.
    pub digest: String,
}

/// The finding that stands for a cell: the first that does not hold, else the first.
pub fn decisive<'c>(cell: &'c Cell<'_>) -> Option<(&'c Finding, &'c Bound)> {
    let bounds = &cell.judged.bounds;
    let worst = bounds.iter().find(|bound| bound.verdict == Verdict::Broken);
    let doubtful = bounds.iter().find(|bound| bound.verdict != Verdict::Holds);
    let finding = worst.or(doubtful).or(bounds.first())?;
    Some((finding, &cell.law.bounds[finding.bound]))
}

/// How laws are played; by default as the command does without options.
#[derive(Default)]
pub struct Playing<'p> {
    /// Repetitions where no two are alike; none: three.
    pub repetitions: Option<u64>,
    /// What holds at its first repetition is not repeated.
    pub confirm: bool,
    /// Runs at the same time; 0: one for each CPU.
    pub threads: usize,
    /// Where traces of what does not hold are kept.
    pub folder: Option<&'p Path>,
    /// Cells that were judged before.
    pub known: &'p [Line],
}

/// So many cases are played before they are judged and reported: what an interruption costs at
/// most.
const TOGETHER: usize = 16;

/// Plays all of `laws` in all of `columns`, but what is known already; judges,
/// and hands each cell to `sink` as soon as it is there. The cells come back law by law.
///
/// # Errors
/// A law, a scheduler or a kernel that cannot be used; what `sink` refuses.
pub fn judged<'l>(
    laws: &'l [Found],
    columns: &'l [Column],
    playing: &Playing<'_>,
    sink: &mut dyn FnMut(&Cell<'l>) -> Result<(), Failure>,
) -> Result<Vec<Cell<'l>>, Failure> {
    let engine = worlds::add(warmq_experiment::Engine::new(Some(machines::host()?))).checked();
    let witness = Witness::new(engine, laws, playing.folder)
        .map_err(|error| Failure::usage(error.to_string(), ""))?;
    for column in columns {
        let checked = column.check(&witness);
        checked.map_err(|(what, help)| Failure::usage(format!("--scheduler: {what}"), help))?;
    }
    let (mut cells, mut cases) = sorted(laws, columns, playing, &witness)?;
    // Runs that can be played at the same time come together, so that no CPU waits for the others.
    cases.sort_by_key(|(_, case)| case.is_alone());
    let mut play = Play::of(&cases, playing, &witness);
    for some in cases.chunks(TOGETHER) {
        let mut runs = play.runs(some.iter().flat_map(|(_, case)| play_first(case, playing)))?;
        let more = some.iter().flat_map(|(_, case)| {
            let rest = &case.jobs()[play_first(case, playing).len()..];
            let holds = || cell(case, &runs, &witness).judged.verdict == Verdict::Holds;
            if rest.is_empty() || holds() {
                &[]
            } else {
                rest
            }
        });
        let more: Vec<&Job> = more.collect();
        play.total += more.len();
        runs.0.extend(play.runs(more.into_iter())?.0);
        for (place, case) in some {
            let cell = cell(case, &runs, &witness);
            sink(&cell)?;
            cells[*place] = Some(cell);
        }
    }
    Ok(cells.into_iter().flatten().collect())
}

/// The runs of a case that are played in any case.
fn play_first<'c>(case: &'c Case<'_>, playing: &Playing<'_>) -> &'c [Job] {
    let jobs = case.jobs();
    match playing.confirm {
        true => &jobs[..jobs.len().min(1)],
        false => jobs,
    }
}

/// Plays runs, and shows how many are done.
struct Play<'p> {
    witness: &'p Witness<'p>,
    threads: usize,
    watch: Watch,
    done: usize,
    total: usize,
}

impl<'p> Play<'p> {
    fn of(
        cases: &[(usize, Case<'_>)],
        playing: &Playing<'_>,
        witness: &'p Witness<'p>,
    ) -> Play<'p> {
        let runs = cases
            .iter()
            .map(|(_, case)| play_first(case, playing).len());
        let total = runs.sum();
        Play {
            witness,
            threads: playing.threads,
            watch: Watch::over("runs", total),
            done: 0,
            total,
        }
    }

    fn runs<'j>(&mut self, jobs: impl Iterator<Item = &'j Job>) -> Result<Runs, NoThreads> {
        let jobs: Vec<Job> = jobs.cloned().collect();
        let (played, before) = (jobs.len(), self.done);
        let runs = Runs::of(jobs, self.witness, self.threads, &|progress| {
            self.watch
                .see(before + progress.done, self.total, progress.name);
        })?;
        self.done += played;
        Ok(runs)
    }
}

/// The cells that are in `lines`; the others are skipped.
pub fn known<'l>(laws: &'l [Found], columns: &'l [Column], lines: &[Line]) -> Vec<Cell<'l>> {
    let mut cells = Vec::new();
    for found in laws {
        let law = &found.law;
        let digest = digest(&found.text);
        cells.extend(columns.iter().map(|column| {
            let line = lines.iter().rfind(|line| line.is_of(law, &digest, column));
            line.and_then(|line| line.cell(law, column))
                .unwrap_or_else(|| Cell {
                    law,
                    column,
                    judged: skipped("it was not played"),
                    kept: None,
                    again: case::again(found, column),
                    digest: digest.clone(),
                })
        }));
    }
    cells
}

/// Cells by place, those that are known already filled; and the cases of the others.
type Sorted<'l> = (Vec<Option<Cell<'l>>>, Vec<(usize, Case<'l>)>);

fn sorted<'l>(
    laws: &'l [Found],
    columns: &'l [Column],
    playing: &Playing<'_>,
    witness: &Witness<'_>,
) -> Result<Sorted<'l>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (mut cells, mut cases, mut wrong) = (Vec::new(), Vec::new(), Vec::<Problems>::new());
    for found in laws {
        let law = &found.law;
        let digest = digest(&found.text);
        for column in columns {
            let known = playing
                .known
                .iter()
                .rfind(|line| line.is_of(law, &digest, column));
            let known = known.and_then(|line| line.cell(law, column));
            if known.is_none() {
                match Case::new(found, column, &digest, witness, playing.repetitions, cores) {
                    Ok(case) => cases.push((cells.len(), case)),
                    // What is wrong with a column is so for each law.
                    Err(problems) if wrong.contains(&problems) => {}
                    Err(problems) => wrong.push(problems),
                }
            }
            cells.push(known);
        }
    }
    match wrong.is_empty() {
        true => Ok((cells, cases)),
        false => Err(Failure::Problems(wrong)),
    }
}

/// What changes with a law's text.
fn digest(text: &str) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
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
            (judge(&case.found.law, &repetitions), kept)
        }
    };
    Cell {
        law: &case.found.law,
        column: case.column,
        judged,
        kept,
        again: case.again(),
        digest: case.digest.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_confirm_one_run_comes_first() {
        let laws = shipped::find(&["nice".to_owned()]).unwrap();
        let columns = column::Columns::default().all().unwrap();
        let engine = worlds::add(warmq_experiment::Engine::new(None));
        let witness = Witness::new(engine, &laws, None).unwrap();
        let case = Case::new(&laws[0], &columns[0], "", &witness, None, 2).unwrap();
        let three = case.jobs().iter().cycle().take(3).cloned().collect();
        let case = Case {
            runs: Ok(three),
            ..case
        };
        let first = |confirm| {
            let playing = Playing {
                confirm,
                ..Playing::default()
            };
            play_first(&case, &playing).len()
        };
        assert_eq!((first(true), first(false)), (1, 3));
    }
}
