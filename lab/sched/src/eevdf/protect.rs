//! How long a picked entity keeps its CPU although others are eligible and due earlier.

use crate::fair::tree::EntityId;

use super::rules::Protection;
use super::state::State;

impl State {
    /// `entity` has just been picked (`set_protect_slice()`).
    pub(super) fn protect(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let until = match self.rules.protection {
            Protection::Deadline => state.deadline,
            Protection::ShortestSlice => {
                let shortest = match self.rules.run_to_parity {
                    true => self
                        .shortest_slice(self.timeline(entity))
                        .unwrap_or(state.slice),
                    false => self.rules.one_cpu_slice,
                };
                match shortest < state.slice {
                    true => self.at_most(entity, state.deadline, shortest),
                    false => state.deadline,
                }
            }
        };
        self.entities[entity].protected = until;
    }

    /// `until`, or when `entity` has run for `span` ns from now, if that is earlier.
    fn at_most(&self, entity: EntityId, until: i64, span: i64) -> i64 {
        until.min(self.entities[entity].vruntime + self.virtual_time(entity, span))
    }

    /// Whether `entity`, which runs, keeps the CPU for now (`protect_slice()`).
    pub(super) fn is_protected(&self, entity: EntityId) -> bool {
        let state = &self.entities[entity];
        match self.rules.protection {
            Protection::Deadline => self.rules.run_to_parity && state.protected == state.deadline,
            Protection::ShortestSlice => state.vruntime < state.protected,
        }
    }

    /// Ends the protection of `entity` (`cancel_protect_slice()`).
    pub(super) fn unprotect(&mut self, entity: EntityId) {
        if !self.is_protected(entity) {
            return;
        }
        let state = &mut self.entities[entity];
        state.protected = match self.rules.protection {
            Protection::Deadline => state.deadline + 1,
            Protection::ShortestSlice => state.vruntime,
        };
    }

    /// Somebody with a shorter slice may have come: protection is for no longer than that
    /// (`update_protect_slice()`).
    pub(super) fn shorten_protection(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let shortest = self
            .shortest_slice(self.timeline(entity))
            .unwrap_or(state.slice);
        let until = self.at_most(entity, state.protected, shortest);
        self.entities[entity].protected = until;
    }
}
