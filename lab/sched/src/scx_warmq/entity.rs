//! Tasks and entities: a task joins an entity when it becomes runnable, is charged while it runs,
//! goes to another entity when its fragment or its affinity changes, and leaves when it sleeps.

use warmq_decide as decide;
use warmq_kernel::{Context, View};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

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
        if let Some(only) = state.only {
            return self.pinned(only);
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
        let time = &self.domains[domain].time;
        let state = &self.tasks[task.index()];
        let vruntime = match state.vruntime {
            None => decide::place_new(&self.policy, time),
            Some(vruntime) if state.domain == domain => vruntime,
            Some(vruntime) => {
                let from = self.domains[state.domain].time.avg_vruntime;
                decide::migrate_vruntime(vruntime, from, time.avg_vruntime)
            }
        };
        let weight = weight_of(context.task(task));
        let vruntime = match coming {
            Coming::Awake => decide::place_awake(&self.policy, time, vruntime, weight),
            Coming::Woken { keeps_lag } => {
                decide::place_wakeup(&self.policy, time, vruntime, keeps_lag)
            }
        };
        let vtime = decide::join(&mut self.entities[entity].time, vruntime);
        self.add_weight(context, entity, vtime, weight);
        let state = &mut self.tasks[task.index()];
        state.vtime = vtime;
        state.weight = weight;
        state.entity = Some(entity);
        context.touch(state.line, Access::Write);
        context.touch(state.node, Access::Write);
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
        self.take_weight(context, entity, vtime, weight);
        let state = &mut self.tasks[task.index()];
        state.vruntime = Some(vruntime);
        state.domain = domain;
        context.touch(state.line, Access::Write);
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
            return self.reweigh(context, task);
        }
        self.leave(context, task);
        self.join(context, task, entity, coming);
    }

    /// Clamps the negative lag of a task that ran and is queued again.
    pub(super) fn clamp_queued(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &self.tasks[task.index()];
        let Some(entity) = state.entity else { return };
        let (vtime, weight) = (state.vtime, state.weight);
        let domain = &self.domains[self.domain_of_entity(entity)].time;
        let vruntime = decide::vruntime(&self.entities[entity].time, vtime);
        let clamped = decide::clamp_queued(domain, vruntime);
        if clamped == vruntime {
            return;
        }
        self.take_weight(context, entity, vtime, weight);
        let vtime = vtime.wrapping_sub(vruntime.wrapping_sub(clamped));
        self.add_weight(context, entity, vtime, weight);
        self.tasks[task.index()].vtime = vtime;
    }

    fn reweigh(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        let weight = weight_of(context.task(task));
        let before = std::mem::replace(&mut state.weight, weight);
        let vtime = state.vtime;
        let Some(entity) = state.entity else { return };
        if weight > before {
            self.add_weight(context, entity, vtime, weight - before);
        } else if weight < before {
            self.take_weight(context, entity, vtime, before - weight);
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
        let ran = now.saturating_sub(state.charged_at);
        if ran == 0 {
            return;
        }
        state.charged_at = now;
        let own = decide::delta_vruntime(ran, state.weight);
        state.vtime = state.vtime.wrapping_add(own);
        let (line, node) = (state.line, state.node);
        self.advance(entity, ran);
        self.cpus[cpu.index()].batch_used += ran;
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
        let state = &mut self.tasks[task.index()];
        let entity = state.entity.expect("runnable tasks have an entity");
        let vtime = state.vtime;
        assert!(!state.queued, "{task} is queued already");
        state.queued = true;
        if self.group_of_entity(entity).is_some() {
            self.managed_queued += 1;
        }
        let tasks = &self.tasks;
        let nodes = |task: TaskId| tasks[task.index()].node;
        self.entities[entity]
            .queue
            .insert(context, nodes, Waiting { vtime, task });
    }

    /// Takes a task out of its queue, if it is in one.
    pub(super) fn unqueue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        if !std::mem::take(&mut state.queued) {
            return;
        }
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
        decide::slice(&self.policy, time.weight / decide::WEIGHT_NICE_0, time.cpus)
    }
}
