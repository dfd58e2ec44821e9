//! What takes a CPU away from a thread that only reads the clock: interrupts, and what runs below
//! the kernel. Where another task had the CPU, nothing is known, and that time does not count.

use std::time::{Duration, Instant};

use warmq_units::CpuId;

use crate::error::WalkError;
use crate::thread::{Pinned, preemptions};

/// Less is no gap: the clock is read in 20 to 50 ns, and each interrupt takes more than this.
const LEAST_NS: u64 = 1_000;
/// However busy a CPU is, it is not watched for longer than so many times what was asked for.
const MOST_TIMES: u64 = 4;

/// A time for which the thread did not have its CPU, and no other task had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began, in ns after the first reading.
    pub at_ns: u64,
    /// How long it was.
    pub ns: u64,
}

/// The gaps of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// For how long it was watched, without the time that other tasks had.
    pub watched_ns: u64,
    /// In the order of time.
    pub gaps: Vec<Gap>,
}

/// Watches `cpu` for `time`.
///
/// # Errors
/// A CPU on which this thread may not run.
pub fn gaps(cpu: CpuId, time: Duration) -> Result<Gaps, WalkError> {
    let _pinned = Pinned::to(Some(cpu))?;
    let mut gaps = Gaps::default();
    gaps.watch(time);
    Ok(gaps)
}

impl Gaps {
    /// Watches the CPU of this thread.
    fn watch(&mut self, time: Duration) {
        let start = Instant::now();
        let ns = || start.elapsed().as_nanos() as u64;
        let wanted = time.as_nanos() as u64;
        let latest = wanted * MOST_TIMES;
        let (mut before, mut switches) = (ns(), preemptions());
        while self.watched_ns < wanted && before < latest {
            let now = ns();
            let gap = Gap {
                at_ns: before,
                ns: now - before,
            };
            before = now;
            if gap.ns < LEAST_NS {
                self.watched_ns += gap.ns;
                continue;
            }
            let switched = preemptions();
            if switched == switches {
                self.watched_ns += gap.ns;
                self.gaps.push(gap);
            }
            switches = switched;
            // That question is no gap.
            before = ns();
        }
    }

    /// What of this recurs with `period_ns`, and the rest: ticks come at the same place in each
    /// period. The place is that where most gaps begin.
    pub fn divided(&self, period_ns: u64) -> (Vec<Gap>, Vec<Gap>) {
        let place = |gap: &Gap| gap.at_ns % period_ns.max(1) * PLACES / period_ns.max(1);
        let mut counts = [0_u32; PLACES as usize];
        for gap in &self.gaps {
            counts[place(gap) as usize] += 1;
        }
        let most = (0..PLACES)
            .max_by_key(|at| counts[*at as usize])
            .unwrap_or(0);
        let near = |gap: &Gap| (place(gap) + PLACES + 1 - most) % PLACES <= 2;
        self.gaps.iter().partition(|gap| near(gap))
    }
}

/// A period is divided into so many places, at HZ 250 40 us each.
const PLACES: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_watched_for_as_long_as_nobody_else_has_it() {
        let time = Duration::from_millis(20);
        let cpu = Pinned::to(None).expect("a CPU").cpu();
        let seen = gaps(cpu, time).expect("watched");
        assert!(seen.watched_ns > 0);
        let sum: u64 = seen.gaps.iter().map(|gap| gap.ns).sum();
        assert!(sum <= seen.watched_ns);
        assert!(
            seen.gaps
                .windows(2)
                .all(|two| two[0].at_ns + two[0].ns <= two[1].at_ns)
        );
    }

    #[test]
    fn ticks_are_found_by_their_place_also_where_a_period_begins() {
        const MS: u64 = 1_000_000;
        let ticks = (1..50).map(|tick| Gap {
            at_ns: tick * 4 * MS - (tick % 2) * 30_000,
            ns: 5_000,
        });
        let others = (0..7).map(|other| Gap {
            at_ns: other * 9 * MS + 1_500_000,
            ns: 90_000,
        });
        let mut all: Vec<Gap> = ticks.chain(others).collect();
        all.sort_by_key(|gap| gap.at_ns);
        let gaps = Gaps {
            watched_ns: 200 * MS,
            gaps: all,
        };
        let (ticks, others) = gaps.divided(4 * MS);
        assert_eq!(ticks.len(), 49);
        assert!(others.iter().all(|gap| gap.ns == 90_000));
        assert_eq!(others.len(), 7);
        assert_eq!(Gaps::default().divided(0), (vec![], vec![]));
    }
}
