//! Where a task that becomes runnable goes (`select_task_rq_fair()`).
//!
//! A woken task goes near its last CPU or near its waker's, as their loads are; there to the first
//! idle CPU that is found under the same cache. A new task goes to the idlest CPU of the machine.

use warmq_classes::Overload;
use warmq_kernel::{Context, Wakeup, Why};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::load::CAPACITY;
use super::state::State;

/// How long until half of the changes of partners are forgotten, in ns.
const FLIPS_HALVED: i64 = 1_000_000_000;

impl State {
    /// The CPU in whose queue `task` should go. One that is still being switched away from, or
    /// whose dequeue is delayed, stays where it is.
    pub(super) fn select(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        let view = context.task(task);
        let last = self.task(task).cpu;
        if let Some(there) = view.on_cpu().filter(|there| view.may_run_on(*there)) {
            return there;
        }
        if self.entities[self.entity_of(task)].delayed && view.may_run_on(last) {
            return last;
        }
        let last = context.allowed_near(task, last);
        match why {
            _ if self.task(task).class.is_urgent() => self.select_urgent(context, task, last),
            Why::Fork => self.idlest(context, task),
            Why::Wakeup(wakeup) => {
                let near = self.near_waker(context, (task, last), wakeup);
                self.idle_near(context, task, (last, near))
            }
        }
    }

    /// Whether nothing runs or waits on `cpu`, or is about to be queued there
    /// (`available_idle_cpu()`).
    pub(super) fn is_idle(&self, cpu: CpuId) -> bool {
        let there = self.cpu(cpu);
        there.current.is_none()
            && there.wakeups_left == 0
            && self.queues[there.root].runnable == 0
            && there.urgent.iter().next().is_none()
    }

    /// The same, or only SCHED_IDLE tasks are there (`sched_idle_cpu()`).
    pub(super) fn is_as_good_as_idle(&self, cpu: CpuId) -> bool {
        if self.is_idle(cpu) {
            return true;
        }
        let there = self.cpu(cpu);
        let background = |task: TaskId| self.is_background(task);
        self.queues[there.root].runnable == 1 && there.current.is_some_and(background)
    }

    /// Whether only SCHED_IDLE tasks are on `cpu` (`sched_idle_rq()`).
    pub(super) fn has_background_only(&self, cpu: CpuId) -> bool {
        let there = self.cpu(cpu);
        let mut tasks = there.recency.iter();
        let queued = self.nr_running(cpu) - there.delayed;
        queued > 0
            && queued == there.recency.len() as u64
            && tasks.all(|task| self.is_background(*task))
    }

    /// Runnable tasks on `cpu`.
    pub(super) fn running(&self, cpu: CpuId) -> u64 {
        let there = self.cpu(cpu);
        self.queues[there.root].runnable + there.urgent.iter().count() as u64
    }

    pub(super) fn share_cache(&self, one: CpuId, other: CpuId) -> bool {
        one == other || self.under_cache(one).contains(&other)
    }

    /// The CPUs under the last-level cache of `cpu`, if there is more than one.
    pub(super) fn under_cache(&self, cpu: CpuId) -> &[CpuId] {
        let domains = self.cpu(cpu).domains.iter();
        let mut shared = domains.filter(|domain| domain.level.shares_cache);
        shared.next_back().map_or(&[], |domain| &domain.span)
    }

    /// The threads of the core of `cpu`.
    pub(super) fn threads(&self, cpu: CpuId) -> &[CpuId] {
        let first = self.cpu(cpu).domains.first();
        first
            .filter(|domain| domain.level.shares_core)
            .map_or(&[], |domain| &domain.span)
    }

    /// Counts how often the task that runs here changes whom it wakes (`record_wakee()`).
    fn record_wakee(&mut self, context: &Context<'_>, task: TaskId) {
        let here = context.cpu();
        let now = self.cpu(here).clock;
        let Some(waker) = self.cpu(here).current else {
            return;
        };
        let waker = self.task_mut(waker);
        if now > waker.flips_halved_at + FLIPS_HALVED {
            waker.wakee_flips /= 2;
            waker.flips_halved_at = now;
        }
        if waker.last_wakee != Some(task) {
            waker.last_wakee = Some(task);
            waker.wakee_flips += 1;
        }
    }

    /// Whether the waker has so many partners that drawing them all near would crowd a cache
    /// (`wake_wide()`).
    fn is_wide(&self, waker: Option<TaskId>, task: TaskId, here: CpuId) -> bool {
        let flips = |task: TaskId| self.task(task).wakee_flips;
        let (waker, woken) = (waker.map_or(0, flips), flips(task));
        let (more, less) = (waker.max(woken), waker.min(woken));
        let size = self.under_cache(here).len().max(1) as u64;
        less >= size && more >= less * size
    }

    /// The CPU of the waker, if that draws the task there, or its last one (`wake_affine()`).
    fn near_waker(
        &mut self,
        context: &mut Context<'_>,
        (task, last): (TaskId, CpuId),
        wakeup: Wakeup,
    ) -> CpuId {
        let here = context.cpu();
        self.record_wakee(context, task);
        let wide = self.is_wide(self.cpu(here).current, task, here);
        let affine = self.rules.wake_affine && !wide && context.task(task).may_run_on(here);
        if here == last || !affine {
            return last;
        }
        let mut domains = self.cpu(here).domains.iter();
        let Some(domain) = domains.find(|domain| domain.span.contains(&last)) else {
            return last;
        };
        let imbalance = domain.level.imbalance_pct;
        context.touch_all([last, here].map(|cpu| self.cpu(cpu).line), Access::Read);
        if self.is_idle(here) && self.share_cache(here, last) {
            return if self.is_idle(last) { last } else { here };
        }
        if wakeup.sync && self.running(here) == 1 {
            return here;
        }
        if self.is_idle(last) {
            return last;
        }
        match self.weighs_less(task, (here, last), wakeup.sync, imbalance) {
            true => here,
            false => last,
        }
    }

    /// Whether `here` would have less load with the task than its last CPU has now
    /// (`wake_affine_weight()`).
    fn weighs_less(
        &self,
        task: TaskId,
        (here, last): (CpuId, CpuId),
        sync: bool,
        imbalance: u64,
    ) -> bool {
        let mut own = self.load(here);
        if let Some(waker) = self.cpu(here).current.filter(|_| sync) {
            let waker = self.load_of(waker);
            if waker > own {
                return true;
            }
            own -= waker;
        }
        let moved = self.load_of(task);
        let there = self.load(last).saturating_sub(moved);
        let tolerated = 100 + (imbalance - 100) / 2;
        (own + moved) * 100 < there * tolerated + u64::from(sync)
    }

    /// The average load of `cpu` (`cpu_load()`).
    pub(super) fn load(&self, cpu: CpuId) -> u64 {
        self.queues[self.cpu(cpu).root].load.load
    }

    /// What `task` is of the load of its CPU (`task_h_load()`).
    pub(super) fn load_of(&self, task: TaskId) -> u64 {
        let entity = self.entity_of(task);
        let mut load = self.entities[entity].load.load;
        let mut queue = self.entities[entity].queue;
        while let Some(owner) = self.queues[queue].owner {
            let whole = self.queues[queue].load.load + 1;
            load = load * self.entities[owner].load.load / whole;
            queue = self.entities[owner].queue;
        }
        load
    }

    /// An idle CPU under the cache of `target`, or `target` itself (`select_idle_sibling()`).
    fn idle_near(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        (last, target): (CpuId, CpuId),
    ) -> CpuId {
        let recent = std::mem::replace(&mut self.task_mut(task).recent_cpu, last);
        self.refresh_demand(task);
        context.touch(self.cpu(target).line, Access::Read);
        if self.is_as_good_as_idle(target) && self.suits(task, target) {
            return target;
        }
        let view = context.task(task);
        for near in [last, recent] {
            let usable = self.share_cache(near, target) && view.may_run_on(near);
            if usable && self.is_as_good_as_idle(near) && self.suits(task, near) {
                return near;
            }
        }
        if let Some(domain) = self.unlike_domain(target) {
            let found = self.idle_of_unlike(context, task, (domain, target));
            return found.unwrap_or(target);
        }
        let idle_core = self.idle_core(context, task, target);
        if let Some(core) = idle_core {
            return core;
        }
        let siblings = self.threads(last).iter().copied();
        let idle =
            |cpu: &CpuId| self.is_as_good_as_idle(*cpu) && context.task(task).may_run_on(*cpu);
        if let Some(sibling) = siblings
            .filter(|cpu| self.share_cache(*cpu, target))
            .find(idle)
        {
            return sibling;
        }
        self.scan_cache(context, task, target).unwrap_or(target)
    }

    /// With SMT, the first thread of an idle core under the cache of `target`
    /// (`select_idle_core()`).
    fn idle_core(&self, context: &Context<'_>, task: TaskId, target: CpuId) -> Option<CpuId> {
        if self.threads(target).is_empty() {
            return None;
        }
        let view = context.task(task);
        let idle = |cpu: &CpuId| view.may_run_on(*cpu) && self.has_idle_core(*cpu);
        self.after(target).find(idle)
    }

    /// Whether all threads of the core of `cpu` are idle, itself as well, as far as there are
    /// others.
    pub(super) fn has_idle_core(&self, cpu: CpuId) -> bool {
        let mut threads = self.threads(cpu).iter();
        threads.all(|thread| self.is_idle(*thread))
    }

    /// Whether the other threads of the core of `cpu` are idle (`is_core_idle()`).
    pub(super) fn siblings_idle(&self, cpu: CpuId) -> bool {
        let mut threads = self.threads(cpu).iter();
        threads.all(|thread| *thread == cpu || self.is_idle(*thread))
    }

    /// The CPUs under the cache of `target`, from the one after it round to it.
    fn after(&self, target: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let span = self.under_cache(target);
        let at = span
            .iter()
            .position(|cpu| *cpu == target)
            .map_or(0, |at| at + 1);
        span[at.min(span.len())..]
            .iter()
            .chain(&span[..at.min(span.len())])
            .copied()
    }

    /// The first idle CPU after `target` under its cache; the busier they are, the fewer are looked
    /// at (`select_idle_cpu()`).
    fn scan_cache(&self, context: &mut Context<'_>, task: TaskId, target: CpuId) -> Option<CpuId> {
        let most = match self.rules.sis_util {
            true => {
                let first = self.under_cache(target).first();
                first.map_or(0, |first| self.cpu(*first).scanned)
            }
            false => usize::MAX,
        };
        for cpu in self.after(target).take(most) {
            context.touch(self.cpu(cpu).line, Access::Read);
            if context.task(task).may_run_on(cpu) && self.is_as_good_as_idle(cpu) {
                return Some(cpu);
            }
        }
        None
    }

    /// Among which CPUs a wakeup near `cpu` looks for an idle one: those under its cache; from 7.2
    /// on, where CPUs are of unlike capacity, those of all capacities, unless these span nodes
    /// (`claim_asym_sched_domain_shared()`).
    pub(super) fn scanned_span(&self, cpu: CpuId) -> &[CpuId] {
        let unlike = self.unlike_domain(cpu).filter(|_| self.rules.unlike_cores);
        match unlike.filter(|domain| !domain.level.spans_nodes) {
            Some(domain) => &domain.span,
            None => self.under_cache(cpu),
        }
    }

    /// How many CPUs of those wakeups look at, by how busy they are on average, where `domain` of
    /// `here` is theirs. It is found out when that is balanced
    /// (`update_idle_cpu_scan()`).
    ///
    /// ```text
    ///     n (1 - (u p)^2)      u := utilisation in 1      p := imbalance_pct of the level in 1
    /// ```
    pub(super) fn update_scanned(&mut self, context: &Context<'_>, here: CpuId, domain: usize) {
        let domain = &self.cpu(here).domains[domain];
        let span = self.scanned_span(here);
        if *domain.span != *span {
            return;
        }
        let cpus = span.len() as u64;
        let online = span.iter().filter(|cpu| context.is_online(**cpu));
        let utils = online.map(|cpu| {
            self.queues[self.cpu(*cpu).root]
                .load
                .util
                .min(self.cpu(*cpu).whole)
        });
        let mean = utils.sum::<u64>() / cpus;
        let percent = domain.level.imbalance_pct;
        let used = mean * mean * percent * percent / (10_000 * CAPACITY);
        let scanned = CAPACITY.saturating_sub(used) * cpus / CAPACITY;
        let first = span[0];
        self.cpu_mut(first).scanned = scanned as usize;
    }
}
