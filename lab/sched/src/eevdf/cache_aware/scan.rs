//! The scan: now and then one of the sharers looks over all CPUs for the cache under which they ran
//! most (`task_tick_cache()`, `task_cache_work()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::super::state::State;
use super::CacheAware;
use super::knobs::Knobs;
use super::occupancy::epoch_at;

/// How much more sharers must have had under another cache for that to be preferred.
const MUCH_MORE: u64 = 2;

/// What sharers had under a cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Had {
    /// The sum over its CPUs.
    occupancy: u64,
    /// The most on a CPU, and on which.
    most: u64,
    cpu: Option<CpuId>,
}

impl CacheAware {
    /// Plans a scan for those who share with `task`, which runs on `here`, unless this epoch has
    /// one.
    pub(super) fn plan(&mut self, task: TaskId, here: CpuId) -> bool {
        let Some(of) = self.members[task.index()].of else {
            return false;
        };
        let epoch = self.cpus[here.index()].ran.epoch;
        if self.sharers[of].epoch >= epoch {
            return false;
        }
        self.sharers[of].epoch = epoch;
        self.cpus[here.index()].scans_for = Some(of);
        true
    }

    /// Whether a planned scan is to be made. Sharers that are too many have no preferred cache, and
    /// are not counted any more.
    pub(super) fn may_scan(&mut self, of: usize, here: CpuId, ticks: u64) -> bool {
        let own = &mut self.sharers[of];
        if ticks < own.next_scan {
            return false;
        }
        own.next_scan = ticks + self.knobs.epoch_period;
        let too_many = self.are_too_many(of, here);
        if too_many {
            self.sharers[of].preferred = None;
        }
        !too_many
    }

    /// What sharers had of `cpu` lately, as of `ticks`.
    fn occupancy(&mut self, of: usize, cpu: CpuId, ticks: u64) -> u64 {
        let all = &mut self.cpus[cpu.index()].ran;
        all.advance(epoch_at(ticks, self.knobs.epoch_period));
        let own = &mut self.sharers[of].ran[cpu.index()];
        own.advance(all.epoch);
        own.part_of(all)
    }

    /// Takes the cache under which sharers had most, unless that is less than much more than they
    /// had under the one that they prefer already.
    pub(super) fn choose(&mut self, of: usize, had: &[Had]) {
        let preferred = self.sharers[of].preferred.map(|cpu| self.cache_of(cpu));
        let now = preferred.map_or(0, |cache| had[cache].occupancy);
        let mut best = Had::default();
        for had in had {
            if had.occupancy > best.occupancy {
                best = *had;
            }
        }
        if best.occupancy > MUCH_MORE * now {
            self.sharers[of].preferred = best.cpu;
        }
    }
}

impl Had {
    pub(super) fn add(&mut self, cpu: CpuId, occupancy: u64) {
        self.occupancy += occupancy;
        if occupancy > self.most {
            (self.most, self.cpu) = (occupancy, Some(cpu));
        }
    }
}

impl State {
    /// At the tick in which `task` runs.
    pub(in super::super) fn plan_scan(&mut self, context: &mut Context<'_>, task: TaskId) {
        let here = context.cpu();
        let aware = self.cache_aware.as_mut();
        if aware.is_some_and(|aware| aware.plan(task, here)) {
            context.raise_balance(here);
        }
    }

    /// Makes the scan that was planned on this CPU; false if there was none.
    pub(in super::super) fn scan_caches(&mut self, context: &mut Context<'_>) -> bool {
        let here = context.cpu();
        let Some(aware) = &mut self.cache_aware else {
            return false;
        };
        let Some(of) = aware.cpus[here.index()].scans_for.take() else {
            return false;
        };
        let ticks = aware.ticks(self.cpus[here.index()].clock);
        if !aware.may_scan(of, here, ticks) {
            return true;
        }
        let mut had = vec![Had::default(); aware.caches.len()];
        let mut running = 0;
        for cpu in (0..context.cpus()).map(CpuId) {
            let cache = aware.cache_of(cpu);
            if aware.caches[cache].cpus.len() == 1 || !context.is_online(cpu) {
                continue;
            }
            context.touch(aware.cpus[cpu.index()].line, Access::Write);
            context.touch(aware.line_of(of, cpu), Access::Write);
            context.touch(self.cpus[cpu.index()].line, Access::Read);
            had[cache].add(cpu, aware.occupancy(of, cpu, ticks));
            let current = self.cpus[cpu.index()].current;
            running +=
                u64::from(current.is_some_and(|task| aware.members[task.index()].of == Some(of)));
        }
        aware.choose(of, &had);
        let cpus = aware.caches[aware.cache_of(here)].cpus.len() as u64;
        let own = &mut aware.sharers[of];
        own.running = Knobs::mean_running(own.running, running, cpus);
        true
    }
}
