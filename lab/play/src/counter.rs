//! Counts of work done, shared between programs and the code that reports them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A count that programs add to.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    /// Since the start.
    all: Rc<Cell<u64>>,
    /// What had been counted at the last reset.
    before: Rc<Cell<u64>>,
}

impl Counter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.all.set(self.all.get() + amount);
    }

    /// The count since the last reset.
    pub fn get(&self) -> u64 {
        self.all.get() - self.before.get()
    }

    /// The count since the start, whatever was reset meanwhile: what a record of it says
    /// ([`Operator::count`](warmq_kernel::Operator::count)).
    pub fn since_the_start(&self) -> u64 {
        self.all.get()
    }
}

/// The counters of one run, by name.
#[derive(Clone, Debug, Default)]
pub struct Counters(Rc<RefCell<BTreeMap<String, Counter>>>);

impl Counters {
    /// The counter called `name`, from 0 when it is new.
    pub fn counter(&self, name: &str) -> Counter {
        self.0
            .borrow_mut()
            .entry(name.to_owned())
            .or_default()
            .clone()
    }

    /// What `name` counted; 0 when there is no such counter.
    pub fn get(&self, name: &str) -> u64 {
        self.0.borrow().get(name).map_or(0, Counter::get)
    }

    /// What `name` counted, if there is such a counter.
    pub fn find(&self, name: &str) -> Option<u64> {
        self.0.borrow().get(name).map(Counter::get)
    }

    /// Sets all counts to 0, after a warm-up.
    pub fn reset(&self) {
        for counter in self.0.borrow().values() {
            counter.before.set(counter.all.get());
        }
    }
}
