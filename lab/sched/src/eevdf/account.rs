//! Charging what runs, and entities that join and leave their queues.

use warmq_units::TaskId;

use crate::fair::tree::EntityId;

use super::effects::Urgency;
use super::rules::Protection;
use super::state::{Class, QueueId, State, What};

impl State {
    /// Charges the running entity of `queue` for what it ran since it was charged last, and asks its
    /// CPU to pick again if that entity's turn is over (`update_curr()`).
    pub(super) fn charge(&mut self, queue: QueueId) {
        let Some(current) = self.queues[queue].current else {
            return;
        };
        let now = self.now(queue);
        let ran = now - self.entities[current].charged_at;
        if ran <= 0 || !self.entities[current].queued {
            return;
        }
        let virtually = self.virtual_time(current, ran);
        let entity = &mut self.entities[current];
        entity.charged_at = now;
        entity.ran += ran;
        entity.vruntime += virtually;
        let (line, what) = (entity.line, entity.what);
        self.effects.write(line);
        if let What::Task(task) = what {
            self.count_occupancy(task, ran);
        }
        self.effects.write(self.queues[queue].line);
        let expired = self.renew_if_expired(current);
        if self.queues[queue].entities == 1 {
            return;
        }
        if expired || self.lost_its_claim(current) {
            self.effects.request(self.queues[queue].cpu, Urgency::Lazy);
            self.clear_buddies(current);
        }
    }

    /// If the deadline of `entity` has come, the next slice begins. What it ran too long is not made up
    /// for in deadlines (`update_deadline()`).
    fn renew_if_expired(&mut self, entity: EntityId) -> bool {
        let state = &self.entities[entity];
        if state.vruntime < state.deadline {
            return false;
        }
        if !state.custom_slice {
            self.set_slice(entity, self.rules.base_slice);
        }
        self.renew_deadline(entity);
        true
    }

    /// The deadline is a slice from now.
    pub(super) fn renew_deadline(&mut self, entity: EntityId) {
        let slice = self.virtual_time(entity, self.entities[entity].slice);
        let state = &mut self.entities[entity];
        state.deadline = state.vruntime + slice;
    }

    /// Whether the running entity must compete again before its slice is over.
    fn lost_its_claim(&self, current: EntityId) -> bool {
        let protected = self.is_protected(current);
        match self.rules.protection {
            Protection::Deadline => {
                self.rules.preempt_short && !protected && !self.is_eligible(current)
            }
            Protection::ShortestSlice => !protected,
        }
    }

    /// `entity` is nobody's buddy any more (`clear_buddies()`).
    pub(super) fn clear_buddies(&mut self, entity: EntityId) {
        let mut next = Some(entity);
        while let Some(entity) = next {
            let queue = self.entities[entity].queue;
            if self.queues[queue].buddy != Some(entity) {
                break;
            }
            self.queues[queue].buddy = None;
            next = self.queues[queue].owner;
        }
    }

    /// Counts `entity` in its queue, and puts it into the tree unless it runs.
    pub(super) fn count_in(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let unlike = u64::from(state.slice != self.rules.base_slice);
        let queue = &mut self.queues[state.queue];
        queue.weight += state.weight;
        queue.entities += 1;
        queue.unlike += unlike;
        self.entities[entity].queued = true;
        if !self.is_current(entity) {
            self.insert(entity);
        }
    }

    /// The reverse.
    pub(super) fn count_out(&mut self, entity: EntityId) {
        if !self.is_current(entity) {
            self.remove(entity);
        }
        let state = &mut self.entities[entity];
        state.queued = false;
        let unlike = u64::from(state.slice != self.rules.base_slice);
        let queue = &mut self.queues[state.queue];
        queue.weight -= state.weight;
        queue.entities -= 1;
        queue.unlike -= unlike;
    }

    /// Counts what a running real-time task ran (`update_curr_common()`).
    pub(super) fn charge_real_time(&mut self, task: TaskId) {
        let state = self.task(task);
        let (cpu, entity) = (state.cpu, state.entity);
        if self.cpu(cpu).current != Some(task) {
            return;
        }
        let now = self.cpu(cpu).clock;
        let entity = &mut self.entities[entity];
        entity.ran += (now - entity.charged_at).max(0);
        entity.charged_at = now;
    }

    /// The task that had a CPU goes back into the trees, where it is still queued
    /// (`put_prev_entity()`), up to the level of `stop`.
    pub(super) fn put_prev(&mut self, task: TaskId, stop: Option<QueueId>) {
        if self.task(task).class == Class::RealTime {
            return self.charge_real_time(task);
        }
        let mut next = Some(self.entity_of(task));
        while let Some(entity) = next {
            let queue = self.entities[entity].queue;
            next = self.queues[queue].owner;
            if self.queues[queue].current == Some(entity) {
                self.put_entity(entity);
            }
            if stop == Some(queue) {
                break;
            }
        }
    }

    fn put_entity(&mut self, entity: EntityId) {
        let queue = self.entities[entity].queue;
        if self.entities[entity].queued {
            self.charge(queue);
            self.update_load(entity, false);
        }
        self.queues[queue].current = None;
        if self.entities[entity].queued {
            self.insert(entity);
        }
    }

    /// A task gets the CPU of its queue: it and those above it leave the trees
    /// (`set_next_entity()`), up to the level of `stop`.
    pub(super) fn set_current(&mut self, task: TaskId, stop: Option<QueueId>) {
        let state = self.task(task);
        let (fair, cpu) = (state.class == Class::Fair, state.cpu);
        let mut next = Some(state.entity);
        while let Some(entity) = next {
            let queue = self.entities[entity].queue;
            if fair {
                self.set_entity(entity);
            }
            let now = self.cpu(cpu).clock;
            let state = &mut self.entities[entity];
            state.charged_at = now;
            state.ran_when_picked = state.ran;
            let line = state.line;
            self.effects.write(line);
            if !fair || stop == Some(queue) {
                break;
            }
            next = self.queues[queue].owner;
        }
    }

    fn set_entity(&mut self, entity: EntityId) {
        self.clear_buddies(entity);
        let queue = self.entities[entity].queue;
        if self.entities[entity].queued {
            self.remove(entity);
            self.update_load(entity, true);
            self.queues[queue].current = Some(entity);
            self.protect(entity);
        } else {
            self.queues[queue].current = Some(entity);
        }
    }
}
