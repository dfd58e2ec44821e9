//! Who sent the messages that begin parts of rows.
//!
//! A task that several others wake does for each what its message asks for, whoever comes first. A
//! semaphore or a socket does not say who raised it or sent; the tasks of a recording note that
//! here.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use warmq_scenario::program::{Do, Op, Program, Which};
use warmq_scenario::{ObjectId, TaskKindId};

/// One object: its table, and its place among all of its class.
type Inbox = (ObjectId, usize);

/// Who sent what waits in each inbox, in the order of sending.
pub(super) struct Inboxes(RefCell<BTreeMap<ObjectId, BTreeMap<usize, VecDeque<TaskKindId>>>>);

impl Inboxes {
    /// Those of the rows of `programs`, all empty.
    pub fn of(programs: &[Program]) -> Inboxes {
        let mut tables = BTreeMap::new();
        for op in programs.iter().flat_map(Program::ops) {
            if let Op::Row(row) = op {
                let steps = row
                    .parts
                    .waits()
                    .filter_map(|step| row.steps[step].as_ref());
                tables.extend(
                    steps
                        .filter_map(inbox_of)
                        .map(|inbox| (inbox.table(), BTreeMap::new())),
                );
            }
        }
        Inboxes(RefCell::new(tables))
    }

    /// `sender` is about to send to `to`.
    pub fn sent(&self, (table, number): Inbox, sender: TaskKindId) {
        if let Some(inboxes) = self.0.borrow_mut().get_mut(&table) {
            inboxes.entry(number).or_default().push_back(sender);
        }
    }

    /// Who sent the oldest message of an inbox, which is taken out; none if it came from a source,
    /// or from a step outside of rows.
    pub fn taken(&self, (table, number): Inbox) -> Option<TaskKindId> {
        let mut tables = self.0.borrow_mut();
        tables.get_mut(&table)?.get_mut(&number)?.pop_front()
    }
}

/// The object from which `step` takes something.
pub(super) fn inbox_of(step: &Do) -> Option<&Which> {
    match step {
        Do::Lower(inbox) | Do::Receive(inbox, ..) => Some(inbox),
        _ => None,
    }
}
