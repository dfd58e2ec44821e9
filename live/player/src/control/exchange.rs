//! Another scheduler takes over.

use warmq_scenario::SchedulerChoice;

use super::agenda::Event;
use super::{Control, Course};
use crate::error::PlayError;
use crate::notes::Notes;
use crate::sys::clock::now_ns;
use crate::sys::process;

/// Between two looks at a scheduler that comes or goes.
const LOOK_NS: u64 = 1_000_000;

impl Control {
    /// Loads a scheduler, or lets the kernel's own take over; returns when that is done. Whatever
    /// is due meanwhile happens in time, but for the next exchange, the end of the run, and a phase
    /// that begins with the exchange, which was due at `at_ns`: such a phase is about the new
    /// scheduler, and those after it keep their order.
    pub(super) fn exchange(
        &self,
        choice: &SchedulerChoice,
        at_ns: u64,
        course: &mut Course<'_>,
        notes: &Notes,
    ) -> Result<(), PlayError> {
        let begin_ns = now_ns();
        let mut schedulers = self.schedulers.borrow_mut();
        self.give_up_late(schedulers.longest_s());
        // Whoever was thrown out before must not be taken for one that was unloaded.
        if let Some(error) = schedulers.thrown_out() {
            return Err(error);
        }
        let phases_wait = course
            .agenda
            .has(|at, event| matches!(event, Event::Phase(_)) && at <= at_ns);
        let waits = |event| match event {
            Event::End => true,
            Event::Phase(_) => phases_wait,
            event => self.scheduler_of(event).is_some(),
        };
        let mut pause = || {
            self.look_again()?;
            let now = now_ns() - self.start_ns();
            while let Some(event) = course.agenda.take_due(now, |event| !waits(event)) {
                course.happen(self.stage, event)?;
            }
            Ok(())
        };
        let name = match choice {
            SchedulerChoice::Kernel => {
                schedulers.unload(&mut pause)?;
                "the kernel's own"
            }
            SchedulerChoice::First => {
                schedulers.load_first(&mut pause)?;
                "the first scheduler"
            }
            SchedulerChoice::Loaded { name, options } => {
                schedulers.load(name, options, &mut pause)?;
                name
            }
        };
        self.give_up_late(0);
        let start_ns = self.start_ns();
        let ms = |ns: u64| ns / 1_000_000;
        let (at, took) = (ms(now_ns() - start_ns), ms(now_ns() - begin_ns));
        let why = format!("{name} took over at {at} ms; the change took {took} ms");
        notes.say("scheduler", &why);
        Ok(())
    }

    /// Lets the kernel's own scheduler take over, if another was loaded; after the run.
    ///
    /// # Errors
    /// The other cannot be ended.
    pub fn unload(&self) -> Result<(), PlayError> {
        let mut schedulers = self.schedulers.borrow_mut();
        self.give_up_late(schedulers.longest_s());
        let unloaded = schedulers.unload(&mut || {
            process::readable([-1], 5);
            Ok(())
        });
        self.give_up_late(0);
        unloaded
    }

    pub(super) fn look_again(&self) -> Result<(), PlayError> {
        let board = self.stage.board;
        let seen = board.news();
        self.interrupted()?;
        board.wait(seen, now_ns() + LOOK_NS);
        Ok(())
    }
}
