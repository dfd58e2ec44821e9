//! Scheduling domains: which CPUs a CPU balances with, from near to far (`struct sched_domain`).
//!
//! The levels are the threads of a core, the cores under a last-level cache (multi-core), and all
//! CPUs. A level that has no more CPUs than the one below is left out. Nodes of a NUMA machine are
//! not modelled as a level.

use warmq_kernel::Attach;
use warmq_units::CpuId;

use crate::fair::spans::{Span, Together, spans};

/// What holds for all domains of a level (`SD_SIBLING_INIT`, `SD_MC_INIT`, `SD_CPU_INIT`). Indices
/// say which average of the load is used: 0 is the load of now, n the n-th average. The values are
/// those of a header of 2.6.18 to 2.6.20; that of 2.6.24 was not to be had.
pub(super) struct Level {
    /// Its CPUs are threads of one core (`SD_SHARE_CPUPOWER`).
    pub(super) shares_core: bool,
    /// A wakeup looks for an idle CPU here (`SD_WAKE_IDLE`).
    pub(super) wake_idle: bool,
    /// In ms; the least is 1.
    pub(super) max_interval: u64,
    pub(super) imbalance_pct: u64,
    /// Attempts that have to fail before hot tasks are pulled.
    pub(super) cache_nice_tries: u32,
    pub(super) busy_idx: usize,
    pub(super) idle_idx: usize,
    pub(super) newidle_idx: usize,
    pub(super) wake_idx: usize,
    pub(super) forkexec_idx: usize,
}

/// By how much the interval is longer on a busy CPU (`busy_factor`).
pub(super) const BUSY_FACTOR: u64 = 64;

const THREADS: Level = Level {
    shares_core: true,
    wake_idle: true,
    max_interval: 2,
    imbalance_pct: 110,
    cache_nice_tries: 0,
    busy_idx: 0,
    idle_idx: 0,
    newidle_idx: 1,
    wake_idx: 0,
    forkexec_idx: 0,
};

const CORES: Level = Level {
    shares_core: false,
    wake_idle: true,
    max_interval: 4,
    imbalance_pct: 125,
    cache_nice_tries: 1,
    busy_idx: 2,
    idle_idx: 1,
    newidle_idx: 2,
    wake_idx: 1,
    forkexec_idx: 1,
};

const ALL: Level = Level {
    wake_idle: false,
    ..CORES
};

/// A domain of one CPU.
///
/// Invariant: `groups` divide `span`; the first is the CPU's own.
pub(super) struct Domain {
    pub(super) level: &'static Level,
    pub(super) span: Vec<CpuId>,
    pub(super) groups: Vec<Vec<CpuId>>,

    // Changed by balancing.
    /// In ticks of the CPU.
    pub(super) last_balance: u64,
    /// In ms.
    pub(super) interval: u64,
    /// Attempts in a row that pulled nothing.
    pub(super) failed: u32,
}

/// The domains of `cpu`, the smallest first.
pub(super) fn domains(attach: &Attach<'_>, cpu: CpuId) -> Vec<Domain> {
    let levels: [(&'static Level, Together); 3] = [
        (&THREADS, |a, b| a.core == b.core),
        (&CORES, |a, b| a.llc == b.llc || a.core == b.core),
        (&ALL, |_, _| true),
    ];
    let domain = |span: Span<&'static Level>| Domain {
        last_balance: 0,
        interval: 1,
        failed: 0,
        level: span.level,
        span: span.span,
        groups: span.groups,
    };
    spans(attach, cpu, &levels)
        .into_iter()
        .map(domain)
        .collect()
}
