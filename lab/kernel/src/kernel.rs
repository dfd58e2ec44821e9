//! The run loop: lets time run, and hands what happens to whoever observes.

use warmq_trace::Observer;
use warmq_units::Instant;

use crate::core::Core;
use crate::ending::Ending;
use crate::engine::Engine;

/// A simulated machine with its kernel, its scheduler and its workload, while `O` observes.
pub struct Kernel<O: Observer> {
    pub(crate) engine: Engine,
    observer: O,
    events: u64,
}

impl<O: Observer> Kernel<O> {
    pub(crate) fn new(mut engine: Engine, observer: O) -> Kernel<O> {
        engine.core.listens = O::LISTENS;
        Kernel {
            engine,
            observer,
            events: 0,
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.engine.core
    }

    /// Simulated time.
    pub fn now(&self) -> Instant {
        self.core().now()
    }

    /// Who watched.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who watched, for good.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events + self.core().passed
    }

    /// Lets time run until `end`, or until nothing can go on. Called again after
    /// [`Ending::TimeUp`], it goes on; any other ending stays.
    pub fn run_until(&mut self, end: Instant) -> Ending {
        while !self.is_over() {
            let Some(event) = self.engine.core.next_event(end) else {
                break;
            };
            self.events += 1;
            self.engine.handle(event);
            self.hand_records_on();
        }
        let core = &mut self.engine.core;
        let now = core.now();
        for cpu in &mut core.cpus {
            cpu.charge(now);
        }
        core.ending.clone().unwrap_or(Ending::TimeUp)
    }

    /// Whether the run has ended; it has, too, when every task exited.
    fn is_over(&mut self) -> bool {
        let core = &mut self.engine.core;
        if core.alive == 0 && core.ending.is_none() {
            core.ending = Some(Ending::WorkDone);
        }
        core.ending.is_some()
    }

    /// Tells the observer what has happened since it was told last.
    pub(crate) fn hand_records_on(&mut self) {
        if O::LISTENS {
            for (at, record) in self.engine.core.records.drain(..) {
                self.observer.see(at, &record);
            }
        }
    }

    /// Forgets everything counted so far, after a warm-up; caches and queues stay as they are.
    pub fn reset_figures(&mut self) {
        self.engine.core.reset_figures();
    }
}
