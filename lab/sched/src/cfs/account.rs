//! Charging what runs, and entities that join and leave their queues.

use warmq_classes::Rank;
use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::TaskId;

use crate::fair::tree::EntityId;

use super::state::{Class, Queue, QueueId, State};
use super::weights::delta_fair;

impl Queue {
    /// min_vruntime follows the lower of the vruntimes of the running entity and the leftmost one,
    /// and never falls (`__update_curr()`).
    pub(super) fn follow(&mut self, running: i64) {
        let least = self
            .tree
            .first()
            .map_or(running, |(first, _)| first.min(running));
        self.min_vruntime = self.min_vruntime.max(least);
    }
}

impl State {
    /// Charges the running entity of `queue` for what it ran since it was charged last
    /// (`update_curr()`).
    pub(super) fn charge(&mut self, context: &mut Context<'_>, queue: QueueId) {
        let Some(current) = self.queues[queue].current else {
            return;
        };
        let now = self.cpu(self.queues[queue].cpu).clock.now();
        let entity = &mut self.entities[current];
        let ran = (now - entity.charged_at).max(0);
        entity.charged_at = now;
        entity.ran += ran;
        entity.vruntime += delta_fair(ran, entity.weight);
        let (vruntime, line) = (entity.vruntime, entity.line);
        self.queues[queue].follow(vruntime);
        context.touch(line, Access::Write);
        context.touch(self.queues[queue].line, Access::Write);
    }

    /// Puts an entity into the tree of its queue.
    fn insert_into_tree(&mut self, context: &mut Context<'_>, entity: EntityId) {
        let at = &self.entities[entity];
        let (key, queue) = ((at.vruntime, entity), &mut self.queues[at.queue]);
        let nodes = |other: EntityId| self.entities[other].node;
        let touch = |at, access| context.touch(at, access);
        queue.tree.insert(touch, queue.line, nodes, key);
    }

    /// Takes an entity out of the tree of its queue.
    fn remove_from_tree(&mut self, context: &mut Context<'_>, entity: EntityId) {
        let at = &self.entities[entity];
        let (key, queue) = ((at.vruntime, entity), &mut self.queues[at.queue]);
        let nodes = |other: EntityId| self.entities[other].node;
        let touch = |at, access| context.touch(at, access);
        queue.tree.remove(touch, queue.line, nodes, key);
    }

    /// An entity joins its queue (`enqueue_entity()`). `wakeup`: it slept, and its vruntime is to
    /// be placed.
    pub(super) fn enqueue_entity(
        &mut self,
        context: &mut Context<'_>,
        entity: EntityId,
        wakeup: bool,
    ) {
        let queue = self.entities[entity].queue;
        self.charge(context, queue);
        if wakeup {
            self.place_woken(entity);
        }
        if self.queues[queue].current != Some(entity) {
            self.insert_into_tree(context, entity);
        }
        self.entities[entity].queued = true;
        self.queues[queue].weight += self.entities[entity].weight;
        self.queues[queue].running += 1;
    }

    /// An entity leaves its queue (`dequeue_entity()`).
    pub(super) fn dequeue_entity(&mut self, context: &mut Context<'_>, entity: EntityId) {
        let queue = self.entities[entity].queue;
        self.charge(context, queue);
        if self.queues[queue].current != Some(entity) {
            self.remove_from_tree(context, entity);
        }
        self.entities[entity].queued = false;
        self.queues[queue].weight -= self.entities[entity].weight;
        self.queues[queue].running -= 1;
    }

    /// A task becomes runnable on its CPU (`activate_task()`).
    pub(super) fn activate(&mut self, context: &mut Context<'_>, task: TaskId, wakeup: bool) {
        self.enqueue_task(context, task, wakeup);
        let state = &mut self.tasks[task.index()];
        state.queued = true;
        let (entity, cpu) = (state.entity, state.cpu);
        let weight = self.entities[entity].weight;
        let here = self.cpu_mut(cpu);
        here.running += 1;
        here.load += weight;
        context.touch(here.line, Access::Write);
    }

    /// A task is no longer runnable on its CPU (`deactivate_task()`).
    pub(super) fn deactivate(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.dequeue_task(context, task);
        let state = &mut self.tasks[task.index()];
        state.queued = false;
        let (entity, cpu) = (state.entity, state.cpu);
        let weight = self.entities[entity].weight;
        let here = self.cpu_mut(cpu);
        here.running -= 1;
        here.load -= weight;
        context.touch(here.line, Access::Write);
    }

    /// Queues a task, and the entities above it that are not queued yet (`enqueue_task_fair()`).
    fn enqueue_task(&mut self, context: &mut Context<'_>, task: TaskId, wakeup: bool) {
        let state = &self.tasks[task.index()];
        let (entity, cpu, priority) = (state.entity, state.cpu, state.priority);
        context.touch(self.entities[entity].line, Access::Write);
        if state.class == Class::RealTime {
            self.cpu_mut(cpu)
                .realtime
                .add(Rank::RealTime(priority), task);
            return;
        }
        let mut wakeup = wakeup;
        let mut next = Some(entity);
        while let Some(entity) = next {
            next = self.parent(entity);
            if self.entities[entity].queued {
                break;
            }
            self.enqueue_entity(context, entity, wakeup);
            wakeup = true;
        }
    }

    /// Takes a task out, and the entities above it whose queues become empty
    /// (`dequeue_task_fair()`).
    fn dequeue_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &self.tasks[task.index()];
        let (entity, cpu) = (state.entity, state.cpu);
        context.touch(self.entities[entity].line, Access::Write);
        if state.class == Class::RealTime {
            self.charge_real_time(task);
            self.cpu_mut(cpu).realtime.remove(task);
            return;
        }
        let mut next = Some(entity);
        while let Some(entity) = next {
            next = self.parent(entity);
            self.dequeue_entity(context, entity);
            if self.queues[self.entities[entity].queue].running > 0 {
                break;
            }
        }
    }

    /// Counts what a running real-time task ran (`update_curr_rt()`).
    pub(super) fn charge_real_time(&mut self, task: TaskId) {
        let cpu = self.tasks[task.index()].cpu;
        if self.cpu(cpu).current != Some(task) {
            return;
        }
        let now = self.cpu(cpu).clock.now();
        let entity = self.entity_of(task);
        let entity = &mut self.entities[entity];
        entity.ran += (now - entity.charged_at).max(0);
        entity.charged_at = now;
    }

    /// The task that had a CPU goes back into the tree if it is still runnable
    /// (`put_prev_task()`).
    pub(super) fn put_prev(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.tasks[task.index()].class == Class::RealTime {
            return self.charge_real_time(task);
        }
        let mut next = Some(self.entity_of(task));
        while let Some(entity) = next {
            next = self.parent(entity);
            let queue = self.entities[entity].queue;
            if self.queues[queue].current != Some(entity) {
                continue;
            }
            if self.entities[entity].queued {
                self.charge(context, queue);
                self.insert_into_tree(context, entity);
            }
            self.queues[queue].current = None;
        }
    }

    /// A task gets the CPU of its queue: it and those above it leave the trees
    /// (`set_next_entity()`).
    pub(super) fn set_current(&mut self, context: &mut Context<'_>, task: TaskId) {
        let cpu = self.tasks[task.index()].cpu;
        let now = self.cpu(cpu).clock.now();
        let fair = self.tasks[task.index()].class == Class::Fair;
        let mut next = Some(self.entity_of(task));
        while let Some(entity) = next {
            next = self.parent(entity);
            if fair {
                if self.entities[entity].queued {
                    self.remove_from_tree(context, entity);
                }
                let queue = self.entities[entity].queue;
                self.queues[queue].current = Some(entity);
            }
            let state = &mut self.entities[entity];
            state.charged_at = now;
            state.ran_when_picked = state.ran;
            context.touch(state.line, Access::Write);
            if !fair {
                break;
            }
        }
    }
}
