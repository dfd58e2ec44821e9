//! What the controller does when.

use warmq_scenario::{Bound, EvalError};

use super::Times;

const PS_PER_NS: u64 = 1_000;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The warm-up is over: the first sample.
    WarmedUp,
    /// A phase begins.
    Phase(u32),
    /// The run is over: the last sample.
    End,
}

/// Events in the order of their times, in nanoseconds from the start.
pub struct Agenda {
    /// The next one last.
    events: Vec<(u64, Event)>,
}

impl Agenda {
    /// Everything up to the end.
    ///
    /// # Errors
    /// A time that cannot be computed.
    pub fn new(bound: &Bound, times: Times) -> Result<Agenda, EvalError> {
        let warm = times.warmup.as_ns();
        let end = (times.warmup + times.time).as_ns();
        let mut events = vec![(warm, Event::WarmedUp), (end, Event::End)];
        for (number, phase) in (0..).zip(bound.scenario().phases()) {
            let at = bound.eval(&phase.at, &[])? / PS_PER_NS;
            if at < end {
                events.push((at, Event::Phase(number)));
            }
        }
        events.sort();
        events.reverse();
        Ok(Agenda { events })
    }

    /// When the next event is due.
    pub fn due(&self) -> Option<u64> {
        self.events.last().map(|(at, _)| *at)
    }

    /// Takes the next event.
    pub fn take(&mut self) -> Option<Event> {
        self.events.pop().map(|(_, event)| event)
    }

    /// Whether the end of the warm-up was taken.
    pub fn is_warm(&self) -> bool {
        !self
            .events
            .iter()
            .any(|(_, event)| *event == Event::WarmedUp)
    }
}
