//! Scheduling domains of Linux 2.6, by which O(1) and CFS balance: which CPUs a CPU balances with,
//! from near to far (`struct sched_domain`).
//!
//! The levels are the threads of a core, the cores under a last-level cache (multi-core; not in
//! 2.6.16), and all CPUs. A level that has no more CPUs than the one below is left out. Nodes of a
//! NUMA machine are not modelled as a level.

use warmq_kernel::Attach;
use warmq_units::CpuId;

use super::spans::{Span, Together, spans};

/// What holds for all domains of a level (`SD_SIBLING_INIT`, `SD_MC_INIT`, `SD_CPU_INIT`). Indices
/// say which average of the load is used: 0 is the load of now, n the n-th average. The values are
/// those of a header of 2.6.18 to 2.6.20; that of 2.6.24 was not to be had.
#[derive(Debug)]
pub(crate) struct Level {
    /// Its CPUs are threads of one core (`SD_SHARE_CPUPOWER`).
    pub(crate) shares_core: bool,
    /// A wakeup looks for an idle CPU here (`SD_WAKE_IDLE`).
    pub(crate) wake_idle: bool,
    /// The longest interval of an idle CPU, in ms.
    max_interval: u64,
    /// By how much another group must be busier, in percent.
    pub(crate) imbalance_pct: u64,
    /// Attempts that have to fail before hot tasks are pulled.
    pub(crate) cache_nice_tries: u32,
    pub(crate) busy_idx: usize,
    pub(crate) idle_idx: usize,
    pub(crate) newidle_idx: usize,
    pub(crate) wake_idx: usize,
    pub(crate) forkexec_idx: usize,
}

/// By how much the interval is longer on a busy CPU (`busy_factor`).
pub(crate) const BUSY_FACTOR: u64 = 64;
/// The shortest interval of an idle CPU, in ms (`min_interval`).
pub(crate) const MIN_INTERVAL: u64 = 1;
/// The longest interval of a domain where affinity keeps everybody from moving, in ms
/// (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_INTERVAL: u64 = 512;

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

/// The levels of a kernel, from near to far.
type Levels = &'static [(&'static Level, Together)];

pub(crate) const OF_2_6_16: Levels = &[(&THREADS, |a, b| a.core == b.core), (&ALL, |_, _| true)];

pub(crate) const OF_2_6_24: Levels = &[
    (&THREADS, |a, b| a.core == b.core),
    (&CORES, |a, b| a.llc == b.llc || a.core == b.core),
    (&ALL, |_, _| true),
];

/// A domain of one CPU.
///
/// Invariant: `groups` divide `span`; the first is the CPU's own.
pub(crate) struct Domain {
    pub(crate) level: &'static Level,
    pub(crate) span: Vec<CpuId>,
    pub(crate) groups: Vec<Vec<CpuId>>,

    // Changed by balancing.
    /// In jiffies.
    pub(crate) last_balance: u64,
    /// Of an idle CPU, in ms (`balance_interval`).
    pub(crate) interval: u64,
    /// A tick of 2.6.16 has found that it is time, and the softirq has not looked yet.
    pub(crate) due: bool,
    /// Attempts in a row that pulled nothing (`nr_balance_failed`).
    pub(crate) failed: u32,
}

impl Domain {
    /// Doubles the interval, up to the longest.
    pub(crate) fn back_off(&mut self, all_pinned: bool) {
        let most = match all_pinned {
            true => MAX_PINNED_INTERVAL,
            false => self.level.max_interval,
        };
        if self.interval < most {
            self.interval *= 2;
        }
    }
}

/// The domains of `cpu`, the smallest first, which it balanced at `last_balance`.
pub(crate) fn domains(
    attach: &Attach<'_>,
    cpu: CpuId,
    levels: Levels,
    last_balance: u64,
) -> Vec<Domain> {
    let domain = |span: Span<&'static Level>| Domain {
        level: span.level,
        span: span.span,
        groups: span.groups,
        last_balance,
        interval: MIN_INTERVAL,
        due: false,
        failed: 0,
    };
    spans(attach, cpu, levels).into_iter().map(domain).collect()
}
