//! Scheduling domains: which CPUs a CPU balances with, from near to far (`sd_init()`).
//!
//! The levels are the threads of a core, the CPUs under a last-level cache, a socket, and all
//! sockets (a NUMA node each). A level that has no more CPUs than the one below is left out.

use warmq_kernel::Attach;
use warmq_units::CpuId;

use crate::fair::spans::{Span, Together, spans};

use super::rules::MS;

/// What holds for all domains of a level.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Its CPUs are threads of one core (`SD_SHARE_CPUCAPACITY`).
    pub(super) shares_core: bool,
    /// They share a last-level cache (`SD_SHARE_LLC`).
    pub(super) shares_cache: bool,
    pub(super) imbalance_pct: u64,
    /// Attempts that have to fail before hot tasks are pulled.
    pub(super) cache_nice_tries: u32,
}

/// By how much the interval is longer on a busy CPU (`busy_factor`).
pub(super) const BUSY_FACTOR: i64 = 16;

const THREADS: Level = Level {
    shares_core: true,
    shares_cache: true,
    imbalance_pct: 110,
    cache_nice_tries: 0,
};

const CACHE: Level = Level {
    shares_core: false,
    shares_cache: true,
    imbalance_pct: 117,
    cache_nice_tries: 1,
};

const SOCKET: Level = Level {
    shares_cache: false,
    ..CACHE
};

const NODES: Level = Level {
    cache_nice_tries: 2,
    ..SOCKET
};

/// A domain of one CPU.
///
/// Invariant: `groups` divide `span`; the first is the CPU's own.
pub(super) struct Domain {
    pub(super) level: &'static Level,
    pub(super) span: Vec<CpuId>,
    pub(super) groups: Vec<Vec<CpuId>>,

    // Changed by balancing.
    /// In ns.
    pub(super) last_balance: i64,
    pub(super) interval: i64,
    /// Attempts in a row that pulled nothing.
    pub(super) failed: u32,
    /// Whether looking for work has paid for a CPU that was about to idle.
    pub(super) newidle: NewIdle,
}

/// How well looking for work pays for a CPU that is about to idle (`newidle_call`,
/// `newidle_success`, `newidle_ratio`, `newidle_stamp`).
#[derive(Clone, Copy, Debug)]
pub(super) struct NewIdle {
    /// How often it was about to idle, whether it looked or not, and what it found: each success
    /// counts for the tries that were left out.
    calls: u32,
    successes: u32,
    /// Of 1024 times that it is about to idle, it looks this often.
    ratio: u32,
    /// When that was last decided, in ns.
    decided_at: i64,
}

impl Default for NewIdle {
    fn default() -> NewIdle {
        NewIdle {
            calls: 512,
            successes: 256,
            ratio: 512,
            decided_at: 0,
        }
    }
}

impl NewIdle {
    /// Throws dice (`drawn`, of 1024) whether to look: the tries for which finding something would
    /// count, if so.
    pub(super) fn throw(&self, drawn: u32) -> Option<u32> {
        let weight = 1 + self.ratio;
        (drawn <= weight).then_some((1_024 + weight / 2) / weight)
    }

    /// Counts a time that it was about to idle, with what it found; after 1024 of them its
    /// successes are the new ratio, and half of them are forgotten (`update_newidle_stats()`).
    /// `rate`: the more rarely it idles, the less it costs to look: the 512 of them that are new
    /// each time, in 4 s, are rare enough to look always (`NI_RATE`, 7.1).
    pub(super) fn count(&mut self, found: u32, now: i64, rate: bool) {
        self.calls += 1;
        self.successes += found;
        if self.calls >= 1_024 {
            let passed = now.saturating_sub(self.decided_at).max(0);
            let rarity = if rate { passed >> 22 } else { 0 };
            self.ratio = (rarity + i64::from(self.successes)).min(1_024) as u32;
            self.decided_at = now;
            self.calls /= 2;
            self.successes /= 2;
        }
    }
}

impl Domain {
    /// The least interval, in ns: a ms for each CPU. The greatest is twice that.
    pub(super) fn least_interval(&self) -> i64 {
        least_interval(&self.span)
    }
}

fn least_interval(span: &[CpuId]) -> i64 {
    span.len() as i64 * MS
}

/// The domains of `cpu`, the smallest first.
pub(super) fn domains(attach: &Attach<'_>, cpu: CpuId) -> Vec<Domain> {
    let levels: [(&'static Level, Together); 4] = [
        (&THREADS, |a, b| a.core == b.core),
        (&CACHE, |a, b| a.llc == b.llc),
        (&SOCKET, |a, b| a.socket == b.socket),
        (&NODES, |_, _| true),
    ];
    let domain = |span: Span<&'static Level>| Domain {
        last_balance: 0,
        interval: least_interval(&span.span),
        failed: 0,
        newidle: NewIdle::default(),
        level: span.level,
        span: span.span,
        groups: span.groups,
    };
    spans(attach, cpu, &levels)
        .into_iter()
        .map(domain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// What of 1024 times a CPU looks after it was about to idle 512 times, within `time` ns, each
    /// time with `found`.
    fn ratio_after(time: i64, found: u32, rate: bool) -> u32 {
        let mut newidle = NewIdle::default();
        (0..512).for_each(|_| newidle.count(found, time, rate));
        newidle.ratio
    }

    #[test]
    fn a_cpu_looks_as_often_as_it_found_something() {
        // The ratio that it begins with is half forgotten.
        assert_eq!(ratio_after(S, 0, false), 256);
        assert_eq!(ratio_after(S, 1, false), 768);
        let newidle = NewIdle::default();
        assert_eq!(
            newidle.throw(513),
            Some(2),
            "a success counts for a try left out"
        );
        assert_eq!(newidle.throw(514), None);
    }

    #[test]
    fn a_cpu_that_rarely_idles_looks_always() {
        // The kernel's table: 4 s give 1024 (953 here, as 2^22 ns are 4.2 ms), 1 s 256, 0.25 s 64.
        for (time, rarity) in [(S / 4, 59), (S, 238), (2 * S, 476)] {
            assert_eq!(ratio_after(time, 0, true), 256 + rarity);
        }
        assert_eq!(ratio_after(4 * S, 0, true), 1_024);
    }
}
