//! Scheduling domains of 2.6.16: which CPUs a CPU balances with, from near to far.
//!
//! The levels are the threads of a core and all CPUs. A level that has no more CPUs than the one
//! below is left out. Nodes of a NUMA machine are not modelled as a level.

use warmq_kernel::{Attach, Context};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::spans::{Span, Together, descend, spans};

use super::O1;
use super::queue::LOAD_SCALE;

/// What holds for all domains of a level (`SD_SIBLING_INIT`, `SD_CPU_INIT`). Indices say which
/// average of the load is used: 0 is the load of now, n the n-th average.
#[derive(Debug)]
pub(super) struct Level {
    /// Its CPUs are threads of one core (`SD_SHARE_CPUPOWER`).
    pub(super) shares_core: bool,
    /// The longest interval of an idle CPU, in ms (`max_interval`); the shortest is 1.
    pub(super) max_interval_ms: u64,
    /// By how much another group must be busier, in percent.
    pub(super) imbalance_pct: u64,
    /// Attempts that must have failed until tasks with warm caches move too.
    pub(super) cache_nice_tries: u32,
    pub(super) busy_idx: usize,
    pub(super) idle_idx: usize,
    pub(super) newidle_idx: usize,
    pub(super) forkexec_idx: usize,
}

/// The shortest interval of an idle CPU, in ms (`min_interval`).
pub(super) const MIN_INTERVAL_MS: u64 = 1;

const THREADS: Level = Level {
    shares_core: true,
    max_interval_ms: 2,
    imbalance_pct: 110,
    cache_nice_tries: 0,
    busy_idx: 0,
    idle_idx: 0,
    newidle_idx: 1,
    forkexec_idx: 0,
};

const ALL: Level = Level {
    shares_core: false,
    max_interval_ms: 4,
    imbalance_pct: 125,
    cache_nice_tries: 1,
    busy_idx: 2,
    idle_idx: 1,
    newidle_idx: 2,
    forkexec_idx: 1,
};

/// A domain of one CPU (`struct sched_domain`).
///
/// Invariant: `groups` divide `span`; the first is the CPU's own.
pub(super) struct Domain {
    pub(super) level: &'static Level,
    pub(super) span: Vec<CpuId>,
    pub(super) groups: Vec<Vec<CpuId>>,

    // Changed by balancing.
    /// In ms, for an idle CPU (`balance_interval`).
    pub(super) interval_ms: u64,
    /// In jiffies (`last_balance`).
    pub(super) last: u64,
    /// A tick has found that it is time, and the softirq has not looked yet.
    pub(super) due: bool,
    /// Attempts in succession that moved nothing (`nr_balance_failed`).
    pub(super) failed: u32,
}

/// The domains of `cpu`, the smallest first, which it balances from the jiffy `last` on.
pub(super) fn domains(attach: &Attach<'_>, cpu: CpuId, last: u64) -> Vec<Domain> {
    let levels: [(&'static Level, Together); 2] =
        [(&THREADS, |a, b| a.core == b.core), (&ALL, |_, _| true)];
    let domain = |span: Span<&'static Level>| Domain {
        level: span.level,
        span: span.span,
        groups: span.groups,
        interval_ms: MIN_INTERVAL_MS,
        last,
        due: false,
        failed: 0,
    };
    spans(attach, cpu, &levels)
        .into_iter()
        .map(domain)
        .collect()
}

/// How much load a group of `cpus` threads of one core is built for (`cpu_power`): each thread but
/// the first adds a tenth.
pub(super) fn power(cpus: usize) -> u64 {
    LOAD_SCALE + LOAD_SCALE * (cpus as u64 - 1) / 10
}

impl O1 {
    /// The idlest CPU for a program that is loaded on this CPU, from the largest domain down
    /// (`sched_balance_self()`).
    pub(super) fn idlest(&self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        let size = |domain: &Domain| domain.span.len();
        let idlest = descend(
            context.cpu(),
            |cpu| self.queue(cpu).domains.iter().map(size).collect(),
            |cpu, domain| self.idlest_in(context, task, &self.queue(cpu).domains[domain]),
        );
        context.allowed_near(task, idlest)
    }

    /// The idlest CPU of the idlest other group of a domain; `None` if the own group has no more
    /// load (`find_idlest_group()`).
    fn idlest_in(&self, context: &mut Context<'_>, task: TaskId, domain: &Domain) -> Option<CpuId> {
        let lines = domain.span.iter().map(|cpu| self.queue(*cpu).line);
        context.touch_all(lines, Access::Read);
        let (view, index) = (context.task(task), domain.level.forkexec_idx);
        let usable = |cpu: &&CpuId| view.may_run_on(**cpu);
        let load = |group: &[CpuId], of: &dyn Fn(CpuId) -> u64| {
            let sum: u64 = group.iter().map(|cpu| of(*cpu)).sum();
            sum * LOAD_SCALE / power(group.len())
        };
        let (own, others) = domain.groups.split_first()?;
        let this = load(own, &|cpu| self.queue(cpu).source_load(index));
        let target = |group: &[CpuId]| load(group, &|cpu| self.queue(cpu).target_load(index));
        let others = others.iter();
        let others = others.filter(|group| group.iter().any(|cpu| usable(&cpu)));
        let idlest = others.min_by_key(|group| target(group))?;
        let tolerated = 100 + (domain.level.imbalance_pct - 100) / 2;
        if own.iter().any(|cpu| usable(&cpu)) && 100 * this < tolerated * target(idlest) {
            return None;
        }
        let cpus = idlest.iter().filter(usable).copied();
        cpus.min_by_key(|cpu| self.queue(*cpu).source_load(0))
    }
}
