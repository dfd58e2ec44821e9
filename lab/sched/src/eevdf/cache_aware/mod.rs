//! Cache-aware balancing: tasks that share data are drawn under one last-level cache (Linux 7.2,
//! CONFIG_SCHED_CACHE).
//!
//! Purpose: wakeups place a task near its last CPU or its waker, and forks and balancing spread
//! tasks over the machine, so that threads at work on the same data end up under several caches,
//! which then send its lines to and fro. Here the tasks that share data (`sharers`) are counted:
//! how much of each CPU they had lately (`occupancy`). At ticks one of them looks over all CPUs
//! (`scan`): the cache where they have most becomes the one that they prefer, and they keep it
//! until another has more than twice as much. Only balancing acts on it (`draw`): a CPU pulls a
//! task under the cache that it prefers, also one that runs, and leaves alone one that is there. A
//! table of how full the two caches are (`policy`) keeps the preferred one from being overfilled.
//!
//! It does nothing
//! - for tasks that are too many: a group that runs on more CPUs at a time than 80 % of a cache's
//!   cores is left to ordinary balancing, and for good, as its count is frozen from then on;
//! - where both caches are fuller than 50 % (75 % without SMT);
//! - between ticks and balancings: what lives for a few ms never has a preferred cache.
//!
//! Different from the kernel:
//! - The memory that a process uses is not held against the size of the cache: the kernel knows of
//!   it by its NUMA faults only, and has none on a machine of one node.
//! - A preferred cache never conflicts with a preferred node, which the laboratory's EEVDF lacks.
//! - Where a running task is drawn, it is one that prefers to be; 7.2 moves the one that ran
//!   longest ago, whichever cache that prefers (a fix was reviewed in September 2026).
//! - A scan runs in the softirq after the tick, not on the way to user mode. It costs the accesses
//!   to memory that it makes, and no computing.

mod draw;
mod knobs;
mod occupancy;
mod policy;
mod scan;
mod sharers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use warmq_config::Chosen;
use warmq_kernel::Attach;
use warmq_units::{Address, Bytes, CpuId, TaskId};

pub(super) use self::knobs::settings;

use self::knobs::{Knobs, Sharing};
use self::occupancy::Window;
use self::policy::Fill;
use self::sharers::{Member, Shared, Sharers};

/// What the scheduler knows of caches and of who shares data; only where it balances by that.
pub(super) struct CacheAware {
    // Set when the scheduler is attached, and never after.
    knobs: Knobs,
    sharing: Sharing,
    /// In ns.
    tick: i64,
    /// The size of a line.
    line: u64,

    // Changed by charging, scans and balancing.
    caches: Vec<Cache>,
    cpus: Vec<CpuPart>,
    sharers: Vec<Sharers>,
    sharing_what: BTreeMap<Shared, usize>,
    members: Vec<Member>,
}

/// A last-level cache.
struct Cache {
    cpus: Vec<CpuId>,
    /// As balancing across caches saw it last (`sd_llc_shared->util_avg` and `capacity`).
    fill: Fill,
}

/// What a CPU's run queue has besides (`struct rq`, `cpu_epoch` and others).
struct CpuPart {
    cache: usize,
    /// All that fair tasks with a memory of their own ran here.
    ran: Window,
    /// The sharers for whom this CPU is to scan after its tick.
    scans_for: Option<usize>,
    line: Address,
}

impl CacheAware {
    /// `None` if it is off, or could decide nothing: under a single cache, or with a cache for each
    /// CPU (`sd_in_multi_llcs()`).
    pub(super) fn attach(attach: &mut Attach<'_>, chosen: &Chosen) -> Option<CacheAware> {
        let sharing = Sharing::chosen(chosen)?;
        let places: Vec<_> = (0..attach.cpus())
            .map(|cpu| attach.place(CpuId(cpu)))
            .collect();
        let caches = 1 + usize::from(places.iter().map(|place| place.llc).max()?);
        let mut under = vec![Vec::new(); caches];
        let mut threads = vec![0; 1 + usize::from(places.iter().map(|place| place.core).max()?)];
        for (cpu, place) in (0..).map(CpuId).zip(&places) {
            under[usize::from(place.llc)].push(cpu);
            threads[usize::from(place.core)] += 1;
        }
        if caches == 1 || under.iter().all(|cpus| cpus.len() == 1) {
            return None;
        }
        let line = attach.line();
        Some(CacheAware {
            knobs: Knobs::new(chosen, threads.into_iter().max()?),
            sharing,
            tick: attach.tick().as_ns() as i64,
            line,
            caches: under.into_iter().map(Cache::of).collect(),
            cpus: places
                .iter()
                .map(|place| CpuPart {
                    cache: place.llc.into(),
                    ran: Window::default(),
                    scans_for: None,
                    line: attach.data(Bytes(line)),
                })
                .collect(),
            sharers: Vec::new(),
            sharing_what: BTreeMap::new(),
            members: Vec::new(),
        })
    }

    /// The last-level cache of `cpu`.
    fn cache_of(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].cache
    }

    /// The cache that `task` prefers, as was found when it was charged last (`preferred_llc`).
    fn preferred_by(&self, task: TaskId) -> Option<usize> {
        self.members.get(task.index())?.prefers
    }
}

impl Cache {
    fn of(cpus: Vec<CpuId>) -> Cache {
        Cache {
            cpus,
            fill: Fill::default(),
        }
    }
}
