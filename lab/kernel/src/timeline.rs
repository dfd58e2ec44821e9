//! The event queue of a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warmq_units::Instant;

/// Pending events in a total order: by time, then by the order in which they were scheduled.
///
/// Invariant: no pending event is earlier than `now`.
#[derive(Debug)]
pub struct Timeline<E> {
    now: Instant,
    /// How far time may go: the `end` of the last [`Timeline::pop_until`].
    horizon: Instant,
    scheduled: u64,
    pending: BinaryHeap<Reverse<Pending<E>>>,
}

#[derive(Debug)]
struct Pending<E> {
    at: Instant,
    order: u64,
    event: E,
}

impl<E> Pending<E> {
    /// The time, then the order, as one number, so that the heap compares without a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.order)
    }
}

impl<E> PartialEq for Pending<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Pending<E> {}

impl<E> PartialOrd for Pending<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Pending<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Default for Timeline<E> {
    fn default() -> Self {
        Timeline {
            now: Instant::START,
            horizon: Instant::START,
            scheduled: 0,
            pending: BinaryHeap::new(),
        }
    }
}

impl<E> Timeline<E> {
    /// The present time: that of the last event popped.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Schedules `event` for `at`, after all events that were scheduled for the same time before.
    ///
    /// # Panics
    /// When `at` lies in the past.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: E) {
        assert!(at >= self.now, "nothing can be scheduled in the past");
        self.scheduled += 1;
        self.pending.push(Reverse(Pending {
            at,
            order: self.scheduled,
            event,
        }));
    }

    /// Pops the next event and moves time to it; if it lies after `end`, moves time to `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Instant) -> Option<E> {
        self.horizon = end;
        match self.pending.peek() {
            Some(Reverse(next)) if next.at <= end => {
                let Reverse(next) = self.pending.pop()?;
                self.now = next.at;
                Some(next.event)
            }
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }

    /// Moves time to `at` as if an event had been scheduled for then and popped next, and returns
    /// true. Does nothing and returns false if that event would not be next: if another is pending
    /// up to `at`, or `at` lies after the end of the last [`Timeline::pop_until`].
    #[inline]
    pub fn pass_until(&mut self, at: Instant) -> bool {
        let first = |next: &Reverse<Pending<E>>| at < next.0.at;
        let next = at <= self.horizon && self.pending.peek().is_none_or(first);
        if next {
            self.now = self.now.max(at);
        }
        next
    }

    /// How many events were scheduled in all.
    pub fn scheduled(&self) -> u64 {
        self.scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_come_in_the_order_of_scheduling() {
        let mut timeline = Timeline::default();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            timeline.schedule(Instant(at), event);
        }
        let order: String = std::iter::from_fn(|| timeline.pop_until(Instant(9))).collect();
        assert_eq!(order, "abcd");
        assert_eq!(timeline.now(), Instant(9));
    }

    #[test]
    fn time_passes_only_where_nothing_would_happen_before() {
        let mut timeline = Timeline::default();
        assert!(!timeline.pass_until(Instant(1)), "no end was given yet");
        timeline.schedule(Instant(0), 'a');
        timeline.schedule(Instant(8), 'b');
        assert_eq!(timeline.pop_until(Instant(10)), Some('a'));
        assert!(timeline.pass_until(Instant(7)));
        assert_eq!(timeline.now(), Instant(7));
        assert!(
            !timeline.pass_until(Instant(8)),
            "what was scheduled before comes first"
        );
        assert_eq!(timeline.pop_until(Instant(10)), Some('b'));
        assert!(timeline.pass_until(Instant(10)));
        assert!(!timeline.pass_until(Instant(11)), "after the end");
        assert_eq!(timeline.now(), Instant(10));
    }

    #[test]
    fn an_event_after_the_end_stays() {
        let mut timeline = Timeline::default();
        timeline.schedule(Instant(8), ());
        assert_eq!(timeline.pop_until(Instant(7)), None);
        assert_eq!(timeline.pop_until(Instant(8)), Some(()));
    }
}
