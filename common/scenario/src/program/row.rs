//! Rows that are done part by part, as messages come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Do;
use crate::recorded::{Moment, Recorded};
use crate::task::TaskKindId;

/// What a task was seen to do.
#[derive(Clone, Debug)]
pub struct Row {
    /// The moments, in their order.
    pub moments: Arc<[Moment]>,
    /// The moments that begin parts.
    pub parts: Parts,
    /// The steps that moments name; none where the settings leave one out.
    pub steps: Vec<Option<Do>>,
}

/// A part: the step that waits for its message, and the moments behind it.
#[derive(Clone, Debug)]
struct Part {
    step: u32,
    moments: Range<usize>,
}

/// The parts of a row, in the order in which they were recorded.
#[derive(Clone, Debug)]
pub struct Parts {
    before: Range<usize>,
    parts: Vec<Part>,
    /// The parts of each sender, by their places.
    of: BTreeMap<TaskKindId, Vec<usize>>,
}

impl Parts {
    /// The steps that wait for the messages of the parts.
    pub fn waits(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|part| part.step as usize)
    }

    /// Those of `row`.
    pub fn of(row: &Recorded) -> Parts {
        let begins = (0..row.moments.len()).filter_map(|at| match row.moments[at] {
            Moment::Part { step, sender } => Some((at, step, row.senders[sender as usize])),
            _ => None,
        });
        let begins: Vec<(usize, u32, TaskKindId)> = begins.collect();
        let end = |place: usize| begins.get(place).map_or(row.moments.len(), |(at, ..)| *at);
        let mut of: BTreeMap<TaskKindId, Vec<usize>> = BTreeMap::new();
        let mut parts = Vec::with_capacity(begins.len());
        for (place, (at, step, sender)) in begins.iter().copied().enumerate() {
            of.entry(sender).or_default().push(place);
            parts.push(Part {
                step,
                moments: at + 1..end(place + 1),
            });
        }
        Parts {
            before: 0..end(0),
            parts,
            of,
        }
    }

    /// The moments before the first part.
    pub fn before(&self) -> Range<usize> {
        self.before.clone()
    }

    /// The order in which parts are done.
    pub fn order(&self) -> Order<'_> {
        Order {
            parts: self,
            done: vec![false; self.parts.len()],
            oldest: 0,
            ahead: BTreeMap::new(),
        }
    }
}

/// Which parts of a row are done.
pub struct Order<'p> {
    parts: &'p Parts,
    done: Vec<bool>,
    /// All parts before this one are done.
    oldest: usize,
    /// How many parts of each sender are done, or are known to be.
    ahead: BTreeMap<TaskKindId, usize>,
}

impl Order<'_> {
    /// The step that waits for the next message; none when all parts are done.
    pub fn step(&mut self) -> Option<u32> {
        while self.done.get(self.oldest).copied() == Some(true) {
            self.oldest += 1;
        }
        self.parts.parts.get(self.oldest).map(|part| part.step)
    }

    /// The moments that follow a message of `sender`: of its parts the first that is not done; of
    /// somebody who has none left, or is not known, of all parts the first.
    pub fn next(&mut self, sender: Option<TaskKindId>) -> Range<usize> {
        let place = sender.and_then(|sender| self.first_of(sender));
        let place = place.unwrap_or(self.oldest);
        self.done[place] = true;
        self.parts.parts[place].moments.clone()
    }

    fn first_of(&mut self, sender: TaskKindId) -> Option<usize> {
        let places = self.parts.of.get(&sender)?;
        let ahead = self.ahead.entry(sender).or_default();
        while self.done[*places.get(*ahead)?] {
            *ahead += 1;
        }
        places.get(*ahead).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of nothing but parts, one of each of `senders`.
    fn row(senders: &[u32]) -> Recorded {
        let part = |sender: &u32| {
            [
                Moment::Part {
                    step: 0,
                    sender: *sender,
                },
                Moment::Sleep(Default::default()),
            ]
        };
        Recorded {
            moments: senders.iter().flat_map(part).collect(),
            steps: Vec::new(),
            senders: (0..9).map(TaskKindId).collect(),
        }
    }

    #[test]
    fn each_sender_has_its_parts_in_their_order() {
        let parts = Parts::of(&row(&[3, 4, 3, 4]));
        let mut order = parts.order();
        let senders = [Some(4), Some(4), Some(3), Some(4)];
        let done = senders.map(|sender| {
            assert_eq!(order.step(), Some(0));
            order.next(sender.map(TaskKindId)).start / 2
        });
        // The last has none left: the first part that is not done.
        assert_eq!(done, [1, 3, 0, 2]);
        assert_eq!(order.step(), None);
    }

    #[test]
    fn a_message_of_nobody_begins_the_first_part() {
        let parts = Parts::of(&row(&[3, 4]));
        let mut order = parts.order();
        assert_eq!((order.step(), order.next(None)), (Some(0), 1..2));
        assert_eq!(
            (order.step(), order.next(Some(TaskKindId(3)))),
            (Some(0), 3..4)
        );
        assert_eq!(order.step(), None);
    }
}
