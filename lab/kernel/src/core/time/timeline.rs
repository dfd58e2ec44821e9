//! The event queue of a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warmq_units::{Duration, Instant};

use crate::words::MOST_PENDING;

/// An event that is scheduled for later than this from now is in a heap of its own. Steps of CPUs
/// mostly end before; most timers expire later, and those that were cancelled stay until then.
const FAR: Duration = Duration::from_us(128);

/// Bits of a key that say where its event is; the rest of its lower half numbers events.
const PLACE: u32 = 24;

const MOST_SCHEDULED: u64 = (1 << (u64::BITS - PLACE)) - 1;

/// Pending events in a total order: by time, then by the order in which they were scheduled.
///
/// Invariant: no pending event is earlier than `now`; the key of each is in one of the two heaps,
/// and says where in `events` it is.
#[derive(Debug)]
pub struct Timeline<E> {
    now: Instant,
    /// How far time may go: the `end` of the last [`Timeline::pop_until`].
    horizon: Instant,
    scheduled: u64,
    // Apart, so that what happens all the time is found among hundreds, while tens of thousands of
    // timers may be pending.
    soon: Heap,
    far: Heap,
    // Heaps move their entries about: these are short, and an event stays where it is until it
    // happens.
    events: Vec<Option<E>>,
    free: Vec<u32>,
    /// Whether an event found no place or no number, and was dropped.
    overflowed: bool,
}

type Heap = BinaryHeap<Reverse<Key>>;

/// The time, then the order, then where the event is, as one number, so that a heap compares
/// without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    /// The invariant of [`Timeline`] keeps both numbers within their bits.
    #[inline]
    fn new(at: Instant, order: u64, place: u32) -> Key {
        let rank = order << PLACE | u64::from(place);
        Key(u128::from(at.0) << 64 | u128::from(rank))
    }

    #[inline]
    fn at(self) -> Instant {
        Instant((self.0 >> 64) as u64)
    }

    #[inline]
    fn place(self) -> u32 {
        self.0 as u32 & ((1 << PLACE) - 1)
    }
}

impl<E> Default for Timeline<E> {
    fn default() -> Self {
        Timeline {
            now: Instant::START,
            horizon: Instant::START,
            scheduled: 0,
            soon: Heap::new(),
            far: Heap::new(),
            events: Vec::new(),
            free: Vec::new(),
            overflowed: false,
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
    /// Where more events are pending than have a place, it is dropped, and the timeline
    /// [has overflowed](Timeline::has_overflowed).
    ///
    /// # Panics
    /// When `at` lies in the past.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: E) {
        assert!(at >= self.now, "nothing can be scheduled in the past");
        if self.is_full() {
            self.overflowed = true;
            return;
        }
        self.scheduled += 1;
        let key = Key::new(at, self.scheduled, self.keep(event));
        match at - self.now < FAR {
            true => self.soon.push(Reverse(key)),
            false => self.far.push(Reverse(key)),
        }
    }

    /// Whether the next event would have no place, or its number more bits than a key has for it.
    #[inline]
    fn is_full(&self) -> bool {
        let pending = self.events.len() >= MOST_PENDING && self.free.is_empty();
        pending || self.scheduled >= MOST_SCHEDULED
    }

    /// Whether an event was dropped since there were too many: the run cannot go on.
    #[inline]
    pub fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Keeps `event`; returns where.
    #[inline]
    fn keep(&mut self, event: E) -> u32 {
        if let Some(place) = self.free.pop() {
            self.events[place as usize] = Some(event);
            return place;
        }
        self.events.push(Some(event));
        self.events.len() as u32 - 1
    }

    /// The key of the next event, and whether that was far off when it was scheduled.
    #[inline]
    fn first(&self) -> Option<(Key, bool)> {
        match (self.soon.peek(), self.far.peek()) {
            (Some(Reverse(soon)), Some(Reverse(far))) => Some((*soon.min(far), far < soon)),
            (Some(Reverse(soon)), None) => Some((*soon, false)),
            (None, far) => far.map(|Reverse(far)| (*far, true)),
        }
    }

    /// Pops the next event and moves time to it; if it lies after `end`, moves time to `end`.
    #[inline]
    pub fn pop_until(&mut self, end: Instant) -> Option<E> {
        self.horizon = end;
        let Some((key, far)) = self.first().filter(|(key, _)| key.at() <= end) else {
            self.now = self.now.max(end);
            return None;
        };
        let heap = if far { &mut self.far } else { &mut self.soon };
        heap.pop();
        self.now = key.at();
        self.free.push(key.place());
        self.events[key.place() as usize].take()
    }

    /// Moves time to `at` as if an event had been scheduled for then and popped next, and returns
    /// true. Does nothing and returns false if that event would not be next: if another is pending
    /// up to `at`, or `at` lies after the end of the last [`Timeline::pop_until`].
    #[inline]
    pub fn pass_until(&mut self, at: Instant) -> bool {
        let next = at <= self.horizon && self.first().is_none_or(|(next, _)| at < next.at());
        if next {
            self.now = self.now.max(at);
        }
        next
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
    fn events_near_and_far_come_in_one_order() {
        let mut timeline = Timeline::default();
        let far = Instant::START + FAR;
        timeline.schedule(far, 'b');
        timeline.schedule(Instant(1), 'a');
        timeline.schedule(far + FAR, 'e');
        assert_eq!(timeline.pop_until(far), Some('a'));
        timeline.schedule(far, 'c');
        timeline.schedule(far + Duration(1), 'd');
        let order: String = std::iter::from_fn(|| timeline.pop_until(far + FAR)).collect();
        assert_eq!(order, "bcde");
    }

    #[test]
    fn events_beyond_the_most_are_dropped_and_that_is_known() {
        let mut timeline = Timeline::default();
        for number in 0..MOST_PENDING as u64 {
            timeline.schedule(Instant(number), ());
        }
        assert!(!timeline.has_overflowed());
        timeline.schedule(Instant(0), ());
        assert!(timeline.has_overflowed());
        assert_eq!(timeline.scheduled, MOST_PENDING as u64);
    }

    #[test]
    fn an_event_after_the_end_stays() {
        let mut timeline = Timeline::default();
        timeline.schedule(Instant(8), ());
        assert_eq!(timeline.pop_until(Instant(7)), None);
        assert_eq!(timeline.pop_until(Instant(8)), Some(()));
    }
}
