//! Scheduling domains: which CPUs a CPU balances with, from near to far (`sd_init()`).
//!
//! The levels are the threads of a core, the CPUs under a last-level cache, a socket, and all sockets
//! (a NUMA node each). A level that has no more CPUs than the one below is left out.

use warmq_kernel::Attach;
use warmq_units::CpuId;

use crate::fair::spans::{Span, SpanOf, spans};

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
    /// How often a CPU that was about to idle looked, found something, and what of 1024 that was in the
    /// last round (`newidle_call`, `newidle_success`, `newidle_ratio`).
    pub(super) newidle: NewIdle,
}

/// How well looking for work pays for a CPU that is about to idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewIdle {
    pub(super) calls: u32,
    pub(super) successes: u32,
    pub(super) ratio: u32,
}

impl Default for NewIdle {
    fn default() -> NewIdle {
        NewIdle {
            calls: 512,
            successes: 256,
            ratio: 512,
        }
    }
}

impl NewIdle {
    /// Counts an attempt; after 1024 of them what they came to is the new ratio, and half of them are
    /// forgotten (`update_newidle_stats()`).
    pub(super) fn count(&mut self, found: bool) {
        self.calls += 1;
        self.successes += u32::from(found);
        if self.calls >= 1_024 {
            self.ratio = self.successes;
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
    let all = || (0..attach.cpus()).map(CpuId);
    let like = |same: &dyn Fn(CpuId) -> u16, of: CpuId| -> Vec<CpuId> {
        all().filter(|other| same(*other) == same(of)).collect()
    };
    let core = |cpu: CpuId| attach.place(cpu).core;
    let cache = |cpu: CpuId| attach.place(cpu).llc;
    let socket = |cpu: CpuId| attach.place(cpu).socket;
    let levels: [(&'static Level, &SpanOf<'_>); 4] = [
        (&THREADS, &|of| like(&core, of)),
        (&CACHE, &|of| like(&cache, of)),
        (&SOCKET, &|of| like(&socket, of)),
        (&NODES, &|_| all().collect()),
    ];
    let domain = |it: Span<&'static Level>| Domain {
        last_balance: 0,
        interval: least_interval(&it.span),
        failed: 0,
        newidle: NewIdle::default(),
        level: it.level,
        span: it.span,
        groups: it.groups,
    };
    spans(cpu, levels).into_iter().map(domain).collect()
}
