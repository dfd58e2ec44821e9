//! A task's way through entities: it joins one when it becomes runnable, is charged while it runs,
//! changes it when its fragment or its affinity changed, and leaves it when it sleeps.

use warmq_decide as decide;
use warmq_kernel::{Context, Policy, View};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::queue::Waiting;
use super::state::{EntityId, State, ns};

/// What a task weighs: 1.25 times as much for each step of nice, as the kernel's table has it.
///
/// Real-time tasks are not sched_ext's business in a real kernel; as the lab has no second class
/// beside a scheduler, they weigh as much as anything can.
pub(super) fn weight_of(view: View<'_>) -> u64 {
    let nice = match view.policy() {
        Policy::Other | Policy::Batch => view.nice(),
        Policy::Idle => 19,
        Policy::Fifo(_) | Policy::RoundRobin(_) => -20,
    };
    let steps = 0..nice.unsigned_abs();
    match nice < 0 {
        true => steps.fold(decide::WHOLE, |weight, _| weight * 5 / 4),
        false => steps.fold(decide::WHOLE, |weight, _| weight * 4 / 5),
    }
}

/// Where a task that joins an entity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coming {
    /// From another entity, without having slept.
    Awake,
    /// From a sleep, or it is new; `counts`: long enough a sleep to earn credit.
    Woken { counts: bool },
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
        let position = match state.position {
            None => decide::first_position(&self.policy, time),
            Some(position) if state.domain == domain => position,
            Some(position) => {
                let from = self.domains[state.domain].time.clock;
                decide::emigrate(position, from, time.clock)
            }
        };
        let weight = weight_of(context.task(task));
        let position = match coming {
            Coming::Awake => decide::keep_place(&self.policy, time, position, weight),
            Coming::Woken { counts } => decide::place(&self.policy, time, position, counts),
        };
        let vtime = decide::join(&mut self.entities[entity].time, position);
        self.add_weight(context, entity, vtime, weight);
        let state = &mut self.tasks[task.index()];
        state.vtime = vtime;
        state.weight = weight;
        state.entity = Some(entity);
        context.touch(state.line, Access::Write);
        context.touch(state.node, Access::Write);
    }

    /// Takes a task out of its entity; where it stood is remembered.
    pub(super) fn leave(&mut self, context: &mut Context<'_>, task: TaskId) {
        let Some(entity) = self.tasks[task.index()].entity.take() else {
            return;
        };
        let domain = self.domain_of_entity(entity);
        let state = &mut self.tasks[task.index()];
        let (weight, vtime) = (std::mem::take(&mut state.weight), state.vtime);
        let position = decide::position(&self.entities[entity].time, vtime);
        self.take_weight(context, entity, vtime, weight);
        let state = &mut self.tasks[task.index()];
        state.position = Some(position);
        state.domain = domain;
        context.touch(state.line, Access::Write);
    }

    /// A runnable task goes on in the entity where it belongs, with the weight that it has now.
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

    /// A task that ran and is to wait owes no more than it can pay in time.
    pub(super) fn forgive(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &self.tasks[task.index()];
        let Some(entity) = state.entity else { return };
        let (vtime, weight) = (state.vtime, state.weight);
        let domain = &self.domains[self.domain_of_entity(entity)].time;
        let position = decide::position(&self.entities[entity].time, vtime);
        let forgiven = decide::forgive(domain, position);
        if forgiven == position {
            return;
        }
        self.take_weight(context, entity, vtime, weight);
        let vtime = vtime.wrapping_sub(position.wrapping_sub(forgiven));
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

    /// `weight` of a task comes to `entity`, where it stands at `vtime`.
    fn add_weight(&mut self, context: &mut Context<'_>, entity: EntityId, vtime: u64, weight: u64) {
        self.touch_weights(context, entity);
        let (policy, domain) = (self.policy, self.domain_of_entity(entity));
        let (there, domain) = (
            &mut self.entities[entity].time,
            &mut self.domains[domain].time,
        );
        let at = decide::position(there, vtime);
        let moved = decide::mean_with(&policy, domain.clock, domain.weight, at, weight);
        domain.clock = domain.clock.wrapping_add(moved);
        let moved = decide::mean_with(&policy, there.clock, there.weight, vtime, weight);
        there.clock = there.clock.wrapping_add(moved);
        there.weight += weight;
        domain.weight += weight;
        if let Some(group) = self.group_of_entity(entity) {
            self.places[self.groups[group].home].managed += weight;
        }
    }

    /// The same of a task that goes.
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
        let at = decide::position(there, vtime);
        let moved = decide::mean_without(&policy, domain.clock, domain.weight, at, weight);
        domain.clock = domain.clock.wrapping_add(moved);
        let moved = decide::mean_without(&policy, there.clock, there.weight, vtime, weight);
        there.clock = there.clock.wrapping_add(moved);
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

    /// The running task pays for what it ran since it was last charged; so do its entity and its
    /// domain.
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
        let own = decide::virtual_time(ran, state.weight);
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
        time.clock = time
            .clock
            .wrapping_add(decide::virtual_time(ran, time.weight));
        let time = &mut self.domains[domain].time;
        time.clock = time
            .clock
            .wrapping_add(decide::virtual_time(ran, time.weight));
    }

    /// Queues a runnable task that has no CPU (or is about to lose it) where it belongs.
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

    /// Takes a task out of its queue; nothing when it is in none.
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

    /// How long the next one of a domain runs.
    pub(super) fn slice_in(&self, domain: usize) -> u64 {
        let time = &self.domains[domain].time;
        decide::slice(&self.policy, time.weight / decide::WHOLE, time.cpus)
    }
}
