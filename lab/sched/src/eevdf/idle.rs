//! Balancing for CPUs that idle without a tick: a busy CPU wakes one of them, and that balances for
//! all (`nohz_balancer_kick()`, `_nohz_idle_balance()`).

use warmq_kernel::Context;
use warmq_units::CpuId;

use super::balance::{Idleness, Pull};
use super::state::State;

impl State {
    /// At its tick a busy CPU wakes an idle one if it could be relieved of a task and some idle CPU
    /// is due. All others that could be relieved wake the same one, so that it is woken once.
    pub(super) fn kick_idle(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        if !self.could_be_relieved(here) {
            return;
        }
        let clock = self.cpu(here).clock;
        let mut first = None;
        let is_due = self.idle_without_tick(context, here).any(|cpu| {
            first = first.or(Some(cpu));
            self.cpu(cpu).next_balance <= clock
        });
        if let Some(first) = first.filter(|_| is_due) {
            self.cpu_mut(first).kicked = true;
            context.raise_balance(first);
        }
    }

    /// Whether tasks wait on `cpu`, others take a part of its time, or another CPU under its cache
    /// is busy, too: its threads may be crowded on fewer cores than there are, and other caches may
    /// be idle. From here it is not known where, so whoever is woken finds out.
    fn could_be_relieved(&self, cpu: CpuId) -> bool {
        let there = self.cpu(cpu);
        let waits = self.running(cpu) >= 2;
        let pct = there.domains.first().map(|least| least.level.imbalance_pct);
        let fair = self.queues[there.root].runnable;
        waits
            || fair >= 1 && pct.is_some_and(|pct| self.lacks_capacity(cpu, pct))
            || there.current.is_some() && self.busy_under_cache(cpu) > 1
    }

    /// CPUs under the cache of `cpu` that run tasks (`nr_busy_cpus`).
    fn busy_under_cache(&self, cpu: CpuId) -> usize {
        let under = self.under_cache(cpu).iter();
        under.filter(|cpu| !self.resting.contains(cpu)).count()
    }

    /// The CPUs that idle and balance with `here`, in number order (`nohz.idle_cpus_mask`).
    fn idle_without_tick<'a>(
        &'a self,
        context: &'a Context<'_>,
        here: CpuId,
    ) -> impl Iterator<Item = CpuId> + 'a {
        let widest = self.cpu(here).domains.last().map(|widest| &widest.span);
        let resting = self.resting.iter().copied();
        resting.filter(move |cpu| {
            let together = widest.is_some_and(|span| span.contains(cpu));
            together && self.is_idle(*cpu) && context.is_online(*cpu)
        })
    }

    /// Balances for every idle CPU that is due, from the next one round to this one. If something
    /// can be pulled, that comes first, and this CPU goes on afterwards. It stops once it has a
    /// task itself.
    pub(super) fn look_for_all_idle(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let (before, after): (Vec<CpuId>, Vec<CpuId>) = self
            .idle_without_tick(context, here)
            .partition(|cpu| *cpu <= here);
        for cpu in after.into_iter().chain(before) {
            self.sync(context, cpu);
            if !self.is_due(cpu) {
                continue;
            }
            let found = self.look_in_intervals(context, cpu, Idleness::Idle);
            if found.is_some() {
                self.cpu_mut(here).kicked = true;
                context.raise_balance(here);
                return found;
            }
        }
        None
    }
}
