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
//! | [`Law::WorkConserving`] | no CPU idles for longer than was promised while a task waits that it could run (see [`Promise`]) |
//! | [`Law::TenuresDisjoint`] | a lock is granted when its tenure before is over |
//! | [`Law::NoSwitchUnderLock`] | nobody switches while it holds a lock or spins for one |
//! | [`Law::ReschedulesTaken`] | each reschedule interrupt that is taken was sent, and each that is sent is taken within 20 ms; one that arrives while another is pending merges with that |
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

/// What a scheduler promises of CPUs that idle while tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// For how long a CPU may idle beside a waiting task that it could run.
    pub patience: Duration,
    /// Which tasks a CPU could run, of those whose affinity allows it.
    pub queues: Queues,
}

/// Whose tasks a CPU looks for when it would idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Those in its own queue: the wakeup's target is this CPU, or the task was preempted here, or
    /// it migrated here.
    PerCpu,
    /// All: one queue serves every CPU, or a CPU looks into the others' queues before it idles.
    Shared,
}

impl Default for Promise {
    /// Two ticks of a kernel of 100 Hz, and a queue for each CPU.
    fn default() -> Promise {
        Promise {
            patience: Duration::from_ms(20),
            queues: Queues::PerCpu,
        }
    }
}

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
    promise: Promise,
    panics: bool,
    first: Option<Violation>,
}

impl Checker {
    /// For a simulated run: its records tell of the machine from the start, where every CPU is
    /// idle and no task exists.
    pub fn of_a_run() -> Checker {
        Checker {
            board: Board::at_the_start(),
            promise: Promise::default(),
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

    /// The same checker for a scheduler that promises `promise`.
    #[must_use]
    pub fn promised(self, promise: Promise) -> Checker {
        Checker { promise, ..self }
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<&Violation> {
        self.first.as_ref()
    }

    /// Ends the run at `end`, and judges tasks and interrupts that wait still.
    ///
    /// # Errors
    /// The first violation.
    ///
    /// # Panics
    /// If the checker is [`Checker::panicking`] and the end breaks a law.
    pub fn finish(mut self, end: Instant) -> Result<(), Violation> {
        if self.first.is_none() {
            let verdict = laws::judge_end(&self.board, end, self.promise);
            self.keep(verdict);
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
        let verdict = laws::judge(&self.board, self.promise, at, record);
        self.keep(verdict);
        self.board.apply(at, record);
    }
}

#[cfg(test)]
mod tests;
