//! What happens to the machine at set times: an operator is a program outside of the machine, which
//! uses no CPU time of it.

use std::rc::Rc;

use warmq_trace::Record;
use warmq_units::Instant;

use crate::boot::Boot;
use crate::change::Change;
use crate::core::Event;
use crate::cpu_loop::STEPS_AT_ONCE;
use crate::ending::{Ending, Stall};
use crate::engine::Engine;
use crate::program::{Mailbox, Running, ask, resume};

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

/// An operator, and when it begins.
pub(crate) struct OperatorState {
    mailbox: Rc<Mailbox<Act>>,
    program: Option<Running>,
    pub(crate) begins: Instant,
}

impl Operator {
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

    /// Changes something, at no cost but that of what the kernel does for it. Changes that operators
    /// ask for take place one after another.
    pub async fn change(&self, change: Change) {
        ask(&self.mailbox, Act::Change(change)).await;
    }

    async fn note(&self, record: Record) {
        ask(&self.mailbox, Act::Note(record)).await;
    }
}

impl Boot<'_> {
    /// An operator that begins at `at`. Of those that act at the same time, the one that was
    /// created first acts first.
    pub fn operator<F, R>(&mut self, at: Instant, program: F)
    where
        F: FnOnce(Operator) -> R,
        R: Future<Output = ()> + 'static,
    {
        let mailbox = Mailbox::new();
        let handle = Operator {
            mailbox: mailbox.clone(),
        };
        let program: Running = Box::pin(program(handle));
        self.core().operators.push(OperatorState {
            mailbox,
            program: Some(program),
            begins: at,
        });
    }
}

impl Engine {
    /// Schedules the beginnings of all operators.
    pub(crate) fn start_operators(&mut self) {
        for index in 0..self.core.operators.len() {
            let at = self.core.operators[index].begins;
            self.core.schedule(at, Event::Operator(index));
        }
    }

    /// Lets an operator act until it waits.
    pub(crate) fn resume_operator(&mut self, index: usize) {
        self.core.operating = true;
        self.run_operator(index);
        self.core.operating = false;
        // A CPU that went idle meanwhile could not tell whether that was all.
        if self.core.settings.nohz {
            self.end_if_stalled();
        }
    }

    fn run_operator(&mut self, index: usize) {
        for _ in 0..STEPS_AT_ONCE {
            let here = &mut self.core.operators[index];
            let Some(program) = &mut here.program else {
                return;
            };
            if resume(program) {
                here.program = None;
                return;
            }
            match here.mailbox.take() {
                None => return,
                Some(Act::Note(record)) => self.core.record(record),
                Some(Act::Change(change)) => self.request(change),
                Some(Act::Until(at)) => {
                    let at = at.max(self.core.now());
                    self.core.schedule(at, Event::Operator(index));
                    return;
                }
            }
        }
        let (at, comm) = (self.core.now(), "operator".to_owned());
        let task = None;
        self.core.ending = Some(Ending::Stalled(Stall::NoProgress { task, comm, at }));
    }
}
