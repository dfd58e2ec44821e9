//! Where an entity stands that joins a queue (`place_entity()`).

use crate::fair::tree::EntityId;

use super::state::State;

impl State {
    /// Places `entity`, which is not counted in its queue, at the average less its lag. Its joining
    /// moves the average, so more than the lag is taken off, and what is left is the lag:
    ///
    /// ```text
    ///     v := V - lag (W + w) / W
    /// ```
    ///
    /// The first slice of a new entity is half of one.
    pub(super) fn place(&mut self, entity: EntityId, is_new: bool) {
        let queue = self.timeline(entity);
        let average = self.average(queue);
        if !self.entities[entity].custom_slice {
            self.set_slice(entity, self.rules.base_slice);
        }
        let mut slice = self.virtual_time(entity, self.entities[entity].slice);
        let moved = match self.rules.place_lag && self.queues[queue].entities > 0 {
            true => self.compensated(entity),
            false => 0,
        };
        let state = &mut self.entities[entity];
        state.vruntime = average - moved;
        if state.relative {
            state.deadline += state.vruntime;
            state.relative = false;
            return;
        }
        if is_new && self.rules.place_deadline_initial && !self.rules.places_new_twice {
            slice /= 2;
        }
        state.deadline = state.vruntime + slice;
    }

    /// By how much an entity is placed before the average to have its lag when it is counted there.
    fn compensated(&self, entity: EntityId) -> i64 {
        let state = &self.entities[entity];
        let there = &self.queues[self.timeline(entity)];
        let current = there
            .current
            .filter(|current| self.entities[*current].queued);
        let running = current.map_or(0, |current| self.counted_weight(current));
        let others = i128::from(there.tree_weight + running);
        let own = i128::from(self.counted_weight(entity));
        (i128::from(state.lag) * (others + own) / others.max(1)) as i64
    }
}
