//! The handle by which a program outside of the machine acts on it at set times.

use std::rc::Rc;

use warmq_trace::Record;
use warmq_units::Instant;

use crate::words::{Change, Mailbox, ask};

/// The handle by which an operator acts.
#[derive(Clone)]
pub struct Operator {
    mailbox: Rc<Mailbox<Act>>,
}

/// What an operator does.
pub(crate) enum Act {
    /// Waits.
    Until(Instant),
    /// Says something, which is recorded.
    Note(Record),
    /// Changes something.
    Change(Change),
}

impl Operator {
    pub(crate) fn new(mailbox: Rc<Mailbox<Act>>) -> Operator {
        Operator { mailbox }
    }

    /// Waits until `at`; a time in the past is now.
    pub async fn until(&self, at: Instant) {
        ask(&self.mailbox, Act::Until(at)).await;
    }

    /// Records that the phase `phase` of the scenario begins.
    pub async fn phase(&self, phase: u32) {
        self.note(Record::Phase { phase }).await;
    }

    /// Records what `counter` has counted since the start.
    pub async fn count(&self, counter: u32, total: u64) {
        self.note(Record::Count { counter, total }).await;
    }

    /// Changes something, at no cost but that of what the kernel does for it. Changes that
    /// operators ask for take place one after another.
    pub async fn change(&self, change: Change) {
        ask(&self.mailbox, Act::Change(change)).await;
    }

    async fn note(&self, record: Record) {
        ask(&self.mailbox, Act::Note(record)).await;
    }
}
