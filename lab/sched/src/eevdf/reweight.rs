//! What a change of weight does to virtual time (`reweight_entity()`).
//!
//! The weight of a group on a CPU changes whenever one of its tasks there sleeps or wakes, and the
//! entity that stands for it usually runs then. From 6.13 to 7.0 it is placed again as if it joined
//! the queue, with an average that it is still part of: its lag is compensated twice, so that each
//! change multiplies it. A group whose tasks sleep and wake often so never owes anything, and
//! another one starves.

use crate::fair::tree::EntityId;

use super::rules::{Protection, Reweight};
use super::state::State;
use super::weights::{LEAST, NICE_0, down};

/// `value` by the ratio of two weights, rounded towards 0.
fn scaled(value: i64, weights: (u64, u64)) -> i64 {
    let (from, to) = weights;
    (i128::from(value) * i128::from(from) / i128::from(to.max(1))) as i64
}

impl State {
    /// `entity` weighs `weight` from now on.
    pub(super) fn reweigh(&mut self, entity: EntityId, weight: u64) {
        let before = self.entities[entity].weight;
        self.record_lags_before(entity);
        match (self.entities[entity].queued, self.rules.reweight) {
            _ if self.rules.flat => {}
            (false, _) => self.rescale(entity, weight),
            (true, Reweight::PlacesAgain) => self.reweigh_and_place(entity, weight),
            (true, _) => self.reweigh_in_place(entity, weight),
        }
        let state = &mut self.entities[entity];
        state.weight = weight;
        let there = &mut self.queues[state.queue];
        if state.queued {
            there.weight = there.weight - before + weight;
        }
        if state.attached {
            let (before, weight) = (down(before), down(weight));
            there.load.reweigh(&mut state.load, before, weight);
        } else {
            state.load.reweigh_alone(down(weight));
        }
        self.record_lags(self.entities[entity].queue);
        self.effects.write(self.entities[entity].line);
    }

    /// Where only tasks are queued: the weight of `task`, an entity that competes, among all of its
    /// CPU follows those of the groups above it (`__calc_prop_weight()`, `reweight_eevdf()`).
    ///
    /// ```text
    ///     1 * product over the levels of (weight of the entity / weight of its queue)
    ///
    ///     of the topmost entity its weight in that of nice 0; each product is 2 at least
    /// ```
    pub(super) fn refresh_flat_weight(&mut self, task: EntityId) {
        if !self.rules.flat {
            return;
        }
        let weight = self.flat_weight(task);
        if weight != self.entities[task].flat_weight {
            self.reweigh_in_place(task, weight);
        }
    }

    /// The same for a task that competes only from now on.
    pub(super) fn begin_flat_weight(&mut self, task: EntityId) {
        let weight = self.flat_weight(task);
        self.rescale(task, weight);
    }

    fn flat_weight(&self, task: EntityId) -> u64 {
        let (mut weight, mut next) = (NICE_0, Some(task));
        while let Some(entity) = next {
            let state = &self.entities[entity];
            let queue = &self.queues[state.queue];
            let whole = match queue.owner {
                Some(_) => queue.weight.max(1),
                None => NICE_0,
            };
            weight = (weight * state.weight / whole).max(LEAST);
            next = queue.owner;
        }
        weight
    }

    fn set_virtual_weight(&mut self, entity: EntityId, weight: u64) {
        let state = &mut self.entities[entity];
        match self.rules.flat {
            true => state.flat_weight = weight,
            false => state.weight = weight,
        }
    }

    /// An entity that does not compete has its lag, and the distance to its deadline, by its new
    /// weight.
    fn rescale(&mut self, entity: EntityId, weight: u64) {
        let weights = (self.virtual_weight(entity), weight);
        let state = &mut self.entities[entity];
        state.lag = scaled(state.lag, weights);
        if state.relative {
            state.deadline = scaled(state.deadline, weights);
        }
        self.set_virtual_weight(entity, weight);
    }

    /// ```text
    ///     v := V - lag w / w'      d := V + (d - V) w / w'
    ///     v stays                  d := v + (d - v) w / w'      as 6.6 began
    /// ```
    fn reweigh_in_place(&mut self, entity: EntityId, weight: u64) {
        let queue = self.timeline(entity);
        let weights = (self.virtual_weight(entity), weight);
        self.charge(queue);
        let (average, lag) = match self.rules.reweight {
            Reweight::KeepsVruntime if !self.rules.flat => (self.entities[entity].vruntime, 0),
            _ => (self.average(queue), self.lag_now(entity)),
        };
        let runs = self.is_current(entity);
        let protected = runs && self.is_protected(entity);
        if !runs {
            self.remove(entity);
        }
        let keeps = self.rules.keeps_protection;
        self.set_virtual_weight(entity, weight);
        let state = &mut self.entities[entity];
        state.lag = scaled(lag, weights);
        state.vruntime = average - state.lag;
        state.deadline = average + scaled(state.deadline - average, weights);
        if protected && keeps {
            state.protected = average + scaled(state.protected - average, weights);
        }
        if !keeps {
            self.lose_protection(entity);
        }
        if !runs {
            self.insert(entity);
        }
    }

    /// The entity is placed as if it were not counted. In fact it is if it runs, with its old
    /// vruntime and its new weight.
    fn reweigh_and_place(&mut self, entity: EntityId, weight: u64) {
        let queue = self.timeline(entity);
        let weights = (self.virtual_weight(entity), weight);
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
        self.set_virtual_weight(entity, weight);
        self.place(entity, false);
        let state = &mut self.entities[entity];
        if runs && keeps {
            state.protected = state.vruntime + scaled(protection, weights);
        }
        self.queues[queue].entities += 1;
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
