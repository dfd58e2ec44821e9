//! Idle CPUs: the previous one if its whole core is idle, then an idle core under its cache, then
//! the previous one beside a busy sibling, then its sibling, then one under its cache, then one
//! under the nearest cache that has one: of its node, then of others, if `decide::crosses_node`
//! says so. A member of a group looks at its home only.

use warmq_decide::{self as decide, Reach};
use warmq_kernel::{Context, WakeContext, Why};
use warmq_machine::Access;
use warmq_units::{CpuId, CpuSet, TaskId};

use super::state::{EntityId, Kind, State, ns};

/// The task that wakes another, if it is one.
fn waker(why: Why) -> Option<TaskId> {
    match why {
        Why::Wakeup(it) if it.context == WakeContext::Task => it.current,
        Why::Wakeup(_) | Why::Fork => None,
    }
}

/// Whether the waker is about to sleep.
fn is_sync(why: Why) -> bool {
    matches!(why, Why::Wakeup(it) if it.sync)
}

impl State {
    /// Whether `cpu` idles, and nobody has found a task for it.
    pub(super) fn is_idle(&self, context: &Context<'_>, cpu: CpuId) -> bool {
        self.idle.contains(cpu) && context.is_online(cpu)
    }

    /// Takes a CPU out of the mask of idle ones: a task was found for it.
    pub(super) fn claim(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.idle.remove(cpu);
        context.touch(self.idle_line, Access::Write);
    }

    fn first_idle<'a>(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpus: impl IntoIterator<Item = &'a CpuId>,
    ) -> Option<CpuId> {
        let view = context.task(task);
        cpus.into_iter()
            .copied()
            .find(|cpu| self.is_idle(context, *cpu) && view.may_run_on(*cpu))
    }

    /// The first idle CPU of `cpus` whose core is idle; if there is none, the first that is idle.
    fn first_idle_core<'a>(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpus: impl IntoIterator<Item = &'a CpuId>,
    ) -> Option<CpuId> {
        let view = context.task(task);
        let fits = |cpu: &CpuId| self.is_idle(context, *cpu) && view.may_run_on(*cpu);
        let mut idle = cpus.into_iter().copied().filter(fits);
        let first = idle.next()?;
        let whole = |cpu: &CpuId| self.is_core_idle(context, *cpu);
        let core = std::iter::once(first).chain(idle).find(whole);
        core.or(Some(first))
    }

    /// Whether `task` goes to the CPU that was found for it when it woke. If the kernel has it
    /// queued elsewhere, that CPU idles on.
    pub(super) fn goes_where_found(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> bool {
        let Some(found) = self.tasks[task.index()].found.take() else {
            return false;
        };
        if found != cpu {
            match context.running_on(found) {
                None => self.idle.insert(found),
                Some(_) => self.idle.remove(found),
            }
        }
        found == cpu
    }

    /// Where a task that wakes should go.
    pub(super) fn select(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        context.touch(self.tasks[task.index()].line, Access::Read);
        context.touch(self.idle_line, Access::Read);
        let view = context.task(task);
        let prev = view.last_cpu();
        // The CPU that still switches away from the task is the one that sees when it is done.
        if view.on_cpu() == Some(prev) {
            return prev;
        }
        let allowed = |cpu| view.may_run_on(cpu);
        let fallback = match allowed(prev) {
            true => prev,
            false => self.topology.first_cpu(view).unwrap_or(prev),
        };
        // The kernel does not ask the program about a task that may run on one CPU only.
        if self.topology.cpus().len() == 1 {
            return prev;
        }
        if let Some(only) = self.tasks[task.index()].only {
            // It may have gone offline, which set_cpumask has not reported yet.
            return if allowed(only) { only } else { fallback };
        }
        let entity = self.entity_for(view, prev);
        let found = match self.entities[entity].kind {
            Kind::Unmanaged { .. } | Kind::Pinned { .. } => {
                self.select_unmanaged(context, task, prev, why)
            }
            Kind::Group { .. } => self.idle_at_home(context, task, entity, prev),
        };
        if let Some(cpu) = found {
            self.claim(context, cpu);
        }
        self.tasks[task.index()].found = found;
        let cpu = found.unwrap_or_else(|| self.cpu_to_queue_at(context, task, prev));
        match context.task(task).may_run_on(cpu) {
            true => cpu,
            false => fallback,
        }
    }

    /// Where a task is queued if there is no idle CPU for it: where it was, or at its home.
    pub(super) fn cpu_to_queue_at(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        prev: CpuId,
    ) -> CpuId {
        let entity = self.entity_for(context.task(task), prev);
        let Some(group) = self.group_of_entity(entity) else {
            return prev;
        };
        if self.serves(prev, entity) {
            return prev;
        }
        let home = self.topology.cpus_of_place(self.groups[group].home);
        let last = &mut self.cpus[context.cpu().index()].distributed;
        let next = home.iter().find(|cpu| **cpu > *last).or(home.first());
        *last = next.copied().unwrap_or(prev);
        *last
    }

    /// Two tasks that wake each other in turn belong under one cache: such a task looks for an idle
    /// CPU beside its waker only. If there is none, and the waker is about to sleep, it takes the
    /// waker's place, unless somebody waits for that.
    fn select_unmanaged(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        prev: CpuId,
        why: Why,
    ) -> Option<CpuId> {
        let (here, is_new) = (context.cpu(), why == Why::Fork);
        if !self.is_partner(task, why) {
            return self
                .idle_in_domain(context, task, prev)
                .or_else(|| self.idle_elsewhere(context, task, prev, is_new));
        }
        let near = match self.topology.domain_of(here) == self.topology.domain_of(prev) {
            true => prev,
            false => here,
        };
        let takes_over = is_sync(why) && context.task(task).may_run_on(here);
        let found = self.idle_in_domain(context, task, near);
        if found.is_none() && takes_over && !self.waits_at(here) {
            return Some(here);
        }
        found.or_else(|| self.idle_elsewhere(context, task, near, is_new))
    }

    /// Whether `task` and its waker wake each other in turn, and nobody else.
    fn is_partner(&mut self, task: TaskId, why: Why) -> bool {
        let Some(waker) = waker(why).filter(|waker| *waker != task) else {
            return false;
        };
        let (wakers_turns, wakers_waker) = {
            let state = &self.tasks[waker.index()];
            (state.turns, state.waker)
        };
        let state = &mut self.tasks[task.index()];
        let again = state.waker.replace(waker) == Some(waker);
        state.turns = decide::in_turn(state.turns, again, wakers_waker == Some(task));
        state.turns >= decide::PARTNERS && wakers_turns >= decide::PARTNERS - 1
    }

    /// Whether any task waits for `cpu`.
    pub(super) fn waits_at(&self, cpu: CpuId) -> bool {
        let groups = self.places[self.topology.place_of(cpu)].groups.iter();
        let groups = groups.map(|group| self.groups[*group].entity);
        let own = [
            self.unmanaged(self.topology.domain_of(cpu)),
            self.pinned(cpu),
        ];
        let mut entities = own.into_iter().chain(groups);
        entities.any(|entity| !self.entities[entity].queue.is_empty())
    }

    fn idle_in_domain(&self, context: &Context<'_>, task: TaskId, prev: CpuId) -> Option<CpuId> {
        let near = self.topology.cpus_of_domain(self.topology.domain_of(prev));
        self.idle_among(context, task, near, prev)
    }

    /// An idle CPU of `cpus`. Two tasks on one core slow each other down, so an idle core comes
    /// before the warm data of a CPU whose sibling is busy.
    fn idle_among(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpus: &[CpuId],
        prev: CpuId,
    ) -> Option<CpuId> {
        let first = cpus.contains(&prev).then_some(prev);
        let siblings = first.map_or(&[][..], |it| self.topology.siblings(it));
        let siblings = siblings.iter().filter(|it| cpus.contains(it));
        let whole = |cpu: &&CpuId| self.is_core_idle(context, **cpu);
        self.first_idle(context, task, first.iter().filter(whole))
            .or_else(|| self.first_idle(context, task, cpus.iter().filter(whole)))
            .or_else(|| self.first_idle(context, task, &first))
            .or_else(|| self.first_idle(context, task, siblings))
            .or_else(|| self.first_idle(context, task, cpus))
    }

    /// An idle CPU under the nearest other cache that has one: of the node of `prev`, or of any, if
    /// `far` or if more waits there than it serves soon. Who may not run everywhere under its cache
    /// goes anywhere, too. (A new task has no memory yet.)
    fn idle_elsewhere(
        &self,
        context: &Context<'_>,
        task: TaskId,
        prev: CpuId,
        far: bool,
    ) -> Option<CpuId> {
        let (topology, view) = (&self.topology, context.task(task));
        let domain = topology.domain_of(prev);
        let cpus_at = |reach| {
            let domains = topology.near(domain).iter().copied();
            let domains = domains.filter(move |other| topology.reach(domain, *other) == reach);
            domains.flat_map(|other| topology.cpus_of_domain(other))
        };
        let near = self.first_idle_core(context, task, cpus_at(Reach::SameNode));
        let own = topology.cpus_of_domain(domain).iter();
        let far = far
            || near.is_none() && self.gives_far(domain, ns(context))
            || !own.copied().all(|cpu| view.may_run_on(cpu));
        let elsewhere = || self.first_idle_core(context, task, cpus_at(Reach::OtherNode));
        near.or_else(|| far.then(elsewhere).flatten())
    }

    /// Whether an idle CPU of another node takes unmanaged tasks that wait in `domain`.
    pub(super) fn gives_far(&self, domain: usize, now: u64) -> bool {
        let waiting = self.entities[self.unmanaged(domain)].queue.iter().count();
        let domain = &self.domains[domain];
        let since = domain.beside_idle_since;
        let lasted = since.map_or(0, |since| now.saturating_sub(since));
        decide::crosses_node(
            &self.policy,
            waiting as u64,
            domain.time.cpus.into(),
            lasted,
        )
    }

    /// An idle CPU of `cpus` for whatever waits, if possible one whose core is idle.
    pub(super) fn any_idle(&self, context: &Context<'_>, cpus: &[CpuId]) -> Option<CpuId> {
        let idle = || {
            cpus.iter()
                .copied()
                .filter(|cpu| self.is_idle(context, *cpu))
        };
        let mut whole = idle().filter(|cpu| self.is_core_idle(context, *cpu));
        whole.next().or_else(|| idle().next())
    }

    /// Whether the other CPUs of the core of `cpu` are idle.
    fn is_core_idle(&self, context: &Context<'_>, cpu: CpuId) -> bool {
        let mut siblings = self.topology.siblings(cpu).iter();
        siblings.all(|it| self.is_idle(context, *it))
    }

    fn idle_at_home(
        &self,
        context: &Context<'_>,
        task: TaskId,
        entity: EntityId,
        prev: CpuId,
    ) -> Option<CpuId> {
        let group = self.group_of_entity(entity)?;
        let home = self.topology.cpus_of_place(self.groups[group].home);
        self.idle_among(context, task, &home, prev)
    }

    /// An idle CPU that would take `task`, which is queued and was last on `cpu`.
    pub(super) fn idle_for_queued(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> Option<CpuId> {
        let entity = self.tasks[task.index()].entity?;
        match self.entities[entity].kind {
            Kind::Pinned { cpu: only } => Some(only).filter(|only| self.is_idle(context, *only)),
            Kind::Unmanaged { .. } => self.idle_to_kick(context, task, cpu),
            Kind::Group { .. } => self.idle_at_home(context, task, entity, cpu),
        }
    }

    /// An idle CPU to kick for an unmanaged task that is queued under the cache of `cpu`, if
    /// possible one whose core is idle.
    fn idle_to_kick(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> Option<CpuId> {
        let near = self.topology.cpus_of_domain(self.topology.domain_of(cpu));
        // Where not all CPUs are allowed, the kernel looks at the task's own first
        // (scx_bpf_select_cpu_and()).
        let all = self.topology.cpus().len();
        let allowed = context.task(task).allowed().map_or(all, CpuSet::len);
        let own = (allowed < all).then_some(cpu);
        self.first_idle_core(context, task, own.iter().chain(near))
            .or_else(|| self.idle_elsewhere(context, task, cpu, false))
    }

    /// Kicks an idle CPU, if there is one, for `task`, which was just queued. Returns whether there
    /// was one.
    pub(super) fn kick_idle(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> bool {
        let found = self.idle_for_queued(context, task, cpu);
        if let Some(idle) = found {
            self.claim(context, idle);
            context.reschedule(idle);
        }
        found.is_some()
    }
}
