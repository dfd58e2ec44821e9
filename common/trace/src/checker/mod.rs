//! Laws that no machine breaks, watched over a whole run.
//!
//! | law | what it says |
//! |---|---|
//! | [`Law::TimeNeverBack`] | no record is earlier than the one before |
//! | [`Law::LifeOnce`] | a task is forked once, exits once, and neither runs nor wakes outside its life |
//! | [`Law::OneCpuPerTask`] | nobody gets a second CPU while it has one |
//! | [`Law::SwitchesMatch`] | who leaves a CPU is who ran there |
//! | [`Law::OnlyRunnableRuns`] | who gets a CPU was woken, or left its last one runnable |
//! | [`Law::InterruptsBalanced`] | interrupts end in the reverse order of their beginnings, each once, and nobody switches inside one |
//! | [`Law::NoWakeupLost`] | nobody is left waiting for a CPU that idles to the end (see [`Checker::finish`]) |
//!
//! The first violation is kept as a value; what follows it is not looked at, as one wrong record
//! makes the next ones wrong.

mod board;
mod laws;
mod violation;

use warmq_units::{Duration, Instant};

use self::board::Board;
pub use self::violation::{Breach, Law, Violation};
use crate::{Observer, Record};

/// How long a CPU may idle at the end of a run beside a task that waits for it, unless told
/// otherwise: two ticks of a kernel of 100 Hz.
const PATIENCE: Duration = Duration::from_ms(20);

/// Watches a run for every [`Law`] and keeps the first [`Violation`].
///
/// ```
/// use warmq_trace::{Checker, Law, Observer, Record};
/// use warmq_units::{CpuId, Instant, TaskId};
/// let (cpu, stranger) = (CpuId(0), Some(TaskId(9)));
/// let mut checker = Checker::of_a_run();
/// checker.see(Instant(5), &Record::Switch { cpu, prev: None, prev_runnable: false, next: stranger });
/// let violation = checker.finish(Instant(6)).unwrap_err();
/// assert_eq!(violation.breach.law(), Law::LifeOnce);
/// assert_eq!(violation.task, stranger);
/// ```
#[derive(Clone, Debug)]
pub struct Checker {
    // Invariant: `board` is the machine after all records before the first violation.
    board: Board,
    patience: Duration,
    panics: bool,
    first: Option<Violation>,
}

impl Checker {
    /// For a simulated run: its records tell of the machine from the start, where every CPU is
    /// idle and no task exists.
    pub fn of_a_run() -> Checker {
        Checker {
            board: Board::at_the_start(),
            patience: PATIENCE,
            panics: false,
            first: None,
        }
    }

    /// For the recording of a machine that had been running: what happened before is not held
    /// against it. A CPU may run anybody before its first switch, a task that was never forked may
    /// run and wake until it exits, and a CPU may be in interrupts before its first record of one.
    pub fn of_a_recording() -> Checker {
        Checker {
            board: Board::midway(),
            ..Checker::of_a_run()
        }
    }

    /// The same checker, which panics at the first violation, where the test can still show how it
    /// came about.
    #[must_use]
    pub fn panicking(self) -> Checker {
        Checker {
            panics: true,
            ..self
        }
    }

    /// The same checker, with `patience` for CPUs that idle at the end beside a waiting task: as
    /// long as an interrupt that asks them to look at their queue may take, or as long as a
    /// scheduler keeps CPUs idle on purpose.
    #[must_use]
    pub fn patient(self, patience: Duration) -> Checker {
        Checker { patience, ..self }
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<&Violation> {
        self.first.as_ref()
    }

    /// Ends the run at `end` and judges it as a whole.
    ///
    /// A wakeup is lost if, at `end`, a task is runnable and has not run since, while the CPU
    /// whose queue it is in (the wakeup's target, or the CPU that it was preempted on, or where it
    /// migrated to) has been idle and the task has been there for longer than the patience.
    /// A task that is merely queued behind others is not lost.
    ///
    /// # Errors
    /// The first violation.
    ///
    /// # Panics
    /// If the checker is [`Checker::panicking`] and a wakeup is lost.
    pub fn finish(mut self, end: Instant) -> Result<(), Violation> {
        if self.first.is_none() {
            let lost = laws::no_wakeup_lost(&self.board, end, self.patience);
            self.keep(lost);
        }
        self.first.map_or(Ok(()), Err)
    }

    fn keep(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            assert!(!self.panics, "{violation}");
            self.first = Some(violation);
        }
    }
}

impl Observer for Checker {
    fn see(&mut self, at: Instant, record: &Record) {
        if self.first.is_some() {
            return;
        }
        let verdict = laws::judge(&self.board, at, record);
        self.keep(verdict);
        self.board.apply(at, record);
    }
}

#[cfg(test)]
mod tests;
