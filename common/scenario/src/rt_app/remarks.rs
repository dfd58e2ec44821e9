//! What is played otherwise than a script says, or not at all: each once, with its first place.

use std::cell::RefCell;

use warmq_config::{Document, Item, Place, Problem};

/// Collects remarks.
#[derive(Default)]
pub(super) struct Remarks {
    list: RefCell<Vec<Remark>>,
}

struct Remark {
    key: String,
    place: Place,
    what: String,
    why: String,
}

impl Remarks {
    /// Remembers `what` about `item`, and why, unless it was said before.
    pub(super) fn say(&self, item: &Item<'_>, what: impl Into<String>, why: impl Into<String>) {
        let what = what.into();
        let mut list = self.list.borrow_mut();
        if list.iter().any(|remark| remark.what == what) {
            return;
        }
        list.push(Remark {
            key: item.key.clone(),
            place: item.node.place.clone(),
            what,
            why: why.into(),
        });
    }

    /// All of them, in the order of the text.
    pub(super) fn of(self, document: &Document) -> Vec<Problem> {
        let list = self.list.into_inner().into_iter();
        let mut list: Vec<Problem> = list
            .map(|remark| document.problem(&remark.key, &remark.place, remark.what, remark.why))
            .collect();
        list.sort_by_key(|problem| problem.span.start);
        list
    }
}
