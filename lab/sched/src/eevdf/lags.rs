//! What groups are owed, recorded for whoever wants details: each time a CPU picks, and each time
//! the weight of a group changes there, so that what that does to its lag can be followed step by
//! step. Where only tasks compete, groups have no lag.

use warmq_trace::Record;

use crate::fair::tree::EntityId;

use super::state::{QueueId, State, What};
use super::weights::down;

impl State {
    /// Records the lags of all groups in `queue`.
    pub(super) fn record_lags(&mut self, queue: QueueId) {
        if self.effects.details().is_none() {
            return;
        }
        let current = self.queues[queue].current;
        let waiting = self.queues[queue].tree.iter();
        let owed: Vec<Record> = (current.into_iter().chain(waiting))
            .filter_map(|entity| self.owed(entity))
            .collect();
        if let Some(details) = self.effects.details() {
            details.extend(owed);
        }
    }

    /// Records the lags of the groups beside `entity` before it is reweighted, which begins with
    /// charging who runs.
    pub(super) fn record_lags_before(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let queue = state.queue;
        if state.queued && !self.rules.flat && self.effects.details().is_some() {
            self.charge(queue);
            self.record_lags(queue);
        }
    }

    /// What `entity` is owed, if it is a group that is queued.
    fn owed(&self, entity: EntityId) -> Option<Record> {
        let state = &self.entities[entity];
        let What::Group(own) = state.what else {
            return None;
        };
        let group = self.groups.get(self.queues[own].group?)?;
        state.queued.then(|| Record::Owed {
            cpu: self.queues[own].cpu,
            group: group.id.index() as u32,
            weight: down(state.weight),
            vruntime: state.vruntime,
            lag: self.average(state.queue) - state.vruntime,
        })
    }
}
