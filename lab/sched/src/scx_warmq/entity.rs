//! Tasks and entities: a task joins an entity when it becomes runnable, is charged while it runs,
//! goes to another entity when its fragment or its affinity changes, and leaves when it sleeps.

use warmq_decide::{self as decide, Domain, Policy};
use warmq_kernel::{Context, View};
use warmq_machine::Access;
use warmq_units::{CpuId, CpuSet, TaskId};

use super::queue::Waiting;
use super::state::{EntityId, State, ns};
use super::weight::weight_of;

/// Where a task that joins an entity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// From another entity, without having slept.
    Awake,
    /// From a sleep, or it is new. `keeps_lag`: it slept long enough to keep positive lag.
    Woken { keeps_lag: bool },
}

impl State {
    /// The entity of a task that is, or will be, on `cpu`.
    pub(super) fn entity_for(&mut self, view: View<'_>, cpu: CpuId) -> EntityId {
        let state = &self.tasks[view.id().index()];
        if state.only.is_some() {
            return self.pinned(cpu);
        }
        if let Some(group) = state.group {
            if self.topology.fits(view, self.groups[group].home) {
                return self.groups[group].entity;
            }
            self.groups[group].narrow = true;
        }
        self.unmanaged(self.topology.domain_of(cpu))
    }

    /// Makes a task runnable in `entity`.
    pub(super) fn join(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        entity: EntityId,
        coming: Coming,
    ) {
        let domain = self.domain_of_entity(entity);
        context.touch(self.domains[domain].line, Access::Read);
        let weight = self.usable_weight(context, task, entity, 0);
        let vtime = self.place(task, entity, weight, coming);
        self.add_weight(context, entity, vtime, weight);
        self.entities[entity].time.runnable += 1;
        self.domains[domain].time.runnable += 1;
        let state = &mut self.tasks[task.index()];
        state.vtime = vtime;
        state.weight = weight;
        state.entity = Some(entity);
        context.touch(state.line, Access::Write);
        context.touch(state.node, Access::Write);
    }

    /// The vtime of a task that joins `entity`.
    fn place(&mut self, task: TaskId, entity: EntityId, weight: u64, coming: Coming) -> u64 {
        let (domain, cpus) = (self.domain_of_entity(entity), self.cpus_of_entity(entity));
        let succession = decide::succession(&self.policy, self.group_of_entity(entity).is_some());
        let (state, time) = (&self.tasks[task.index()], &self.domains[domain].time);
        let members = &mut self.entities[entity].time;
        if members.weight > 0 {
            if let Coming::Woken { keeps_lag } = coming
                && state.left == Some(entity)
            {
                let vtime = state.vtime;
                return decide::place_among(&self.policy, members, cpus, vtime, weight, keeps_lag);
            }
            // Its members may have had CPUs to themselves for long.
            decide::clamp_entity(&self.policy, members, time, succession);
        }
        let vruntime = match state.vruntime {
            None => time.avg_vruntime,
            Some(vruntime) if state.domain == domain => vruntime,
            Some(vruntime) => {
                let from = self.domains[state.domain].time.avg_vruntime;
                decide::migrate_vruntime(vruntime, from, time.avg_vruntime)
            }
        };
        let vruntime = match coming {
            Coming::Awake => decide::place_awake(&self.policy, time, vruntime, weight),
            Coming::Woken { keeps_lag } => {
                decide::place_wakeup(&self.policy, time, vruntime, weight, keeps_lag)
            }
        };
        decide::join(members, vruntime)
    }

    /// Takes a task out of its entity, and remembers its vruntime.
    pub(super) fn leave(&mut self, context: &mut Context<'_>, task: TaskId) {
        let Some(entity) = self.tasks[task.index()].entity.take() else {
            return;
        };
        let domain = self.domain_of_entity(entity);
        let state = &mut self.tasks[task.index()];
        let (weight, vtime) = (std::mem::take(&mut state.weight), state.vtime);
        let vruntime = decide::vruntime(&self.entities[entity].time, vtime);
        if context.task(task).has_exited() {
            let debt = decide::debt(self.entities[entity].time.avg_vruntime, vtime, weight);
            self.leave_debt(task, debt);
        }
        self.take_weight(context, entity, vtime, weight);
        self.entities[entity].time.runnable -= 1;
        self.domains[domain].time.runnable -= 1;
        let state = &mut self.tasks[task.index()];
        state.vruntime = Some(vruntime);
        state.left = Some(entity);
        state.domain = domain;
        context.touch(state.line, Access::Write);
    }

    /// The parent of a task that exits is charged for its debt when it runs next.
    fn leave_debt(&mut self, task: TaskId, debt: u64) {
        if let Some(parent) = self.tasks[task.index()].parent {
            self.tasks[parent.index()].owes += debt;
        }
    }

    /// Makes a task runnable in the entity where it belongs. If it is there already, brings its
    /// weight up to date.
    pub(super) fn settle(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
        coming: Coming,
    ) {
        let entity = self.entity_for(context.task(task), cpu);
        if self.tasks[task.index()].entity == Some(entity) {
            self.reweigh(context, task);
            return self.clamp_queued(context, task);
        }
        self.leave(context, task);
        self.join(context, task, entity, coming);
    }

    /// Whether a task runs without being counted: see [`State::count_late`].
    pub(super) fn is_uncounted(&self, task: TaskId) -> bool {
        let state = &self.tasks[task.index()];
        state.on.is_some() && state.entity.is_none()
    }

    /// An unmanaged task that woke while a CPU was idle is counted in its entity, its domain and
    /// its cgroup only if it is still there at a tick or loses its CPU.
    pub(super) fn count_late(&mut self, context: &mut Context<'_>, task: TaskId) {
        if !self.is_uncounted(task) {
            return;
        }
        let unmanaged = self.unmanaged(self.topology.domain_of(context.cpu()));
        let coming = self.woken(context, task);
        self.join(context, task, unmanaged, coming);
    }

    /// How a task comes that slept until it woke.
    pub(super) fn woken(&self, context: &Context<'_>, task: TaskId) -> Coming {
        let keeps_lag = self.slept(task, ns(context)) >= self.policy.min_sleep;
        Coming::Woken { keeps_lag }
    }

    /// How a task comes that is queued anew: it slept if it was never counted since.
    pub(super) fn coming(&self, context: &Context<'_>, task: TaskId) -> Coming {
        match self.tasks[task.index()].entity {
            Some(_) => Coming::Awake,
            None => self.woken(context, task),
        }
    }

    /// A task sleeps that was not counted while it ran.
    pub(super) fn note_run(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = ns(context);
        let state = &mut self.tasks[task.index()];
        let Some(cpu) = state.on.filter(|_| state.entity.is_none()) else {
            return;
        };
        let took = now.saturating_sub(std::mem::replace(&mut state.charged_at, now));
        state.ran += took;
        context.touch(state.line, Access::Write);
        self.cpus[cpu.index()].batch_used += took;
        context.touch(self.cpus[cpu.index()].line, Access::Write);
    }

    /// Clamps the negative lag of a task that ran and is queued again.
    fn clamp_queued(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.set_back(context, task, |_, domain, vruntime, _| {
            decide::clamp_queued(domain, vruntime)
        });
    }

    /// Forgives the running task what it has beyond its share while nobody waits for its CPU.
    pub(super) fn forgive(&mut self, context: &mut Context<'_>, task: TaskId) {
        if !self.waits_at(context.cpu()) {
            self.set_back(context, task, |policy, domain, vruntime, weight| {
                decide::forgive(policy, domain, vruntime, weight)
            });
        }
    }

    /// Gives a runnable task an earlier vruntime if `clamped` says so, and corrects V for that.
    fn set_back(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        clamped: fn(&Policy, &Domain, u64, u64) -> u64,
    ) {
        let state = &self.tasks[task.index()];
        let Some(entity) = state.entity else { return };
        let (vtime, weight) = (state.vtime, state.weight);
        let domain = &self.domains[self.domain_of_entity(entity)].time;
        let vruntime = decide::vruntime(&self.entities[entity].time, vtime);
        let clamped = clamped(&self.policy, domain, vruntime, weight);
        if clamped == vruntime {
            return;
        }
        self.take_weight(context, entity, vtime, weight);
        let vtime = vtime.wrapping_sub(vruntime.wrapping_sub(clamped));
        self.add_weight(context, entity, vtime, weight);
        self.tasks[task.index()].vtime = vtime;
    }

    /// Brings the weight of a task up to date.
    pub(super) fn reweigh(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &self.tasks[task.index()];
        let Some(entity) = state.entity else { return };
        let weight = self.usable_weight(context, task, entity, state.weight);
        let state = &mut self.tasks[task.index()];
        let before = std::mem::replace(&mut state.weight, weight);
        let vtime = state.vtime;
        if weight > before {
            self.add_weight(context, entity, vtime, weight - before);
        } else if weight < before {
            self.take_weight(context, entity, vtime, before - weight);
        }
    }

    /// The weight of a task in `entity`, of which its domain has `own` so far. Tasks that may run
    /// on one CPU only compete for that one, so none of them is too heavy.
    fn usable_weight(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        entity: EntityId,
        own: u64,
    ) -> u64 {
        let view = context.task(task);
        let flat = self.count(context, task);
        let domain = &self.domains[self.domain_of_entity(entity)].time;
        let runnable = u64::from(domain.runnable) + u64::from(own == 0);
        let allowed = view.allowed().map_or(usize::MAX, CpuSet::len) as u64;
        let cpus = self.cpus_of_entity(entity).min(allowed);
        decide::usable_weight(domain, runnable, cpus, flat, own)
    }

    /// Counts a runnable task in its cgroup, with the weight that it has now; returns its weight
    /// among all tasks.
    fn count(&mut self, context: &Context<'_>, task: TaskId) -> u64 {
        let view = context.task(task);
        let now = (view.group(), weight_of(view));
        let state = &mut self.tasks[task.index()];
        let before = state.counted.replace(now);
        if before != Some(now) {
            // First the new, so that a cgroup that stays active is never left.
            self.cgroups.add(context, now.0, now.1);
            if let Some((group, weight)) = before {
                self.cgroups.take(context, group, weight);
            }
        }
        self.cgroups.flat_weight(context, now.0, now.1)
    }

    /// A task that sleeps or exits no longer counts in its cgroup.
    pub(super) fn uncount(&mut self, context: &Context<'_>, task: TaskId) {
        if let Some((group, weight)) = self.tasks[task.index()].counted.take() {
            self.cgroups.take(context, group, weight);
        }
    }

    /// Adds `weight` of a task with `vtime` to `entity` and its domain, and corrects both V for its
    /// lag.
    fn add_weight(&mut self, context: &mut Context<'_>, entity: EntityId, vtime: u64, weight: u64) {
        self.touch_weights(context, entity);
        let (policy, domain) = (self.policy, self.domain_of_entity(entity));
        let (there, domain) = (
            &mut self.entities[entity].time,
            &mut self.domains[domain].time,
        );
        let at = decide::vruntime(there, vtime);
        let moved = decide::avg_add(&policy, domain.avg_vruntime, domain.weight, at, weight);
        domain.avg_vruntime = domain.avg_vruntime.wrapping_add(moved);
        let moved = decide::avg_add(&policy, there.avg_vruntime, there.weight, vtime, weight);
        there.avg_vruntime = there.avg_vruntime.wrapping_add(moved);
        there.weight += weight;
        domain.weight += weight;
        if let Some(group) = self.group_of_entity(entity) {
            self.places[self.groups[group].home].managed += weight;
        }
    }

    /// The reverse of [`State::add_weight`].
    fn take_weight(
        &mut self,
        context: &mut Context<'_>,
        entity: EntityId,
        vtime: u64,
        weight: u64,
    ) {
        self.touch_weights(context, entity);
        let (policy, domain) = (self.policy, self.domain_of_entity(entity));
        let (there, domain) = (
            &mut self.entities[entity].time,
            &mut self.domains[domain].time,
        );
        let at = decide::vruntime(there, vtime);
        let moved = decide::avg_sub(&policy, domain.avg_vruntime, domain.weight, at, weight);
        domain.avg_vruntime = domain.avg_vruntime.wrapping_add(moved);
        let moved = decide::avg_sub(&policy, there.avg_vruntime, there.weight, vtime, weight);
        there.avg_vruntime = there.avg_vruntime.wrapping_add(moved);
        there.weight -= weight;
        domain.weight -= weight;
        if let Some(group) = self.group_of_entity(entity) {
            self.places[self.groups[group].home].managed -= weight;
        }
    }

    fn touch_weights(&self, context: &mut Context<'_>, entity: EntityId) {
        context.touch(self.entities[entity].line, Access::Write);
        let domain = self.domain_of_entity(entity);
        context.touch(self.domains[domain].line, Access::Write);
        if let Some(group) = self.group_of_entity(entity) {
            context.touch(self.places[self.groups[group].home].line, Access::Write);
        }
    }

    /// Charges the running task for what it ran since the last charge: advances its vruntime and
    /// the V of its entity and domain.
    pub(super) fn charge(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = ns(context);
        let state = &mut self.tasks[task.index()];
        let (Some(entity), Some(cpu)) = (state.entity, state.on) else {
            return;
        };
        let took = now.saturating_sub(state.charged_at);
        if took == 0 {
            return;
        }
        let ran = took + std::mem::take(&mut state.owes);
        state.charged_at = now;
        let own = decide::delta_vruntime(ran, state.weight);
        state.vtime = state.vtime.wrapping_add(own);
        state.ran += took;
        let (line, node) = (state.line, state.node);
        self.advance(entity, ran);
        self.cpus[cpu.index()].batch_used += took;
        let domain = self.domain_of_entity(entity);
        for address in [
            line,
            node,
            self.entities[entity].line,
            self.domains[domain].line,
            self.cpus[cpu.index()].line,
        ] {
            context.touch(address, Access::Write);
        }
    }

    fn advance(&mut self, entity: EntityId, ran: u64) {
        let domain = self.domain_of_entity(entity);
        let time = &mut self.entities[entity].time;
        time.avg_vruntime = time
            .avg_vruntime
            .wrapping_add(decide::delta_vruntime(ran, time.weight));
        let time = &mut self.domains[domain].time;
        time.avg_vruntime = time
            .avg_vruntime
            .wrapping_add(decide::delta_vruntime(ran, time.weight));
    }

    /// Queues a runnable task, which has no CPU or is about to lose it, in its entity.
    pub(super) fn queue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let entity = self.tasks[task.index()].entity;
        let entity = entity.expect("runnable tasks have an entity");
        let slice = self.slice_in(self.domain_of_entity(entity));
        let deadline = self.deadline(task, slice);
        let state = &mut self.tasks[task.index()];
        state.slice = slice;
        let waited_before = state.waits_since.is_some();
        state.waits_since.get_or_insert(ns(context));
        self.insert(context, entity, Waiting { deadline, task });
        if waited_before && self.is_late(context, task) {
            self.comes_late(task);
        }
    }

    /// Puts a runnable task into the queue of its entity.
    pub(super) fn insert(&mut self, context: &mut Context<'_>, entity: EntityId, new: Waiting) {
        let state = &mut self.tasks[new.task.index()];
        assert!(!state.waits(), "{} is queued already", new.task);
        state.queued = true;
        state.deadline = new.deadline;
        if self.entities[entity].queue.is_empty() {
            self.entities[entity].queued_since = ns(context);
        }
        if self.group_of_entity(entity).is_some() {
            self.managed_queued += 1;
        }
        let tasks = &self.tasks;
        let nodes = |task: TaskId| tasks[task.index()].node;
        self.entities[entity].queue.insert(context, nodes, new);
    }

    /// Puts a runnable task into the own queue of `cpu`.
    pub(super) fn send(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let slice = self.slice_in(self.topology.domain_of(cpu));
        let state = &mut self.tasks[task.index()];
        state.sent = Some(cpu);
        state.slice = slice;
        context.touch(state.node, Access::Write);
        let there = &mut self.cpus[cpu.index()];
        there.sent.push_back(task);
        context.touch(there.line, Access::Write);
    }

    /// The deadline of a runnable task that may run for `slice` ns, in its entity's time.
    pub(super) fn deadline(&self, task: TaskId, slice: u64) -> u64 {
        let state = &self.tasks[task.index()];
        let entity = state.entity.expect("runnable tasks have an entity");
        let (time, domain) = (&self.entities[entity].time, self.domain_of_entity(entity));
        let request = decide::request(state.expected, state.ran, slice);
        let vruntime = decide::vruntime(time, state.vtime);
        let there = &self.domains[domain].time;
        decide::deadline(there, vruntime, state.weight, request).wrapping_sub(time.shift)
    }

    /// Takes a task out of its queue, if it is in one.
    pub(super) fn unqueue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        if let Some(cpu) = state.sent.take() {
            context.touch(state.node, Access::Write);
            let there = &mut self.cpus[cpu.index()];
            there.sent.retain(|sent| *sent != task);
            context.touch(there.line, Access::Write);
        }
        if !std::mem::take(&mut state.queued) {
            return;
        }
        if let Some(domain) = state.late_in.take() {
            self.domains[domain].late.retain(|late| *late != task);
        }
        let state = &self.tasks[task.index()];
        let entity = state.entity.expect("queued tasks have an entity");
        if self.group_of_entity(entity).is_some() {
            self.managed_queued -= 1;
        }
        let tasks = &self.tasks;
        let nodes = |task: TaskId| tasks[task.index()].node;
        self.entities[entity].queue.remove(context, nodes, task);
    }

    /// The slice of the next task of a domain, in ns.
    pub(super) fn slice_in(&self, domain: usize) -> u64 {
        let time = &self.domains[domain].time;
        decide::slice(&self.policy, time.runnable.into(), time.cpus.into())
    }
}
