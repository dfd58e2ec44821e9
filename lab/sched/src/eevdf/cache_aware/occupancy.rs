//! How much of each CPU sharers had lately: CPU time that is forgotten by half each epoch
//! (`__update_mm_sched()`, `account_mm_sched()`).

use warmq_units::{Address, CpuId, TaskId};

use super::super::state::State;
use super::CacheAware;
use super::knobs::Sharing;

/// All of a CPU, as a part of what ran there (`NICE_0_LOAD`).
const WHOLE: u64 = 1 << 20;

/// What ran on a CPU lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// In ns.
    pub(super) ran: u64,
    pub(super) epoch: u64,
}

/// The epoch of a time in ticks, where an epoch lasts `period` of them.
pub(super) fn epoch_at(ticks: u64, period: u64) -> u64 {
    ticks.div_ceil(period)
}

impl Window {
    /// Forgets what is due by `epoch`.
    pub(super) fn advance(&mut self, epoch: u64) {
        if epoch <= self.epoch {
            return;
        }
        let halvings = epoch - self.epoch;
        self.ran = match halvings {
            0..64 => self.ran >> halvings,
            _ => 0,
        };
        self.epoch = epoch;
    }

    /// What part of `all` that ran on the same CPU this is (`fraction_mm_sched()`).
    pub(super) fn part_of(&self, all: &Window) -> u64 {
        WHOLE * self.ran / (all.ran + 1)
    }
}

impl CacheAware {
    pub(super) fn ticks(&self, clock: i64) -> u64 {
        (clock / self.tick) as u64
    }

    /// Whether sharers are too many for the cache of `cpu`, or nobody but one task
    /// (`invalid_llc_nr()`).
    pub(super) fn are_too_many(&self, sharers: usize, cpu: CpuId) -> bool {
        let those = &self.sharers[sharers];
        let cpus = self.caches[self.cache_of(cpu)].cpus.len() as u64;
        those.members <= 1 || self.knobs.are_too_many(those.running, cpus)
    }

    /// Counts what `task` ran on `cpu`, and notes which cache its sharers prefer now, if any
    /// (`account_mm_sched()`). The lines that are written.
    pub(super) fn charge(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        ticks: u64,
        ran: u64,
    ) -> [Option<Address>; 2] {
        let member = self.members[task.index()];
        if member.of.is_none() && self.sharing == Sharing::Process {
            return [None; 2];
        }
        let here = &mut self.cpus[cpu.index()];
        here.ran.advance(epoch_at(ticks, self.knobs.epoch_period));
        here.ran.ran += ran;
        let (epoch, line) = (here.ran.epoch, here.line);
        let Some(of) = member.of else {
            return [Some(line), None];
        };
        let own = &mut self.sharers[of];
        own.ran[cpu.index()].advance(epoch);
        own.ran[cpu.index()].ran += ran;
        let stale = epoch.saturating_sub(own.epoch) > self.knobs.epoch_affinity_timeout;
        if stale || self.are_too_many(of, cpu) {
            self.sharers[of].preferred = None;
        }
        self.members[task.index()].prefers = self.preferred_cache(of);
        [Some(line), Some(self.line_of(of, cpu))]
    }

    /// The cache that sharers prefer (`get_pref_llc()`).
    fn preferred_cache(&self, sharers: usize) -> Option<usize> {
        let cpu = self.sharers[sharers].preferred?;
        Some(self.cache_of(cpu))
    }

    /// Where it is written what sharers ran on `cpu`.
    pub(super) fn line_of(&self, sharers: usize, cpu: CpuId) -> Address {
        self.sharers[sharers].lines + self.line * cpu.index() as u64
    }
}

impl State {
    /// `task` has run on its CPU for `ran` ns.
    pub(in super::super) fn count_occupancy(&mut self, task: TaskId, ran: i64) {
        let Some(aware) = &mut self.cache_aware else {
            return;
        };
        let cpu = self.tasks[task.index()].cpu;
        let ticks = aware.ticks(self.cpus[cpu.index()].clock);
        let lines = aware.charge(task, cpu, ticks, ran as u64);
        for line in lines.into_iter().flatten() {
            self.effects.write(line);
        }
    }
}
