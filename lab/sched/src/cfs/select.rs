//! Where a task that becomes runnable goes: `try_to_wake_up()` and `sched_balance_self()` of
//! 2.6.24.

use warmq_kernel::{Context, Wakeup, Why};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::domains::Domain;
use crate::fair::spans::descend;

use super::state::{Class, State};
use super::weights::NICE_0;

impl State {
    /// The CPU in whose queue `task` should go. One that is still being switched away from stays
    /// where that happens.
    pub(super) fn select(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        let view = context.task(task);
        if let Some(there) = view.on_cpu().filter(|there| view.may_run_on(*there)) {
            return there;
        }
        let last = context.allowed_near(task, self.tasks[task.index()].cpu);
        match why {
            Why::Fork if self.tunables.fork_balance => self.idlest(context, task),
            Why::Fork => last,
            Why::Wakeup(wakeup) => {
                let near = self.near_waker(context, task, last, wakeup);
                self.idle_near(context, task, near)
            }
        }
    }

    /// The CPU of the waker, if that draws the task there, or `last`: a task that is not hot
    /// follows a synchronous wakeup, others follow if the loads allow it.
    fn near_waker(
        &self,
        context: &mut Context<'_>,
        task: TaskId,
        last: CpuId,
        wakeup: Wakeup,
    ) -> CpuId {
        let here = context.cpu();
        if here == last || !context.task(task).may_run_on(here) {
            return last;
        }
        let mut domains = self.cpu(here).domains.iter();
        let Some(domain) = domains.find(|domain| domain.span.contains(&last)) else {
            return last;
        };
        context.touch_all([last, here].map(|cpu| self.cpu(cpu).line), Access::Read);
        context.touch(self.entities[self.entity_of(task)].line, Access::Read);
        if wakeup.sync && !self.is_hot(task, last) {
            return here;
        }
        let level = domain.level;
        let load = self.cpu(last).source_load(level.wake_idx);
        let mut own = self.cpu(here).target_load(level.wake_idx);
        let a_task = match self.cpu(here).running {
            0 => NICE_0,
            running => self.cpu(here).load / running,
        };
        if wakeup.sync {
            let waker = self.cpu(here).current.map(|waker| self.entity_of(waker));
            own = own.saturating_sub(waker.map_or(0, |waker| self.entities[waker].weight));
        }
        let both = own + self.cpu(last).target_load(level.wake_idx);
        let weight = self.entities[self.entity_of(task)].weight;
        let tolerated = 100 + (level.imbalance_pct - 100) / 2;
        match own <= load && both <= a_task || 100 * (own + weight) <= tolerated * load {
            true => here,
            false => last,
        }
    }

    /// Whether a task ran on `cpu` so recently that its data are still in the cache (`task_hot()`).
    pub(super) fn is_hot(&self, task: TaskId, cpu: CpuId) -> bool {
        let state = &self.tasks[task.index()];
        let since = self.cpu(cpu).clock.now() - self.entities[state.entity].charged_at;
        state.class == Class::Fair && since < self.tunables.migration_cost
    }

    /// If `cpu` runs one task, an idle thread of its core, or an idle core under its cache
    /// (`wake_idle()`).
    fn idle_near(&self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) -> CpuId {
        context.touch(self.cpu(cpu).line, Access::Read);
        let is_idle = |cpu: CpuId| self.cpu(cpu).current.is_none();
        if is_idle(cpu) || self.cpu(cpu).running > 1 {
            return cpu;
        }
        for domain in &self.cpu(cpu).domains {
            if !domain.level.wake_idle {
                break;
            }
            for other in &domain.span {
                if !context.task(task).may_run_on(*other) {
                    continue;
                }
                context.touch(self.cpu(*other).line, Access::Read);
                if is_idle(*other) {
                    return *other;
                }
            }
        }
        cpu
    }

    /// The idlest CPU for a new task, from the largest domain down (`sched_balance_self()`). All
    /// levels have it for programs that are loaded (`SD_BALANCE_EXEC`).
    pub(super) fn idlest(&self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        let size = |domain: &Domain| domain.span.len();
        let idlest = descend(
            context.cpu(),
            |cpu| self.cpu(cpu).domains.iter().map(size).collect(),
            |cpu, domain| self.idlest_in(context, task, (cpu, domain)),
        );
        context.allowed_near(task, idlest)
    }

    /// The idlest CPU of the idlest group of a domain, if that is better than the own group.
    fn idlest_in(
        &self,
        context: &mut Context<'_>,
        task: TaskId,
        (cpu, domain): (CpuId, usize),
    ) -> Option<CpuId> {
        let domain = &self.cpu(cpu).domains[domain];
        let lines = domain.span.iter().map(|cpu| self.cpu(*cpu).line);
        context.touch_all(lines, Access::Read);
        let view = context.task(task);
        let index = domain.level.forkexec_idx;
        let sum = |group: &Vec<CpuId>, own: bool| -> u64 {
            let online = group.iter().filter(|cpu| context.is_online(**cpu));
            let loads = online.map(|cpu| match own {
                true => self.cpu(*cpu).source_load(index),
                false => self.cpu(*cpu).target_load(index),
            });
            loads.sum()
        };
        let usable = |group: &&Vec<CpuId>| group.iter().any(|cpu| view.may_run_on(*cpu));
        let (own, others) = domain.groups.split_first()?;
        let idlest = others
            .iter()
            .filter(usable)
            .min_by_key(|group| sum(group, false))?;
        let this = if usable(&own) { sum(own, true) } else { 0 };
        let tolerated = 100 + (domain.level.imbalance_pct - 100) / 2;
        if 100 * this < tolerated * sum(idlest, false) {
            return None;
        }
        let allowed = idlest.iter().filter(|cpu| view.may_run_on(**cpu));
        allowed.min_by_key(|cpu| self.cpu(**cpu).load).copied()
    }
}
