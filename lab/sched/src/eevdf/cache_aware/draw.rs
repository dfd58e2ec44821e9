//! Balancing by caches: which groups of CPUs have tasks that prefer the cache of the CPU that
//! balances, which tasks stay where they are, and which may be taken while they run.

use warmq_units::{CpuId, TaskId};

use super::super::balance::Idleness;
use super::super::domains::Domain;
use super::super::standing::Standing;
use super::super::state::State;
use super::CacheAware;
use super::policy::{Fill, Verdict};

impl CacheAware {
    /// What is said of a move of a task of `util` between two CPUs, one of which is under the cache
    /// that it prefers.
    fn verdict(&self, from: CpuId, to: CpuId, util: u64, to_preferred: bool) -> Verdict {
        let fill = |cpu| self.caches[self.cache_of(cpu)].fill;
        self.knobs.verdict(fill(from), fill(to), util, to_preferred)
    }

    /// What is said of moving `task` of `util` (`can_migrate_llc_task()`). Sharers that are too
    /// many prefer no cache from now on.
    fn verdict_on(&mut self, task: TaskId, util: u64, from: CpuId, to: CpuId) -> Verdict {
        let Some(of) = self.members[task.index()].of else {
            return Verdict::Free;
        };
        let Some(preferred) = self.sharers[of].preferred else {
            return Verdict::Free;
        };
        if self.are_too_many(of, to) {
            self.sharers[of].preferred = None;
            return Verdict::Free;
        }
        let preferred = self.cache_of(preferred);
        let to_preferred = self.cache_of(to) == preferred;
        match to_preferred || self.cache_of(from) == preferred {
            true => self.verdict(from, to, util, to_preferred),
            false => Verdict::Free,
        }
    }
}

impl State {
    /// How many tasks of `cpu` prefer the cache of `to`, which is another than its own
    /// (`llc_counts`).
    pub(in super::super) fn preferring(&self, cpu: CpuId, to: CpuId) -> u64 {
        let Some(aware) = &self.cache_aware else {
            return 0;
        };
        let cache = aware.cache_of(to);
        if aware.cache_of(cpu) == cache {
            return 0;
        }
        let tasks = self.cpu(cpu).recency.iter();
        tasks
            .filter(|task| aware.preferred_by(**task) == Some(cache))
            .count() as u64
    }

    /// Whether caches count in balancing `domain` of `here`: after too many failures they do not
    /// (`llc_balance()`, `migrate_degrades_llc()`).
    fn counts_caches(&self, here: CpuId, domain: usize) -> bool {
        let domain = &self.cpu(here).domains[domain];
        !domain.level.shares_cache && domain.failed <= domain.level.cache_nice_tries
    }

    /// Marks the groups of `domain` from which tasks are to be drawn to `here`, and notes how full
    /// caches are (`llc_balance()`, `record_sg_llc_stats()`). `standings` are those of its groups.
    pub(in super::super) fn see_caches(
        &mut self,
        here: CpuId,
        domain: usize,
        idleness: Idleness,
        standings: &mut [Standing],
    ) {
        if self.cache_aware.is_none() {
            return;
        }
        let counts = self.counts_caches(here, domain);
        let below = domain.checked_sub(1);
        let below = below.is_some_and(|below| self.cpu(here).domains[below].level.shares_cache);
        let shares = self.cpu(here).domains[domain].level.shares_cache;
        let records = below && !shares && idleness != Idleness::NewlyIdle;
        let Domain {
            groups, capacities, ..
        } = &self.cpus[here.index()].domains[domain];
        let Some(aware) = &mut self.cache_aware else {
            return;
        };
        for (at, (group, standing)) in groups.iter().zip(standings).enumerate() {
            let first = group.cpus[0];
            // A task that needs a larger CPU goes first.
            let misfits = capacities.is_any() && standing.misfit > 0;
            standing.is_drawn = counts
                && !misfits
                && at > 0
                && standing.preferring > 0
                && aware.verdict(first, here, 0, true) == Verdict::Drawn;
            if records {
                let cache = aware.cache_of(first);
                aware.caches[cache].fill = Fill {
                    util: standing.util,
                    capacity: standing.capacity,
                };
            }
        }
    }

    /// Whether `task` is to stay on `from` for the sake of a cache, where `here` balances `domain`
    /// (`migrate_degrades_llc()`). `drawn`: only tasks that prefer the cache of `here` are asked
    /// for.
    pub(in super::super) fn is_held(
        &mut self,
        task: TaskId,
        from: CpuId,
        (here, domain): (CpuId, usize),
        drawn: bool,
    ) -> bool {
        if !self.counts_caches(here, domain) {
            return false;
        }
        let unlike = self.cpu(here).domains[domain].capacities.is_any();
        if unlike && !self.fits(task, here) && self.fits(task, from) {
            // task_misfits_asym_cpu()
            return self.cache_aware.is_some();
        }
        let util = self.used_by(task);
        let Some(aware) = &mut self.cache_aware else {
            return false;
        };
        let cache = aware.cache_of(here);
        if drawn && aware.preferred_by(task) != Some(cache) {
            return true;
        }
        aware.cache_of(from) != cache
            && aware.verdict_on(task, util, from, here) == Verdict::Forbidden
    }

    fn used_by(&self, task: TaskId) -> u64 {
        self.entities[self.entity_of(task)].load.util
    }

    /// Whether to push the running task of `from` to `here` would take it from a cache where all
    /// tasks of that CPU want to stay (`alb_break_llc()`).
    pub(in super::super) fn breaks_preference(&self, from: CpuId, here: CpuId) -> bool {
        let Some(aware) = &self.cache_aware else {
            return false;
        };
        let own = aware.cache_of(from);
        let tasks = &self.cpu(from).recency;
        let at_home = |task: &TaskId| aware.preferred_by(*task) == Some(own);
        if own == aware.cache_of(here) || tasks.is_empty() || !tasks.iter().all(at_home) {
            return false;
        }
        let util = self.cpu(from).current.map_or(0, |task| self.used_by(task));
        self.running(from) <= 1 || aware.verdict(from, here, util, false) == Verdict::Forbidden
    }

    /// Whether `task` prefers the cache of `cpu`.
    pub(in super::super) fn prefers_cache_of(&self, task: TaskId, cpu: CpuId) -> bool {
        let aware = self.cache_aware.as_ref();
        aware.is_some_and(|aware| aware.preferred_by(task) == Some(aware.cache_of(cpu)))
    }
}
