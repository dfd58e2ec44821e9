//! What the controller does when.

use warmq_scenario::program::{Occurrences, Planned};
use warmq_scenario::{Bound, EvalError};

use super::Times;

const PS_PER_NS: u64 = 1_000;

/// What is to be done. Of events at the same time, those that stand first here come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The warm-up is over: the first sample.
    WarmedUp,
    /// A change takes place, by its place in the scenario.
    Change(u32),
    /// A phase begins.
    Phase(u32),
    /// The run is over: the last sample.
    End,
}

/// Events in the order of their times, in nanoseconds from the start.
pub struct Agenda {
    /// The next one last.
    events: Vec<(u64, Event)>,
    /// The times that changes still have, in the order of the scenario.
    changes: Vec<Occurrences>,
    end_ns: u64,
}

impl Agenda {
    /// Everything up to the end.
    ///
    /// # Errors
    /// A time that cannot be computed.
    pub fn new(bound: &Bound, changes: &[Planned], times: Times) -> Result<Agenda, EvalError> {
        let mut agenda = Agenda {
            events: vec![(times.warmup.as_ns(), Event::WarmedUp)],
            changes: changes.iter().map(|change| change.times).collect(),
            end_ns: (times.warmup + times.time).as_ns(),
        };
        (0..changes.len()).for_each(|change| agenda.add_next(change as u32));
        for (number, phase) in (0..).zip(bound.scenario().phases()) {
            let at_ns = bound.eval(&phase.at, &[])? / PS_PER_NS;
            agenda.add(at_ns, Event::Phase(number));
        }
        agenda.events.push((agenda.end_ns, Event::End));
        agenda.events.sort_by(|one, other| other.cmp(one));
        Ok(agenda)
    }

    /// Adds the next time of a change.
    fn add_next(&mut self, change: u32) {
        if let Some(at) = self.changes[change as usize].next() {
            self.add(at.0 / PS_PER_NS, Event::Change(change));
        }
    }

    /// Adds an event, if it takes place before the end.
    fn add(&mut self, at_ns: u64, event: Event) {
        if at_ns < self.end_ns {
            let place = self.events.partition_point(|other| *other > (at_ns, event));
            self.events.insert(place, (at_ns, event));
        }
    }

    /// When the next event is due.
    pub fn due(&self) -> Option<u64> {
        self.events.last().map(|(at, _)| *at)
    }

    /// Takes the next event. A change that takes place again is put back with its next time.
    pub fn take(&mut self) -> Option<Event> {
        let last = self.events.len().checked_sub(1)?;
        Some(self.take_at(last))
    }

    /// Takes the first event for which `is_meant` says so, if it is due by `now`; those before it
    /// stay.
    pub fn take_due(&mut self, now: u64, is_meant: impl Fn(Event) -> bool) -> Option<Event> {
        let place = self
            .events
            .iter()
            .rposition(|(_, event)| is_meant(*event))?;
        let (at, _) = self.events[place];
        (at <= now).then(|| self.take_at(place))
    }

    fn take_at(&mut self, place: usize) -> Event {
        let (_, event) = self.events.remove(place);
        if let Event::Change(change) = event {
            self.add_next(change);
        }
        event
    }

    /// Whether the end of the warm-up was taken.
    pub fn is_warm(&self) -> bool {
        !self.has(|_, event| event == Event::WarmedUp)
    }

    /// Whether there is an event for which `is_meant` says so.
    pub fn has(&self, is_meant: impl Fn(u64, Event) -> bool) -> bool {
        self.events.iter().any(|(at, event)| is_meant(*at, *event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_config::Chosen;
    use warmq_scenario::Scenario;
    use warmq_scenario::program::Cpus;
    use warmq_units::Duration;

    fn made(changes: &str, warmup: u64, time: u64) -> Agenda {
        let text = format!("[task.hog]\nbody = [{{ run = \"1ms\" }}]\n{changes}");
        let scenario =
            Scenario::read("test", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let defaults = Chosen::new(scenario.settings(), Default::default()).expect("defaults");
        let bound = scenario
            .bind(&defaults, &warmq_scenario::Site::default())
            .expect("bound");
        let times = Times {
            warmup: Duration::from_ms(warmup),
            time: Duration::from_ms(time),
        };
        let changes = bound.planned(&Cpus::default()).expect("numbers");
        Agenda::new(&bound, &changes, times).expect("times")
    }

    fn agenda(changes: &str, warmup: u64, time: u64) -> Vec<(u64, Event)> {
        let mut agenda = made(changes, warmup, time);
        let mut all = Vec::new();
        while let Some(at) = agenda.due() {
            all.push((at / 1_000_000, agenda.take().expect("due")));
        }
        all
    }

    #[test]
    fn changes_come_before_the_phase_of_their_time_and_nothing_after_the_end() {
        let text = "
            [[phase]]
            name = \"nicer\"
            at = \"20ms\"
            [[change]]
            at = \"20ms\"
            task = \"hog\"
            set = { nice = 5 }
            [[change]]
            at = \"90ms\"
            task = \"hog\"
            set = { nice = 6 }";
        let wanted = [
            (10, Event::WarmedUp),
            (20, Event::Change(0)),
            (20, Event::Phase(0)),
            (50, Event::End),
        ];
        assert_eq!(agenda(text, 10, 40), wanted);
    }

    #[test]
    fn an_event_can_be_taken_before_one_that_must_wait() {
        let text = "
            [[change]]
            at = \"20ms\"
            task = \"hog\"
            set = { nice = 5 }
            [[change]]
            every = \"10ms\"
            start = \"30ms\"
            task = \"hog\"
            set = { nice = 6 }";
        let mut agenda = made(text, 0, 100);
        let ms = |ms: u64| ms * 1_000_000;
        let other = |event| !matches!(event, Event::Change(0) | Event::End);
        assert_eq!(agenda.take(), Some(Event::WarmedUp));
        assert_eq!(agenda.take_due(ms(29), other), None, "not yet");
        assert_eq!(agenda.take_due(ms(35), other), Some(Event::Change(1)));
        assert_eq!(
            agenda.take_due(ms(35), other),
            None,
            "it takes place again at 40 ms"
        );
        assert_eq!(agenda.take_due(ms(41), other), Some(Event::Change(1)));
        assert_eq!(agenda.due(), Some(ms(20)), "what must wait is still there");
        assert_eq!(agenda.take(), Some(Event::Change(0)));
        assert_eq!(agenda.due(), Some(ms(50)));
    }

    #[test]
    fn a_change_takes_place_again_until_its_end() {
        let text = "
            [[change]]
            every = \"10ms\"
            start = \"5ms\"
            end = \"30ms\"
            task = \"hog\"
            set = { nice = 5 }
            [[change]]
            every = \"20ms\"
            task = \"hog\"
            set = { nice = 6 }";
        let wanted = [
            (0, Event::WarmedUp),
            (5, Event::Change(0)),
            (15, Event::Change(0)),
            (20, Event::Change(1)),
            (25, Event::Change(0)),
            (40, Event::Change(1)),
            (60, Event::End),
        ];
        assert_eq!(agenda(text, 0, 60), wanted);
    }
}
