//! Invariants that every machine obeys, checked over a whole run.
//!
//! | invariant | what it says |
//! |---|---|
//! | TimeNeverBack | no record is earlier than the one before |
//! | LifeOnce | a task is forked once, exits once, and neither runs nor wakes outside its life |
//! | OneCpuPerTask | no task is on two CPUs at once |
//! | SwitchesMatch | the task that leaves a CPU is the one that was running there |
//! | OnlyRunnableRuns | a task that gets a CPU was woken before, or left its last CPU runnable |
//! | InterruptsBalanced | interrupts end in the reverse order of their beginnings, each once, and no switch happens inside one |
//! | WorkConserving | no CPU idles beside a waiting task that it could run for longer than the scheduler promises (see [`Promise`]) |
//! | TenuresDisjoint | a lock is granted only after its previous holder has released it |
//! | NoSwitchUnderLock | no CPU switches tasks while it holds a lock or spins for one |
//! | SleepersLeave | a task that blocks leaves its CPU asleep, unless it was woken meanwhile |
//! | NoSwitchInIdle | a CPU leaves its idle state before it switches |
//! | SpansBegin | a span that ends was begun at some time |
//! | CountsGrow | no counter of a scenario goes back |
//! | ReschedulesTaken | every reschedule interrupt taken was sent, and every one sent is taken within 20 ms; one that arrives while another is pending merges with it (in a recording one may be late, and may come that no record shows) |
//!
//! Where events of a CPU are missing ([`Record::Lost`]) nothing is checked until that CPU switches
//! again, and what it may have changed is unknown from then on.
//!
//! The first violation is kept as a value. Later records are not checked, since one wrong record
//! makes the next ones wrong.

mod invariants;
mod seen;
mod violation;

use warmq_units::{Duration, Instant};

use self::seen::Seen;
pub use self::violation::{Breach, Violation};
use crate::{Observer, Record};

/// What a scheduler promises about CPUs that idle while tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// How long a CPU may idle beside a waiting task that it could run.
    pub patience: Duration,
    /// Which tasks count as ones that a CPU could run, among those whose affinity allows it.
    pub queues: Queues,
}

/// Which queues a CPU looks into before it idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Its own queue only: tasks whose wakeup targeted this CPU, or that were preempted here, or
    /// migrated here.
    PerCpu,
    /// All: one queue serves every CPU, or a CPU looks into the other CPUs' queues before it idles.
    Shared,
}

impl Default for Promise {
    /// Two ticks of a 100 Hz kernel, and one queue per CPU.
    fn default() -> Promise {
        Promise {
            patience: Duration::from_ms(20),
            queues: Queues::PerCpu,
        }
    }
}

/// Checks a run against every invariant and keeps the first [`Violation`].
///
/// ```
/// use warmq_trace::{Breach, Checker, Observer, Record};
/// use warmq_units::{CpuId, Instant, TaskId};
/// let (cpu, stranger) = (CpuId(0), Some(TaskId(9)));
/// let mut checker = Checker::of_a_run();
/// checker.see(Instant(5), &Record::Switch { cpu, prev: None, prev_runnable: false, next: stranger });
/// let violation = checker.finish(Instant(6)).unwrap_err();
/// assert_eq!(violation.breach, Breach::NotAlive);
/// assert_eq!(violation.task, stranger);
/// ```
#[derive(Clone, Debug)]
pub struct Checker {
    // Invariant: `seen` is the machine after all records before the first violation.
    seen: Seen,
    promise: Promise,
    first: Option<Violation>,
}

impl Checker {
    /// A checker for a simulated run, whose records begin when the machine starts: every CPU is
    /// idle and no task exists.
    pub fn of_a_run() -> Checker {
        Checker {
            seen: Seen::at_the_start(),
            promise: Promise::default(),
            first: None,
        }
    }

    /// A checker for the recording of a machine that was already running. Until its first switch a
    /// CPU may run any task; a task without a fork may run and wake until it exits; a CPU may be
    /// serving interrupts before its first record of one.
    pub fn of_a_recording() -> Checker {
        Checker {
            seen: Seen::midway(),
            ..Checker::of_a_run()
        }
    }

    /// The same checker, for a scheduler that makes this promise.
    #[must_use]
    pub fn promised(self, promise: Promise) -> Checker {
        Checker { promise, ..self }
    }

    /// The first violation so far.
    pub fn violation(&self) -> Option<&Violation> {
        self.first.as_ref()
    }

    /// Ends the run at `end`, and checks the tasks and interrupts that are still waiting.
    ///
    /// # Errors
    /// The first violation.
    pub fn finish(mut self, end: Instant) -> Result<(), Violation> {
        if self.first.is_none() {
            self.first = invariants::judge_end(&self.seen, end, self.promise).err();
        }
        self.first.map_or(Ok(()), Err)
    }
}

impl Observer for Checker {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        if self.first.is_some() {
            return;
        }
        self.first = invariants::judge(&self.seen, self.promise, at, record).err();
        self.seen.apply(at, record);
    }
}

#[cfg(test)]
mod tests;
