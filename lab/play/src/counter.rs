//! Counts of work done, shared between programs and the code that reports them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A count that programs add to.
#[derive(Clone, Debug, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// Adds `amount`; a count stays at its most.
    pub fn add(&self, amount: u64) {
        self.0.set(self.0.get().saturating_add(amount));
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.get()
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

    /// What every counter has counted by now.
    pub fn totals(&self) -> BTreeMap<String, u64> {
        let counters = self.0.borrow();
        let totals = counters
            .iter()
            .map(|(name, counter)| (name.clone(), counter.get()));
        totals.collect()
    }
}
