//! Simplex: a fixed amount of CPU work, in registers alone.

use std::hint::black_box;
use std::time::Duration;

use serde::Serialize;

use super::clock::Clock;
use super::usage::Usage;

/// Rounds between two looks at the clock: some 50 us, so that looking costs less than 0.1 %.
const CHUNK: u64 = 50_000;
/// How long the speed of the CPU is measured, and how often; the fastest counts.
const TRIAL: Duration = Duration::from_millis(40);
const TRIALS: u32 = 5;

/// An amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    chunks: u64,
}

/// What came of doing some [`Work`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Done {
    /// From the first round to the last.
    pub elapsed_ns: u64,
    /// The share of the work that was done before the time was up; 1 is all.
    pub share: f64,
    /// What the thread used for it.
    pub usage: Usage,
}

impl Work {
    /// As much as the CPU of the calling thread does in `time` when nothing disturbs it.
    pub fn lasting(time: Duration) -> Work {
        let chunks_a_second = (0..TRIALS).map(|_| speed()).fold(0.0, f64::max);
        let chunks = (chunks_a_second * time.as_secs_f64()).round();
        Work {
            chunks: (chunks as u64).max(1),
        }
    }

    /// Does it, or as much of it as `limit` leaves time for.
    pub fn act(self, clock: Clock, limit: Duration) -> Done {
        let (before, start) = (Usage::of_this_thread(), clock.now_ns());
        let end = start.saturating_add(limit.as_nanos() as u64);
        let (mut done, mut now) = (0, start);
        while done < self.chunks && now < end {
            chunk();
            done += 1;
            now = clock.now_ns();
        }
        Done {
            elapsed_ns: now - start,
            share: done as f64 / self.chunks as f64,
            usage: Usage::of_this_thread().since(before),
        }
    }
}

/// Chunks a second.
fn speed() -> f64 {
    let clock = Clock::start();
    let mut chunks = 0_u64;
    while clock.now_ns() < TRIAL.as_nanos() as u64 {
        chunk();
        chunks += 1;
    }
    chunks as f64 * 1e9 / clock.now_ns() as f64
}

/// One chain of multiplications: each needs the one before, so that it takes the same time
/// anywhere.
#[inline(never)]
fn chunk() {
    let mut state = black_box(1_u64);
    for _ in 0..CHUNK {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    black_box(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_time_for_it_is_told_to_be_undone() {
        let work = Work { chunks: 1_000_000 };
        let done = work.act(Clock::start(), Duration::from_millis(2));
        assert!(done.share > 0.0 && done.share < 1.0, "{done:?}");
        let none = work.act(Clock::start(), Duration::ZERO);
        assert_eq!((none.share, none.elapsed_ns), (0.0, 0));
    }

    #[test]
    fn all_of_a_little_work_is_done() {
        let done = Work { chunks: 3 }.act(Clock::start(), Duration::from_secs(60));
        assert_eq!(done.share, 1.0);
        assert!(done.elapsed_ns > 0);
    }
}
