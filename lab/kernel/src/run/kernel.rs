//! The run loop: advances time, and passes records on to the observer.

use warmq_trace::Observer;
use warmq_units::Instant;

use crate::core::Core;
use crate::paths::System;
use crate::words::{Ending, Stall};

/// A simulated machine with its kernel, scheduler and workload, observed by `O`.
pub struct Kernel<O: Observer> {
    pub(crate) system: System,
    observer: O,
    events: u64,
}

impl<O: Observer> Kernel<O> {
    pub(crate) fn new(system: System, observer: O) -> Kernel<O> {
        Kernel {
            system,
            observer,
            events: 0,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.system.core
    }

    /// The simulated time.
    pub fn now(&self) -> Instant {
        self.core().now()
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The same, to be given what is no record.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the run and returns the observer.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events + self.core().passed()
    }

    /// Runs until `end`, or until the run ends before. After [`Ending::TimeUp`] it can be called
    /// again and continues; any other ending is final.
    pub fn run_until(&mut self, end: Instant) -> Ending {
        while !self.is_over() {
            let Some(event) = self.system.core.next_event(end) else {
                break;
            };
            self.events += 1;
            self.system.handle(event);
            self.hand_records_on();
        }
        let core = &mut self.system.core;
        let now = core.now();
        for cpu in &mut core.cpus {
            cpu.charge(now);
        }
        core.ending().cloned().unwrap_or(Ending::TimeUp)
    }

    /// Whether the run has ended, be it because every task has exited.
    fn is_over(&mut self) -> bool {
        let core = &mut self.system.core;
        if core.work_is_done() && !core.has_ended() {
            core.end(Ending::WorkDone);
        }
        if core.has_overflowed() {
            let at = core.now();
            core.end(Ending::Stalled(Stall::TooManyEvents { at }));
        }
        core.has_ended()
    }

    /// Passes the records since the last call on to the observer.
    pub(crate) fn hand_records_on(&mut self) {
        if O::LISTENS {
            for (at, record) in self.system.core.recorder.take() {
                self.observer.see(at, &record);
            }
        }
    }

    /// Discards all counts so far, after a warm-up. Caches and queues stay as they are.
    pub fn reset_figures(&mut self) {
        self.system.core.reset_figures();
    }
}
