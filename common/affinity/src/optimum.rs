//! The assignment of runs to CPUs that ends first, by a dynamic program.
//!
//! On one CPU the best order is known ([`by_fragment`]), so a CPU's end depends only on the set of
//! its runs:
//!
//! ```text
//!     end(c) = ready + sum of ex(v) + sum over its fragments of (fill + write back)
//!
//!     fill       := lines * t_r; nothing on CPU 0 for the fragment of the first task
//!     write back := lines * t_w if a run there leaves the fragment dirty, else nothing
//! ```
//!
//! To share out the runs is number partitioning, where a bin that is split costs its fragment once
//! on each CPU. The table has a row for each run, in the order of bins, and in a row every
//! reachable vector of ends, with what each CPU has done to the fragment of this bin. The number of
//! vectors is bounded by the product of the ends, so the program is pseudo-polynomial for a
//! constant number of CPUs. All CPUs but the first are alike, so their entries are kept in order.
//! What ends later than a greedy assignment is left out.

use std::collections::BTreeMap;

use warmq_units::TaskId;

use crate::cpu::Cpu;
use crate::model::{FragmentId, Instance, Run};
use crate::order::{Order, by_fragment, replay};
use crate::schedule::Schedule;

/// A row of the table may have so many entries, some 100 MB.
const MOST_ENTRIES: usize = 500_000;

/// What may be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimum {
    /// A bin may be split, if that ends sooner: no schedule is better.
    SplitBins,
    /// All runs on a fragment are on one CPU, as the paper divides them.
    WholeBins,
}

/// The best there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// When all is done.
    pub end: u64,
    /// A schedule that ends then. None where tasks change their fragment: their runs were treated
    /// as if each could begin at any time, so that no schedule ends before `end`, and perhaps none
    /// ends then.
    pub schedule: Option<Schedule>,
}

/// The instance is too large for an exact answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is too large for an exact answer: a row of the table has more than {MOST_ENTRIES} entries"
)]
pub struct TooLarge;

/// What is put on a CPU in one piece.
#[derive(Clone, Debug)]
struct Job {
    fragment: Option<FragmentId>,
    runs: Vec<(TaskId, Run)>,
}

impl Job {
    fn length(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run.length).sum()
    }

    fn writes(&self) -> bool {
        self.runs.iter().any(|(_, run)| run.writes)
    }
}

/// What a CPU has done to the fragment of the bin that is being shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Touched {
    No,
    Filled,
    /// Filled, and to be written back.
    Dirty,
}

/// A CPU as an entry of the table sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// When it is done with what it has, write-back included.
    end: u64,
    touched: Touched,
}

/// How an entry came about: from which entry of the row before, by the choice of which CPU.
#[derive(Clone, Copy)]
struct Link {
    before: u32,
    cpu: u8,
}

/// The assignment of `instance` that ends first; of those the one with the least penalties.
/// `progress` gets how many rows of how many are done.
///
/// # Errors
/// The table is too large.
pub fn optimum(
    instance: &Instance,
    which: Optimum,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Best, TooLarge> {
    let bins = bins(instance);
    let jobs: Vec<Job> = match which {
        Optimum::WholeBins => bins,
        Optimum::SplitBins => bins.iter().flat_map(single_runs).collect(),
    };
    let search = Search::new(instance, &jobs);
    let (end, choices) = search.solve(progress)?;
    let schedule = match instance.has_changes() {
        true => None,
        false => Some(replay(instance, &search.order(&choices))),
    };
    Ok(Best { end, schedule })
}

/// When all is done if each bin, in the order of the fragments, goes to the CPU that is done first
/// (of several the one with the lowest number).
pub fn greedy(instance: &Instance) -> u64 {
    Search::new(instance, &bins(instance)).greedy()
}

/// A bin for each fragment, and one for each run without.
fn bins(instance: &Instance) -> Vec<Job> {
    let mut bins: BTreeMap<FragmentId, Job> = BTreeMap::new();
    let mut unmanaged = Vec::new();
    for (id, task) in instance.ready() {
        for run in &task.runs {
            let empty = || Job {
                fragment: run.fragment,
                runs: Vec::new(),
            };
            match run.fragment {
                Some(fragment) => bins
                    .entry(fragment)
                    .or_insert_with(empty)
                    .runs
                    .push((id, *run)),
                None => unmanaged.push(Job {
                    runs: vec![(id, *run)],
                    ..empty()
                }),
            }
        }
    }
    bins.into_values().chain(unmanaged).collect()
}

fn single_runs(bin: &Job) -> impl Iterator<Item = Job> {
    let single = |run: &(TaskId, Run)| Job {
        fragment: bin.fragment,
        runs: vec![*run],
    };
    bin.runs.iter().map(single)
}

struct Search<'a> {
    instance: &'a Instance,
    jobs: &'a [Job],
    /// The first task's fragment, and what CPU 0 has done to it.
    warm: Option<(FragmentId, Touched)>,
    /// Every CPU's end before anything is shared out.
    start: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance, jobs: &'a [Job]) -> Search<'a> {
        let first = instance.first.map(|first| instance.task(first).runs[0]);
        let warm = first.and_then(|run| match run.writes {
            true => Some((run.fragment?, Touched::Dirty)),
            false => Some((run.fragment?, Touched::Filled)),
        });
        let mut start: Vec<u64> = Cpu::all(instance).iter().map(|cpu| cpu.free_at).collect();
        if let Some((fragment, Touched::Dirty)) = warm {
            start[0] += instance.costs.f(0, instance.lines_of(fragment));
        }
        Search {
            instance,
            jobs,
            warm,
            start,
        }
    }

    /// `loads` with what holds of the fragment of `job` before any of its runs.
    fn begin_bin(&self, job: &Job, loads: &mut [Load]) {
        loads.iter_mut().for_each(|load| load.touched = Touched::No);
        if let Some((fragment, touched)) = self.warm
            && job.fragment == Some(fragment)
        {
            loads[0].touched = touched;
        }
    }

    /// The CPU `load` after `job` was put on it.
    fn put(&self, job: &Job, load: Load) -> Load {
        let Some(fragment) = job.fragment else {
            let end = load.end + job.length();
            return Load { end, ..load };
        };
        let (costs, lines) = (self.instance.costs, self.instance.lines_of(fragment));
        let after = match job.writes() {
            true => Touched::Dirty,
            false => load.touched.max(Touched::Filled),
        };
        let fill = match load.touched {
            Touched::No => lines,
            Touched::Filled | Touched::Dirty => 0,
        };
        let write_back = match after != load.touched && after == Touched::Dirty {
            true => lines,
            false => 0,
        };
        Load {
            end: load.end + costs.f(fill, write_back) + job.length(),
            touched: after,
        }
    }

    fn begin(&self) -> Vec<Load> {
        let touched = Touched::No;
        let load = |end: &u64| Load { end: *end, touched };
        self.start.iter().map(load).collect()
    }

    /// Whether the job at `index` is of another bin than the one before it.
    fn begins_bin(&self, index: usize) -> bool {
        index == 0 || self.jobs[index].fragment != self.jobs[index - 1].fragment
    }

    fn greedy(&self) -> u64 {
        let mut loads = self.begin();
        for (index, job) in self.jobs.iter().enumerate() {
            if self.begins_bin(index) {
                self.begin_bin(job, &mut loads);
            }
            let next = loads.iter_mut().min_by_key(|load| load.end);
            let next = next.expect("an instance has CPUs");
            *next = self.put(job, *next);
        }
        end_of(&loads)
    }

    /// The least end, and the choice of a CPU for each job: its place in the row before.
    fn solve(&self, progress: &mut dyn FnMut(usize, usize)) -> Result<(u64, Vec<u8>), TooLarge> {
        let bound = self.greedy();
        let mut left: u64 = self.jobs.iter().map(Job::length).sum();
        let mut row: Vec<Vec<Load>> = vec![sorted(self.begin())];
        let mut links: Vec<Vec<Link>> = Vec::new();
        for (index, job) in self.jobs.iter().enumerate() {
            left -= job.length();
            if self.begins_bin(index) {
                row.iter_mut().for_each(|loads| self.begin_bin(job, loads));
            }
            let next = self.next_row(&row, job, bound, left)?;
            let (loads, link): (Vec<_>, Vec<_>) = next.into_iter().unzip();
            row = loads;
            links.push(link);
            progress(index + 1, self.jobs.len());
        }
        let penalties = |loads: &Vec<Load>| loads.iter().map(|load| load.end).sum::<u64>();
        let best = row.iter().enumerate();
        let best = best.min_by_key(|(_, loads)| (end_of(loads), penalties(loads)));
        let (place, loads) = best.expect("the greedy assignment is in the table");
        Ok((end_of(loads), choices(&links, place)))
    }

    /// The entries that follow those of `row` when `job` is put on any CPU. None of them ends after
    /// `bound`, and with `left` units still to be shared out none has to.
    fn next_row(
        &self,
        row: &[Vec<Load>],
        job: &Job,
        bound: u64,
        left: u64,
    ) -> Result<BTreeMap<Vec<Load>, Link>, TooLarge> {
        let all = bound * self.start.len() as u64;
        let mut next = BTreeMap::new();
        for (before, loads) in row.iter().enumerate() {
            for cpu in 0..loads.len() {
                let mut loads = loads.clone();
                loads[cpu] = self.put(job, loads[cpu]);
                let used: u64 = loads.iter().map(|load| load.end).sum();
                if loads[cpu].end > bound || used + left > all {
                    continue;
                }
                let (before, cpu) = (before as u32, cpu as u8);
                next.entry(sorted(loads)).or_insert(Link { before, cpu });
            }
            if next.len() > MOST_ENTRIES {
                return Err(TooLarge);
            }
        }
        Ok(next)
    }

    /// The runs of each CPU, if the jobs are put where `choices` says.
    fn order(&self, choices: &[u8]) -> Order {
        // Rows keep the CPUs in order of their loads; here each takes its number along.
        let mut loads: Vec<(Load, usize)> = self.begin().into_iter().zip(0..).collect();
        let mut order: Order = vec![Vec::new(); loads.len()];
        for (index, (job, choice)) in self.jobs.iter().zip(choices).enumerate() {
            if self.begins_bin(index) {
                let mut plain: Vec<Load> = loads.iter().map(|(load, _)| *load).collect();
                self.begin_bin(job, &mut plain);
                for ((load, _), plain) in loads.iter_mut().zip(plain) {
                    *load = plain;
                }
            }
            let (load, cpu) = &mut loads[usize::from(*choice)];
            *load = self.put(job, *load);
            order[*cpu].extend(&job.runs);
            loads[1..].sort();
        }
        for (cpu, runs) in order.iter_mut().enumerate() {
            let warm = self.warm.filter(|_| cpu == 0);
            by_fragment(runs, warm.map(|(fragment, _)| fragment));
        }
        order
    }
}

/// Follows the links back from the entry at `place` of the last row.
fn choices(links: &[Vec<Link>], mut place: usize) -> Vec<u8> {
    let mut choices: Vec<u8> = Vec::with_capacity(links.len());
    for row in links.iter().rev() {
        let Link { before, cpu } = row[place];
        choices.push(cpu);
        place = before as usize;
    }
    choices.reverse();
    choices
}

/// All CPUs but the first are alike.
fn sorted(mut loads: Vec<Load>) -> Vec<Load> {
    loads[1..].sort();
    loads
}

fn end_of(loads: &[Load]) -> u64 {
    loads.iter().map(|load| load.end).max().unwrap_or(0)
}
