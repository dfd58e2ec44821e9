//! Rows that are done part by part, as messages come.
//!
//! A task that several others wake does for each what its message asks for, whoever comes first. A
//! semaphore or a socket does not say who raised it or sent; the tasks of a recording note that here.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use warmq_scenario::{Action, Moment, ObjectId, Recorded, Reference, Scenario, Step, TaskKindId};

/// One object: its table, and its place there.
type Inbox = (ObjectId, usize);

/// Who sent what waits in each inbox, in the order of sending.
pub(super) struct Inboxes(RefCell<BTreeMap<ObjectId, BTreeMap<usize, VecDeque<TaskKindId>>>>);

impl Inboxes {
    /// Those of the rows of `scenario`, all empty.
    pub fn of(scenario: &Scenario) -> Inboxes {
        let mut tables = BTreeMap::new();
        let mut visit = |step: &Step| {
            if let Action::Recorded(row) = &step.action {
                let inboxes = row.moments.iter().filter_map(|moment| inbox(row, moment));
                tables.extend(inboxes.map(|inbox| (inbox.object, BTreeMap::new())));
            }
        };
        let steps = scenario.tasks().iter().flat_map(|task| task.steps());
        steps.for_each(|step| step.walk(&mut visit));
        Inboxes(RefCell::new(tables))
    }

    /// `sender` is about to send to `to`.
    pub fn sent(&self, (table, number): Inbox, sender: TaskKindId) {
        if let Some(inboxes) = self.0.borrow_mut().get_mut(&table) {
            inboxes.entry(number).or_default().push_back(sender);
        }
    }

    /// Who sent the oldest message of an inbox, which is taken out; none if it came from a source, or
    /// from a step outside of rows.
    pub fn taken(&self, (table, number): Inbox) -> Option<TaskKindId> {
        let mut tables = self.0.borrow_mut();
        tables.get_mut(&table)?.get_mut(&number)?.pop_front()
    }
}

fn inbox<'r>(row: &'r Recorded, moment: &Moment) -> Option<&'r Reference> {
    match moment {
        Moment::Part { step, .. } => inbox_of(&row.steps[*step as usize].action),
        _ => None,
    }
}

/// The object from which `action` takes something.
pub(super) fn inbox_of(action: &Action) -> Option<&Reference> {
    match action {
        Action::Lower(inbox) | Action::Receive { from: inbox, .. } => Some(inbox),
        _ => None,
    }
}

/// A part: the step that waits for its message, and the moments behind it.
#[derive(Clone, Debug)]
struct Part {
    step: u32,
    moments: Range<usize>,
}

/// The parts of a row, in the order in which they were recorded.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    before: Range<usize>,
    parts: Vec<Part>,
    /// The parts of each sender, by their places.
    of: BTreeMap<TaskKindId, Vec<usize>>,
}

impl Parts {
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
pub(super) struct Order<'p> {
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
