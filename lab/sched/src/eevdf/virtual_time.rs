//! The average of a queue, lag, and who is eligible.
//!
//! ```text
//!     V := floor( sum(w v) / sum(w) )      lag := V - v      eligible: v <= V, exactly
//!
//!     over all queued entities, delayed ones and the running one among them
//! ```
//!
//! The sums are kept of v - zero over the tree, and the running entity is added. An empty queue has
//! its zero for an average.

use crate::fair::tree::EntityId;

use super::rules::LagLimit;
use super::state::{QueueId, State};

/// Sums over a queue: of w * (v - zero), and of w.
#[derive(Clone, Copy, Debug)]
struct Sums {
    moment: i128,
    weight: i128,
}

/// `moment` by `weight`, rounded down. A division of 128 bits is slow, and hardly ever needed.
fn rounded_down(moment: i128, weight: i128) -> i64 {
    match (i64::try_from(moment), i64::try_from(weight)) {
        (Ok(moment), Ok(weight)) => moment.div_euclid(weight),
        _ => moment.div_euclid(weight) as i64,
    }
}

impl State {
    /// The weight of `entity` as it counts in an average.
    pub(super) fn counted_weight(&self, entity: EntityId) -> u64 {
        self.rules.precision.of(self.virtual_weight(entity))
    }

    /// The weight of `entity` among those that it competes with.
    pub(super) fn virtual_weight(&self, entity: EntityId) -> u64 {
        let state = &self.entities[entity];
        match self.rules.flat {
            true => state.flat_weight,
            false => state.weight,
        }
    }

    fn sums(&self, queue: QueueId) -> Sums {
        let there = &self.queues[queue];
        let mut sums = Sums {
            moment: there.sum,
            weight: i128::from(there.tree_weight),
        };
        if let Some(current) = there
            .current
            .filter(|current| self.entities[*current].queued)
        {
            let weight = i128::from(self.counted_weight(current));
            sums.moment += weight * i128::from(self.entities[current].vruntime - there.zero);
            sums.weight += weight;
        }
        sums
    }

    /// V of a queue, rounded down (`avg_vruntime()`).
    pub(super) fn average(&self, queue: QueueId) -> i64 {
        let sums = self.sums(queue);
        let zero = self.queues[queue].zero;
        match sums.weight {
            0 => zero,
            weight => zero + rounded_down(sums.moment, weight),
        }
    }

    /// Whether vruntimes are not after V, without rounding (`vruntime_eligible()`).
    pub(super) fn eligible_at(&self, queue: QueueId) -> impl Fn(i64) -> bool + use<> {
        let (sums, zero) = (self.sums(queue), self.queues[queue].zero);
        move |vruntime| sums.moment >= i128::from(vruntime - zero) * sums.weight
    }

    /// Whether `entity` is owed time, or owes none (`entity_eligible()`).
    pub(super) fn is_eligible(&self, entity: EntityId) -> bool {
        let state = &self.entities[entity];
        self.eligible_at(self.timeline(entity))(state.vruntime)
    }

    /// What `entity` is owed now, as far as it counts (`update_entity_lag()`).
    pub(super) fn lag_now(&self, entity: EntityId) -> i64 {
        let (state, queue) = (&self.entities[entity], self.timeline(entity));
        let limit = match self.rules.lag_limit {
            LagLimit::OwnSlice => (2 * state.slice).max(self.rules.tick),
            LagLimit::LongestSlice => self.longest_slice(queue) + self.rules.tick,
        };
        let limit = self.virtual_time(entity, limit);
        (self.average(queue) - state.vruntime).clamp(-limit, limit)
    }

    /// `span` ns of CPU time in the virtual time of `entity`.
    pub(super) fn virtual_time(&self, entity: EntityId, span: i64) -> i64 {
        self.rules
            .precision
            .virtual_time(span, self.virtual_weight(entity))
    }

    /// The entities that compete in a queue, the running one last.
    pub(super) fn members(&self, queue: QueueId) -> impl Iterator<Item = EntityId> + '_ {
        let there = &self.queues[queue];
        let current = there
            .current
            .filter(|current| self.entities[*current].queued);
        there.tree.iter().chain(current)
    }

    /// The shortest slice of the queued entities (`cfs_rq_min_slice()`).
    pub(super) fn shortest_slice(&self, queue: QueueId) -> Option<i64> {
        let there = &self.queues[queue];
        if there.entities > 0 && there.unlike == 0 {
            return Some(self.rules.base_slice);
        }
        self.members(queue)
            .map(|entity| self.entities[entity].slice)
            .min()
    }

    fn longest_slice(&self, queue: QueueId) -> i64 {
        if self.queues[queue].unlike == 0 {
            return self.rules.base_slice;
        }
        let slices = self
            .members(queue)
            .map(|entity| self.entities[entity].slice);
        slices.max().unwrap_or(self.rules.base_slice)
    }

    /// Sets the slice of `entity`.
    pub(super) fn set_slice(&mut self, entity: EntityId, slice: i64) {
        let (base, timeline) = (self.rules.base_slice, self.timeline(entity));
        let state = &mut self.entities[entity];
        let before = std::mem::replace(&mut state.slice, slice);
        if state.queued {
            let queue = &mut self.queues[timeline];
            queue.unlike -= u64::from(before != base);
            queue.unlike += u64::from(slice != base);
        }
    }

    /// Puts an entity into the tree of its queue (`__enqueue_entity()`).
    pub(super) fn insert(&mut self, entity: EntityId) {
        let (weight, timeline) = (self.counted_weight(entity), self.timeline(entity));
        let state = &self.entities[entity];
        let (key, queue) = ((state.deadline, entity), &mut self.queues[timeline]);
        queue.sum += i128::from(weight) * i128::from(state.vruntime - queue.zero);
        queue.tree_weight += weight;
        let nodes = |other: EntityId| self.entities[other].node;
        let touch = |at, access| self.effects.access(at, access);
        queue.tree.insert(touch, queue.line, nodes, key);
        self.follow(timeline);
    }

    /// Takes an entity out of the tree of its queue (`__dequeue_entity()`).
    pub(super) fn remove(&mut self, entity: EntityId) {
        let (weight, timeline) = (self.counted_weight(entity), self.timeline(entity));
        let state = &self.entities[entity];
        let (key, queue) = ((state.deadline, entity), &mut self.queues[timeline]);
        queue.sum -= i128::from(weight) * i128::from(state.vruntime - queue.zero);
        queue.tree_weight -= weight;
        let nodes = |other: EntityId| self.entities[other].node;
        let touch = |at, access| self.effects.access(at, access);
        queue.tree.remove(touch, queue.line, nodes, key);
        self.follow(timeline);
    }

    /// Moves the zero of a queue to its average, which changes neither V nor who is eligible
    /// (`update_zero_vruntime()`; kernels before it move it to the least vruntime).
    fn follow(&mut self, queue: QueueId) {
        let average = self.average(queue);
        let there = &mut self.queues[queue];
        there.sum -= i128::from(average - there.zero) * i128::from(there.tree_weight);
        there.zero = average;
    }
}
