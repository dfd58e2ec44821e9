//! Operators: programs outside of the machine.

use std::collections::VecDeque;
use std::rc::Rc;

use warmq_units::Instant;

use crate::words::{Act, Change, Mailbox, Running, resume};

/// An operator, and when it begins.
struct OperatorState {
    mailbox: Rc<Mailbox<Act>>,
    program: Option<Running>,
    begins: Instant,
}

impl OperatorState {
    /// Runs the operator up to what it does next; `None` if it is done.
    fn next_act(&mut self) -> Option<Act> {
        if resume(self.program.as_mut()?) {
            self.program = None;
            return None;
        }
        self.mailbox.take()
    }
}

/// All operators, and what they asked for.
#[derive(Default)]
pub(crate) struct Operators {
    states: Vec<OperatorState>,
    /// True while one acts, which may ask for more.
    acting: bool,
    changes: VecDeque<Change>,
}

impl Operators {
    /// One that begins at `begins`.
    pub(crate) fn add(&mut self, mailbox: Rc<Mailbox<Act>>, program: Running, begins: Instant) {
        let program = Some(program);
        self.states.push(OperatorState {
            mailbox,
            program,
            begins,
        });
    }

    /// When each begins.
    pub(crate) fn beginnings(&self) -> Vec<Instant> {
        self.states.iter().map(|state| state.begins).collect()
    }

    pub(crate) fn set_acting(&mut self, acting: bool) {
        self.acting = acting;
    }

    pub(crate) fn is_acting(&self) -> bool {
        self.acting
    }

    /// What the operator with this number does next; `None` if it is done.
    pub(crate) fn next_act(&mut self, index: usize) -> Option<Act> {
        self.states[index].next_act()
    }

    /// One of them asks for `change`.
    pub(crate) fn request(&mut self, change: Change) {
        self.changes.push_back(change);
    }

    /// The change that was asked for first.
    pub(crate) fn take_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }
}
