//! What a scheduler did between two looks at it.

use std::time::Instant;

use super::{Group, Statistics, Waits};
use crate::state::State;

/// The statistics at a time.
pub struct Look {
    at: Instant,
    statistics: Statistics,
}

impl Look {
    /// At a copy of the scheduler's state that was made just now.
    pub fn at(state: &State) -> Look {
        Look {
            at: Instant::now(),
            statistics: Statistics::of(state),
        }
    }

    /// What happened since `before`.
    pub fn since<'a>(&'a self, before: &'a Look) -> Interval<'a> {
        Interval {
            before: &before.statistics,
            now: &self.statistics,
            seconds: self.at.duration_since(before.at).as_secs_f64(),
        }
    }
}

/// Two looks at a scheduler.
pub struct Interval<'a> {
    /// The earlier one.
    pub before: &'a Statistics,
    /// The later one.
    pub now: &'a Statistics,
    /// Between them.
    pub seconds: f64,
}

impl Interval<'_> {
    /// Whether the same scheduler ran at both looks; a new one counts from 0.
    pub fn is_same(&self) -> bool {
        self.before.started_at_ns == self.now.started_at_ns
    }

    /// By how much a counter has grown.
    pub fn grown(&self, counter: &str) -> u64 {
        match self.is_same() {
            true => self.now.counters.grown(&self.before.counters, counter),
            false => self.now.counters.get(counter),
        }
    }

    /// A group at the earlier look, if it was the same then.
    fn earlier(&self, group: &Group) -> Option<&Group> {
        let before = self
            .before
            .groups
            .iter()
            .find(|before| before.slot == group.slot);
        let is_it = |before: &&Group| {
            (before.uid, before.tgid, before.app, before.fragment)
                == (group.uid, group.tgid, group.app, group.fragment)
        };
        before.filter(is_it).filter(|_| self.is_same())
    }

    /// By how much a number of a group of the later look has grown.
    pub fn group_grown(&self, group: &Group, field: impl Fn(&Group) -> u64) -> u64 {
        let before = self.earlier(group).map_or(0, &field);
        field(group).saturating_sub(before)
    }

    /// The waits between the looks.
    pub fn waits(&self) -> Waits {
        match self.is_same() {
            true => self.now.waits.since(&self.before.waits),
            false => self.now.waits.clone(),
        }
    }

    /// The waits of a group of the later look between the looks.
    pub fn group_waits(&self, group: &Group) -> Waits {
        match self.earlier(group) {
            Some(before) => group.waits.since(&before.waits),
            None => group.waits.clone(),
        }
    }
}
