//! One run: all threads of a case, in one mode.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Instant;

use warmq_units::CpuId;

use crate::compare::{APP_OF_FRAGMENTS, Limit, Mode, Placing, Sample, Usage};
use crate::error::BenchError;

use super::array::Array;
use super::settings::{Case, FragmentsSettings};
use super::worker::{Trail, Work};

/// A thread here calls next to nothing; thousands of them must fit.
const STACK: usize = 128 << 10;

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentsSample {
    pub sample: Sample,
    /// Times that a thread was seen on another CPU than before.
    pub moves: u64,
    /// The share of all accesses that took place on the CPU where most of their fragment's did.
    pub together: f64,
    /// Hints that a scheduler heard.
    pub heard: u64,
}

impl AsRef<Sample> for FragmentsSample {
    fn as_ref(&self) -> &Sample {
        &self.sample
    }
}

/// What the threads of a run have in common.
struct Shared<'a> {
    settings: &'a FragmentsSettings,
    arrays: Vec<Array>,
    placing: Placing,
    limit: &'a Limit,
    stop: AtomicBool,
}

type Outcome = Result<Option<Trail>, BenchError>;

/// Starts the threads in a loop, as the paper does, and waits for all of them. `None` where the
/// time was up before.
pub(super) fn run(
    settings: &FragmentsSettings,
    case: &Case,
    mode: Mode,
    limit: &Limit,
) -> Result<Option<FragmentsSample>, BenchError> {
    let used = settings.fragments.min(case.threads);
    let shared = Shared {
        settings,
        arrays: (0..used).map(|_| Array::new(case.size)).collect(),
        placing: Placing::new(mode, APP_OF_FRAGMENTS)?,
        limit,
        stop: AtomicBool::new(false),
    };
    let (before, began) = (Usage::now()?, Instant::now());
    let trails = shared.all(case.threads)?;
    let elapsed_ns = began.elapsed().as_nanos() as u64;
    let usage = Usage::now()? - before;
    let Some(trails) = trails else {
        return Ok(None);
    };
    let work = u64::from(case.threads) * settings.iterations;
    Ok(Some(FragmentsSample {
        sample: Sample {
            elapsed_ns,
            work,
            usage,
        },
        moves: trails.iter().map(|trail| trail.moves).sum(),
        together: together(&trails, settings.fragments),
        heard: shared.placing.heard(),
    }))
}

impl Shared<'_> {
    fn all(&self, threads: u32) -> Result<Option<Vec<Trail>>, BenchError> {
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for thread in 0..threads {
                match self.start(scope, thread) {
                    Ok(handle) => started.push(handle),
                    Err(error) => {
                        self.stop.store(true, Ordering::Relaxed);
                        return Err(refused(error, thread));
                    }
                }
            }
            let ended = started.into_iter().map(join);
            let trails: Vec<Option<Trail>> = ended.collect::<Result<_, _>>()?;
            Ok(trails.into_iter().collect())
        })
    }

    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        thread: u32,
    ) -> io::Result<ScopedJoinHandle<'scope, Outcome>> {
        let fragment = fragment_of(thread, self.settings.fragments);
        let work = Work {
            thread,
            fragment,
            array: &self.arrays[fragment as usize],
            accesses: self.settings.iterations,
            write_share: self.settings.write_share,
            placing: &self.placing,
            limit: self.limit,
            stop: &self.stop,
        };
        let named = Builder::new().name(format!("fragment-{fragment}"));
        named
            .stack_size(STACK)
            .spawn_scoped(scope, move || work.run())
    }
}

/// The fragment that a thread works on.
fn fragment_of(thread: u32, fragments: u32) -> u32 {
    thread % fragments
}

fn join(handle: ScopedJoinHandle<'_, Outcome>) -> Outcome {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn refused(error: io::Error, started: u32) -> BenchError {
    let action = format!("start a thread beside {started} others");
    let fix = "write fewer --threads, or allow more (ulimit -u)";
    BenchError::system(action, error, fix)
}

/// The share of all accesses that took place on the CPU where most of their fragment's did: 1 where
/// every fragment kept to one CPU.
fn together(trails: &[Trail], fragments: u32) -> f64 {
    let mut by_fragment: BTreeMap<u32, BTreeMap<CpuId, u64>> = BTreeMap::new();
    for (thread, trail) in (0..).zip(trails) {
        let cpus = by_fragment
            .entry(fragment_of(thread, fragments))
            .or_default();
        for (cpu, accesses) in &trail.accesses {
            *cpus.entry(*cpu).or_default() += accesses;
        }
    }
    let most = |cpus: &BTreeMap<CpuId, u64>| cpus.values().copied().max().unwrap_or(0);
    let most: u64 = by_fragment.values().map(most).sum();
    let all: u64 = by_fragment.values().flat_map(BTreeMap::values).sum();
    most as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(cpus: &[u16]) -> Trail {
        let mut trail = Trail::default();
        cpus.iter().for_each(|cpu| trail.see(CpuId(*cpu), 10));
        trail
    }

    #[test]
    fn a_trail_counts_moves_and_not_the_first_place() {
        let moves = [&[][..], &[3], &[3, 3], &[3, 4], &[3, 4, 3, 3]].map(|cpus| seen(cpus).moves);
        assert_eq!(moves, [0, 0, 0, 1, 2]);
    }

    #[test]
    fn together_is_the_share_on_the_commonest_cpu_of_each_fragment() {
        let apart = [seen(&[0, 1]), seen(&[0, 1])];
        assert_eq!(together(&apart, 2), 0.5);
        let gathered = [seen(&[0, 0]), seen(&[1]), seen(&[0]), seen(&[1, 1])];
        assert_eq!(together(&gathered, 2), 1.0);
        assert_eq!(together(&gathered, 1), 0.5);
        assert_eq!(together(&[], 4), 0.0);
    }

    #[test]
    fn threads_divide_themselves_evenly_among_the_fragments() {
        for (threads, fragments) in [(8, 4), (10, 4), (3, 7), (1, 1), (128, 100)] {
            let mut members = vec![0; fragments as usize];
            (0..threads).for_each(|it| members[fragment_of(it, fragments) as usize] += 1);
            let (least, most) = (members.iter().min().unwrap(), members.iter().max().unwrap());
            assert!(
                most - least <= 1,
                "{threads} threads on {fragments} fragments"
            );
        }
    }
}
