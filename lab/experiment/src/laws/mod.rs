//! Schedulers held to laws, in any world.

mod case;
mod shipped;
mod witness;

use std::num::NonZeroUsize;

use warmq_config::{Problems, did_you_mean};
use warmq_law::{Cell, Column, Found, Line, Verdict, judge_kernel, skipped};
use warmq_scenario::WorldKind;

pub(crate) use self::case::changes;
use self::case::own_scheduler;
pub use self::case::{Case, workload};
pub use self::shipped::{LAWS, all_shipped, shipped};
pub use self::witness::{Keep, Records, Trace};
use self::witness::{Witness, repetition};
use crate::engine::Engine;
use crate::not_done::NotDone;
use crate::plan::{KERNEL, Part};
use crate::run::{Job, Progress, Runs};
use crate::simulator::Simulator;

/// How laws are played; by default each as often as it needs, and nothing is shown or kept.
#[derive(Clone, Copy, Default)]
pub struct Playing<'p> {
    /// Repetitions where no two are alike; none: three.
    pub repetitions: Option<u64>,
    /// What holds at its first repetition is not repeated.
    pub confirm: bool,
    /// Runs at the same time; 0: one for each CPU.
    pub threads: usize,
    /// Keeps traces of what does not hold.
    pub keep: Option<&'p Keep<'p>>,
    /// Cells that were judged before.
    pub known: &'p [Line],
    /// The command that judges a law in a column again.
    pub again: Option<&'p Again<'p>>,
    /// Sees how many runs are done of how many, first of all 0, and the last.
    pub progress: Option<&'p (dyn Fn(Progress<'_>) + Sync)>,
}

/// Writes the command that judges a law in a column.
pub type Again<'a> = dyn Fn(&Found, &Column) -> String + Sync + 'a;

/// So many cases are played before they are judged and reported: what an interruption costs at
/// most.
const TOGETHER: usize = 16;

/// Plays all of `laws` in all of `columns` on `engine`, but what is known already; judges, and
/// hands each cell to `sink` as soon as it is there. The cells come back law by law.
///
/// # Errors
/// A law, a scheduler or a kernel that cannot be used; what `sink` refuses.
pub fn judged<'l, E: From<NotDone>>(
    engine: Engine,
    laws: &'l [Found],
    columns: &'l [Column],
    playing: &Playing<'_>,
    sink: &mut dyn FnMut(&Cell<'l>) -> Result<(), E>,
) -> Result<Vec<Cell<'l>>, E> {
    let witness = Witness::new(engine.checked(), laws, playing.keep);
    let witness = witness.map_err(|error| NotDone::Usage(error.to_string(), String::new()))?;
    for column in columns {
        check(column, witness.engine())?;
    }
    let (mut cells, mut cases) = sorted(laws, columns, playing, &witness)?;
    // Runs that can be played at the same time come together, so that no CPU waits for the others.
    cases.sort_by_key(|(_, case)| case.is_alone());
    let firsts = cases.iter().map(|(_, case)| play_first(case, playing));
    let (mut done, mut total) = (0, firsts.map(<[Job]>::len).sum());
    playing.see(done, total, "");
    let mut play = |jobs: Vec<Job>, total: usize| {
        let (before, count) = (done, jobs.len());
        let runs = Runs::of(jobs, &witness, playing.threads, &|progress| {
            playing.see(before + progress.done, total, progress.name);
        });
        done += count;
        runs.map_err(NotDone::from)
    };
    for some in cases.chunks(TOGETHER) {
        let first = some.iter().flat_map(|(_, case)| play_first(case, playing));
        let mut runs = play(first.cloned().collect(), total)?;
        let more = some.iter().flat_map(|(_, case)| {
            let rest = &case.jobs()[play_first(case, playing).len()..];
            let holds = || cell(case, &runs, playing, &witness).judged.verdict == Verdict::Holds;
            if rest.is_empty() || holds() {
                &[]
            } else {
                rest
            }
        });
        let more: Vec<Job> = more.cloned().collect();
        total += more.len();
        runs.0.extend(play(more, total)?.0);
        for (place, case) in some {
            let cell = cell(case, &runs, playing, &witness);
            sink(&cell)?;
            cells[*place] = Some(cell);
        }
    }
    Ok(cells.into_iter().flatten().collect())
}

impl Playing<'_> {
    fn see(&self, done: usize, total: usize, name: &str) {
        if let Some(see) = self.progress {
            see(Progress { done, total, name });
        }
    }
}

/// Whether `simulator` has the scheduler of `column` in its world, and the scheduler the settings.
///
/// # Errors
/// What it lacks.
pub fn check(column: &Column, simulator: &dyn Simulator) -> Result<(), NotDone> {
    let refused = |what: String, help| NotDone::Usage(format!("--scheduler: {what}"), help);
    let plain = |what| refused(what, String::new());
    let name = column.name();
    let taken = simulator.takes(column.world.name(), Part::Scheduler, name);
    taken.map_err(plain)?;
    if let Some(why) = simulator.missing(column.world.name(), name) {
        return Err(plain(why));
    }
    if let Some(release) = unknown_release(column) {
        let what = format!("--kernel: the lab has no scheduler of kernel {release}");
        let help = "name a series from 6.6 on, or a scheduler of the lab";
        return Err(NotDone::Usage(what, help.to_owned()));
    }
    let pairs = column.settings().map_err(plain)?;
    if pairs.is_empty() {
        return Ok(());
    }
    let known = simulator.settings(Part::Scheduler, name);
    let known = known.map_err(|why| plain(why.to_string()))?;
    let names: Vec<&str> = known.iter().map(|setting| setting.name.as_str()).collect();
    match pairs.iter().find(|pair| !names.contains(&&*pair.key)) {
        Some(pair) => {
            let help = did_you_mean(&pair.key, names);
            Err(refused(
                format!("{name} has no setting `{}`", pair.key),
                help,
            ))
        }
        None => Ok(()),
    }
}

/// The release whose own scheduler the lab should play, and does not have.
fn unknown_release(column: &Column) -> Option<&str> {
    let is_own = column.world == WorldKind::Lab && column.name() == KERNEL;
    let release = column.kernel.as_deref().filter(|_| is_own)?;
    warmq_sched::of_kernel(release).is_none().then_some(release)
}

/// The runs of a case that are played in any case.
fn play_first<'c>(case: &'c Case<'_>, playing: &Playing<'_>) -> &'c [Job] {
    let jobs = case.jobs();
    match playing.confirm {
        true => &jobs[..jobs.len().min(1)],
        false => jobs,
    }
}

/// Cells by place, those that are known already filled; and the cases of the others.
type Sorted<'l> = (Vec<Option<Cell<'l>>>, Vec<(usize, Case<'l>)>);

fn sorted<'l>(
    laws: &'l [Found],
    columns: &'l [Column],
    playing: &Playing<'_>,
    witness: &Witness<'_>,
) -> Result<Sorted<'l>, NotDone> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (mut cells, mut cases, mut wrong) = (Vec::new(), Vec::new(), Vec::<Problems>::new());
    for found in laws {
        for column in columns {
            let known = found.known(column, playing.known);
            if known.is_none() {
                match Case::new(found, column, witness.engine(), playing.repetitions, cores) {
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
        false => Err(NotDone::Problems(wrong)),
    }
}

fn cell<'l>(
    case: &Case<'l>,
    runs: &Runs,
    playing: &Playing<'_>,
    witness: &Witness<'_>,
) -> Cell<'l> {
    let (judged, kept) = match &case.runs {
        Err(why) => (skipped(why), None),
        Ok(jobs) => {
            let results = jobs.iter().filter_map(|job| {
                let result = runs.0.get(&job.plan)?;
                Some(repetition(&job.plan, result))
            });
            let repetitions: Vec<_> = results.collect();
            let kept = jobs.iter().find_map(|job| witness.kept(&job.plan));
            let kernel = jobs.first().and_then(|job| own_scheduler(&job.plan));
            (judge_kernel(&case.found.law, &repetitions, kernel), kept)
        }
    };
    let again = playing.again.map(|again| again(case.found, case.column));
    Cell {
        law: &case.found.law,
        column: case.column,
        judged,
        kept,
        again: again.unwrap_or_default(),
        digest: case.found.digest(),
    }
}

#[cfg(test)]
mod tests {
    use warmq_law::Columns;

    use super::*;

    /// Of kernels that the lab has no table of it is fitted to the newest.
    #[test]
    fn a_compiled_scheduler_is_fitted_to_the_kernel_of_the_guests_beside_it() {
        let object = "/../sched-ext/tests/programs/order.bpf.o";
        let laws = [shipped("nice").unwrap().unwrap()];
        let columns = Columns {
            kernel: vec!["7.3".into(), "6.18".into(), "7.2".into()],
            scheduler: vec![env!("CARGO_MANIFEST_DIR").to_owned() + object],
            alike: true,
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let witness = Witness::new(Engine::new(None), &laws, None).unwrap();
        let fitted = columns.iter().map(|column| {
            let case = Case::new(&laws[0], column, witness.engine(), None, 2).unwrap();
            let settings = &case.jobs()[0].plan.scheduler.settings;
            settings["series"].to_string()
        });
        assert_eq!(fitted.collect::<Vec<_>>(), ["7.3", "6.18", "7.3"]);
    }

    #[test]
    fn to_confirm_one_run_comes_first() {
        let laws = [shipped("nice").unwrap().unwrap()];
        let columns = Columns::default().all().unwrap();
        let witness = Witness::new(Engine::new(None), &laws, None).unwrap();
        let case = Case::new(&laws[0], &columns[0], witness.engine(), None, 2).unwrap();
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
