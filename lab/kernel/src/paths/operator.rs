//! What happens to the machine at set times: an operator is a program outside of the machine, which
//! uses no CPU time of it.

use crate::core::Event;
use crate::paths::{STEPS_AT_ONCE, System};
use crate::words::Act;

impl System {
    /// Schedules the beginnings of all operators.
    pub(crate) fn start_operators(&mut self) {
        let beginnings = self.core.operators.beginnings();
        for (index, at) in beginnings.into_iter().enumerate() {
            self.core.schedule(at, Event::Operator(index));
        }
    }

    /// Lets an operator act until it waits.
    pub(crate) fn resume_operator(&mut self, index: usize) {
        self.core.operators.set_acting(true);
        self.run_operator(index);
        self.core.operators.set_acting(false);
        // A CPU that went idle meanwhile could not know whether that was all.
        if self.core.settings.nohz {
            self.end_if_stalled();
        }
    }

    fn run_operator(&mut self, index: usize) {
        for _ in 0..STEPS_AT_ONCE {
            match self.core.operators.next_act(index) {
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
        self.core.no_progress(None, "operator".to_owned());
    }
}
