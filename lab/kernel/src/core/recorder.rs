//! Records on their way to the observer.

use std::collections::BTreeMap;

use warmq_trace::Record;
use warmq_units::Instant;

use crate::words::{Object, Part};

/// What the observer wants, and what it has not seen yet.
#[derive(Default)]
pub(crate) struct Recorder {
    listens: bool,
    detail: bool,
    /// Records since the run loop last handed them to the observer; empty if there is no observer.
    records: Vec<(Instant, Record)>,
    /// What mutexes, conditions and so on are part of; empty if nobody wants details.
    objects: BTreeMap<Part, Object>,
}

impl Recorder {
    pub(crate) fn new(listens: bool, detail: bool) -> Recorder {
        Recorder {
            listens,
            detail,
            ..Recorder::default()
        }
    }

    /// Whether anybody wants records.
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.listens
    }

    /// Whether somebody wants records in detail.
    #[inline]
    pub(crate) fn wants_details(&self) -> bool {
        self.detail
    }

    /// Records what happened at `at`, where somebody listens.
    #[inline]
    pub(crate) fn record(&mut self, at: Instant, record: Record) {
        if self.listens {
            self.records.push((at, record));
        }
    }

    /// Takes all records.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Instant, Record)> {
        self.records.drain(..)
    }

    /// `part` is part of `object`.
    pub(crate) fn part_of(&mut self, part: Part, object: Object) {
        if self.detail {
            self.objects.insert(part, object);
        }
    }

    /// What `part` is part of.
    pub(crate) fn object(&self, part: Part) -> Option<&Object> {
        self.objects.get(&part)
    }
}
