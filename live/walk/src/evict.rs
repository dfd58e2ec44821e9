//! Does reading these lines evict those from the cache? Asked of the real cache, by timing.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use super::arena::{Arena, SMALL_PAGE};
use super::latency::LatencyReport;
use super::sets::{Answer, Line, Oracle};

/// Trials whose mean decides: whatever else runs may evict a line, and the clock of some CPUs
/// ticks in steps of 10 ns.
const TRIALS: usize = 7;

/// Reads of a trial, at least. The evicting lines are read over and over until then: a cache that
/// does not replace in strict order evicts the victim only after a while.
const READS: usize = 128;

/// How often the evicting lines are read in a trial, at least.
const FEWEST_PASSES: usize = 4;

/// Reads of a line in level 1 against which the others are compared: the clock of the core may
/// change, that of the timer does not.
const BASE_READS: u64 = 8;

/// The most by which an evicted line is expected to be slower than one that the cache has, in ns.
/// A busy last level answers late or not at all; it must not be taken for the usual.
const LARGEST_GAP_NS: f64 = 12.0;

/// The least, in ticks of the timer: less drowns in noise.
const SMALLEST_GAP_TICKS: f64 = 8.0;

/// Answers between these shares of the gap are unsure.
const KEPT_UP_TO: f64 = 0.4;
const EVICTED_FROM: f64 = 0.6;

/// A trial counts as at most so many gaps: those during which another task had the CPU must not
/// outweigh the others.
const MOST_GAPS: f64 = 1.5;

/// Times reads of lines of an arena.
pub struct Evictor<'arena> {
    arena: &'arena Arena,
    /// Bytes of a line.
    line: u64,
    /// Ticks beyond a hit in level 1, by which answers are distinguished; summed over all trials.
    kept_up_to: i64,
    evicted_from: i64,
    /// Ticks beyond a hit in level 1 that a trial counts as at most.
    most: i64,
    /// Questions asked.
    pub questions: u64,
}

impl<'arena> Evictor<'arena> {
    /// For lines of `line` bytes in the cache at `level`, whose latency and that of the next one
    /// are in `latencies`. `None` where a read cannot be timed finely enough to distinguish them.
    pub fn new(
        arena: &'arena Arena,
        line: u64,
        level: u8,
        latencies: &LatencyReport,
    ) -> Option<Evictor<'arena>> {
        let of = |level| latencies.level_ns(level);
        let (nearest, hit) = (of(1)?, of(level)?);
        let miss = of(level + 1)
            .or(latencies.memory_ns)
            .unwrap_or(f64::INFINITY);
        let ticks = ticks_of_a_ns()?;
        let gap = (miss - hit).min(LARGEST_GAP_NS) * ticks;
        let beyond = |share: f64| (hit - nearest) * ticks + share * gap;
        let all = |share: f64| (beyond(share) * TRIALS as f64) as i64;
        (gap >= SMALLEST_GAP_TICKS).then(|| Evictor {
            arena,
            line,
            kept_up_to: all(KEPT_UP_TO),
            evicted_from: all(EVICTED_FROM),
            most: beyond(MOST_GAPS) as i64,
            questions: 0,
        })
    }

    fn read(&self, line: Line) {
        let offset = u64::from(line.page) * SMALL_PAGE + u64::from(line.line) * self.line;
        assert!(offset + self.line <= self.arena.length(), "{line:?}");
        let address = (self.arena.start() + offset) as *const u64;
        // SAFETY: the line lies in the arena as asserted; all of that is mapped, lines are aligned
        // on words, and any bits are a u64.
        unsafe { address.read_volatile() };
    }

    /// Ticks for one read, without the translation of its address: another line of the page is
    /// read before, which is none of those that the search uses of this page.
    fn timed_read(&self, line: Line) -> i64 {
        let lines = (SMALL_PAGE / self.line) as u32;
        let other = Line {
            line: (line.line + lines / 2 + 5) % lines,
            ..line
        };
        self.read(other);
        ticks_of(|| self.read(line))
    }

    /// Reads the victims, then the evictors so many times, and adds to `sums` how many ticks each
    /// victim takes beyond a hit in level 1.
    fn trial(&self, evictors: &[Line], victims: &[Line], passes: usize, sums: &mut [i64]) {
        victims.iter().for_each(|line| self.read(*line));
        for _ in 0..passes {
            evictors.iter().for_each(|line| self.read(*line));
        }
        let taken: Vec<i64> = victims.iter().map(|line| self.timed_read(*line)).collect();
        let Some(near) = victims.last() else { return };
        let base: i64 = (0..BASE_READS).map(|_| ticks_of(|| self.read(*near))).sum();
        let base = base / BASE_READS as i64;
        for (sum, ticks) in sums.iter_mut().zip(taken) {
            *sum += (ticks - base).min(self.most);
        }
    }
}

impl Oracle for Evictor<'_> {
    fn ask(&mut self, evictors: &[Line], victims: &[Line]) -> Vec<Answer> {
        self.questions += 1;
        let passes = READS.div_ceil(evictors.len().max(1)).max(FEWEST_PASSES);
        let mut sums = vec![0; victims.len()];
        for _ in 0..TRIALS {
            self.trial(evictors, victims, passes, &mut sums);
        }
        let answer = |sum: i64| match sum {
            sum if sum <= self.kept_up_to => Answer::Kept,
            sum if sum >= self.evicted_from => Answer::Evicted,
            _ => Answer::Unsure,
        };
        sums.into_iter().map(answer).collect()
    }
}

/// How many ticks of the timer a nanosecond has; `None` where no program can read a fine timer.
fn ticks_of_a_ns() -> Option<f64> {
    const LONG_ENOUGH: Duration = Duration::from_millis(2);
    let (start, since) = (ticks()?, Instant::now());
    while since.elapsed() < LONG_ENOUGH {
        std::hint::spin_loop();
    }
    let taken = since.elapsed().as_nanos() as f64;
    Some((ticks()? - start) as f64 / taken).filter(|rate| *rate > 0.0)
}

/// Ticks that `work` takes; nothing else is under way meanwhile.
fn ticks_of(work: impl Fn()) -> i64 {
    let start = ticks();
    work();
    let end = ticks();
    end.zip(start)
        .map_or(0, |(end, start)| end.wrapping_sub(start) as i64)
}

/// The timer, after all reads before and before all after.
#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of every x86-64 with SSE2, and change no memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        Some(now)
    }
}

/// Other CPUs let no program read a timer this fine.
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}
