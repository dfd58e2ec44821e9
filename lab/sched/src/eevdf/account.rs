//! Charging what runs, and entities that join and leave their queues.

use warmq_units::TaskId;

use crate::fair::tree::EntityId;

use super::effects::Urgency;
use super::rules::Protection;
use super::state::{QueueId, State, What};

impl State {
    /// Charges the running entity of `queue` for what it ran since it was charged last, and asks
    /// its CPU to pick again if that entity's turn is over (`update_curr()`).
    pub(super) fn charge(&mut self, queue: QueueId) {
        let queue = self.timeline_of(queue);
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
            self.charge_server(self.queues[queue].cpu, ran);
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

    /// If the deadline of `entity` has come, the next slice begins. What it ran too long is not
    /// made up for in deadlines (`update_deadline()`).
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
            let queue = self.timeline(entity);
            if self.queues[queue].buddy != Some(entity) {
                break;
            }
            self.queues[queue].buddy = None;
            next = self.queues[queue].owner;
        }
    }

    /// Counts `entity` in the queue that it belongs in (`account_entity_enqueue()`).
    pub(super) fn count_in(&mut self, entity: EntityId) {
        let state = &mut self.entities[entity];
        self.queues[state.queue].weight += state.weight;
        state.queued = true;
    }

    /// The reverse.
    pub(super) fn count_out(&mut self, entity: EntityId) {
        let state = &mut self.entities[entity];
        self.queues[state.queue].weight -= state.weight;
        state.queued = false;
    }

    /// `entity` competes from now on: in the tree, unless it runs.
    pub(super) fn join(&mut self, entity: EntityId) {
        let unlike = u64::from(self.entities[entity].slice != self.rules.base_slice);
        let timeline = self.timeline(entity);
        let queue = &mut self.queues[timeline];
        queue.entities += 1;
        queue.unlike += unlike;
        if queue.current != Some(entity) {
            self.insert(entity);
        }
    }

    /// The reverse.
    pub(super) fn leave(&mut self, entity: EntityId) {
        let timeline = self.timeline(entity);
        if self.queues[timeline].current != Some(entity) {
            self.remove(entity);
        }
        let unlike = u64::from(self.entities[entity].slice != self.rules.base_slice);
        let queue = &mut self.queues[timeline];
        queue.entities -= 1;
        queue.unlike -= unlike;
    }

    /// Counts what a running real-time or deadline task ran (`update_curr_common()`).
    pub(super) fn charge_urgent(&mut self, task: TaskId) {
        let state = self.task(task);
        let (cpu, entity) = (state.cpu, state.entity);
        if self.cpu(cpu).current != Some(task) {
            return;
        }
        let now = self.cpu(cpu).clock;
        let entity = &mut self.entities[entity];
        let ran = (now - entity.charged_at).max(0);
        entity.ran += ran;
        entity.charged_at = now;
        self.charge_reservation(task, ran);
        self.limit_urgent(task, ran);
    }

    /// The task that had a CPU goes back into the trees, where it is still queued
    /// (`put_prev_entity()`), up to the level of `stop`.
    pub(super) fn put_prev(&mut self, task: TaskId, stop: Option<QueueId>) {
        if self.task(task).class.is_urgent() {
            return self.charge_urgent(task);
        }
        let mut next = Some(self.entity_of(task));
        while let Some(entity) = next {
            let queue = self.entities[entity].queue;
            next = self.queues[queue].owner;
            if self.is_on_path(entity) {
                self.put_entity(entity);
            }
            if stop == Some(queue) {
                break;
            }
        }
        if self.rules.flat {
            self.stop_running(self.entity_of(task));
        }
    }

    fn put_entity(&mut self, entity: EntityId) {
        let queue = self.entities[entity].queue;
        if self.entities[entity].queued {
            self.charge(queue);
            self.update_load(entity, false);
        }
        self.queues[queue].path = None;
        if !self.rules.flat {
            self.stop_running(entity);
        }
    }

    /// `entity` has had the CPU, and goes back into the tree if it is queued.
    fn stop_running(&mut self, entity: EntityId) {
        let timeline = self.timeline(entity);
        self.queues[timeline].current = None;
        if self.entities[entity].queued {
            self.insert(entity);
        }
    }

    /// A task gets the CPU of its queue: it and those above it leave the trees
    /// (`set_next_entity()`), up to the level of `stop`.
    pub(super) fn set_current(&mut self, task: TaskId, stop: Option<QueueId>) {
        let state = self.task(task);
        let (fair, cpu) = (!state.class.is_urgent(), state.cpu);
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
        if fair && self.rules.flat {
            self.begin_running(self.entity_of(task));
        }
    }

    fn set_entity(&mut self, entity: EntityId) {
        if self.entities[entity].queued {
            self.update_load(entity, true);
        }
        let queue = self.entities[entity].queue;
        self.queues[queue].path = Some(entity);
        if !self.rules.flat {
            self.begin_running(entity);
        }
    }

    /// `entity` has the CPU from now on, and is out of the tree.
    fn begin_running(&mut self, entity: EntityId) {
        self.clear_buddies(entity);
        let (timeline, queued) = (self.timeline(entity), self.entities[entity].queued);
        if queued {
            self.remove(entity);
        }
        self.queues[timeline].current = Some(entity);
        if queued {
            self.refresh_flat_weight(entity);
            self.protect(entity);
        }
    }
}
