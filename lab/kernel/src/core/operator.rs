//! Operators: programs outside of the machine.

use std::rc::Rc;

use warmq_units::Instant;

use crate::words::operator::Act;
use crate::words::program::{Mailbox, Running, resume};

/// An operator, and when it begins.
pub(crate) struct OperatorState {
    mailbox: Rc<Mailbox<Act>>,
    program: Option<Running>,
    pub(crate) begins: Instant,
}

impl OperatorState {
    pub(crate) fn new(
        mailbox: Rc<Mailbox<Act>>,
        program: Running,
        begins: Instant,
    ) -> OperatorState {
        OperatorState {
            mailbox,
            program: Some(program),
            begins,
        }
    }

    /// Runs the operator up to what it does next; `None` if it is done.
    pub(crate) fn next_act(&mut self) -> Option<Act> {
        if resume(self.program.as_mut()?) {
            self.program = None;
            return None;
        }
        self.mailbox.take()
    }
}
