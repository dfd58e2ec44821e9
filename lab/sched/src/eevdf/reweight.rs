//! What a change of weight does to virtual time (`reweight_entity()`).
//!
//! The weight of a group on a CPU changes whenever one of its tasks there sleeps or wakes, and the
//! entity that stands for it usually runs then. From 6.13 to 7.0 it is placed again as if it joined
//! the queue, with an average that it is still part of: its lag is compensated twice, so that each
//! change multiplies it. A group whose tasks sleep and wake often so never owes anything, and another
//! one starves.

use crate::fair::tree::EntityId;

use super::rules::{Protection, Reweight};
use super::state::State;
use super::weights::down;

/// `value` by the ratio of two weights, rounded towards 0.
fn scaled(value: i64, weights: (u64, u64)) -> i64 {
    let (from, to) = weights;
    (i128::from(value) * i128::from(from) / i128::from(to.max(1))) as i64
}

impl State {
    /// `entity` weighs `weight` from now on.
    pub(super) fn reweigh(&mut self, entity: EntityId, weight: u64) {
        let weights = (self.entities[entity].weight, weight);
        self.tell_lag_before(entity);
        match (self.entities[entity].queued, self.rules.reweight) {
            (false, _) => self.reweigh_unqueued(entity, weights),
            (true, Reweight::KeepsAverage) => self.reweigh_in_place(entity, weights),
            (true, Reweight::PlacesAgain) => self.reweigh_and_place(entity, weights),
        }
        self.tell_lags(self.entities[entity].queue);
        self.entities[entity].load.reweigh(down(weight));
        self.effects.write(self.entities[entity].line);
    }

    fn reweigh_unqueued(&mut self, entity: EntityId, weights: (u64, u64)) {
        let state = &mut self.entities[entity];
        state.lag = scaled(state.lag, weights);
        if state.relative {
            state.deadline = scaled(state.deadline, weights);
        }
        state.weight = weights.1;
    }

    /// ```text
    ///     v := V - lag w / w'      d := V + (d - V) w / w'
    /// ```
    fn reweigh_in_place(&mut self, entity: EntityId, weights: (u64, u64)) {
        let queue = self.entities[entity].queue;
        self.charge(queue);
        let (average, lag) = (self.average(queue), self.lag_now(entity));
        let runs = self.is_current(entity);
        let protected = runs && self.is_protected(entity);
        if !runs {
            self.remove(entity);
        }
        let keeps = self.rules.keeps_protection;
        let state = &mut self.entities[entity];
        state.weight = weights.1;
        state.lag = scaled(lag, weights);
        state.vruntime = average - state.lag;
        state.deadline = average + scaled(state.deadline - average, weights);
        if protected && keeps {
            state.protected = average + scaled(state.protected - average, weights);
        }
        self.queues[queue].weight = self.queues[queue].weight - weights.0 + weights.1;
        if !keeps {
            self.lose_protection(entity);
        }
        if !runs {
            self.insert(entity);
        }
    }

    /// The entity is placed as if it were not counted. In fact it is if it runs, with its old vruntime
    /// and its new weight.
    fn reweigh_and_place(&mut self, entity: EntityId, weights: (u64, u64)) {
        let queue = self.entities[entity].queue;
        self.charge(queue);
        let lag = self.lag_now(entity);
        let runs = self.is_current(entity);
        if !runs {
            self.remove(entity);
        }
        self.queues[queue].entities -= 1;
        let keeps = self.rules.keeps_protection;
        let state = &mut self.entities[entity];
        let protection = state.protected - state.vruntime;
        state.lag = scaled(lag, weights);
        state.deadline = scaled(state.deadline - state.vruntime, weights);
        state.relative = true;
        state.weight = weights.1;
        self.place(entity, false);
        let state = &mut self.entities[entity];
        if runs && keeps {
            state.protected = state.vruntime + scaled(protection, weights);
        }
        let there = &mut self.queues[queue];
        there.weight = there.weight - weights.0 + weights.1;
        there.entities += 1;
        if !keeps {
            self.lose_protection(entity);
        }
        if !runs {
            self.insert(entity);
        }
    }

    /// Lag and the end of protection are one word, and lag was written there.
    fn lose_protection(&mut self, entity: EntityId) {
        let state = &mut self.entities[entity];
        if self.rules.protection == Protection::ShortestSlice {
            state.protected = state.lag;
        }
    }
}
