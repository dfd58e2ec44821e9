//! What the events of a script refer to, as tables of objects. rt-app makes a resource where it is
//! first named, and a mutex may be called as a condition is; here each object has its own name.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Entry, Place};

use super::tree::{entry, table};
use crate::object::Class;

/// The objects so far.
#[derive(Default)]
pub(super) struct Objects {
    /// By class and the script's name: ours.
    named: BTreeMap<(Class, String), String>,
    tables: BTreeMap<Class, Vec<Entry>>,
    taken: BTreeSet<String>,
}

impl Objects {
    /// Our name of what the script calls `name`, which is like `wanted`; a new object stands at
    /// `place` and has the keys that `keys` makes.
    pub(super) fn get(
        &mut self,
        class: Class,
        name: &str,
        wanted: &str,
        place: &Place,
        keys: impl FnOnce() -> Vec<Entry>,
    ) -> String {
        let script = (class, name.to_owned());
        if let Some(known) = self.named.get(&script) {
            return known.clone();
        }
        let ours = free_name(wanted, class.name(), &mut self.taken);
        let of_class = self.tables.entry(class).or_default();
        of_class.push(entry(&ours, table(place, keys())));
        self.named.insert(script, ours.clone());
        ours
    }

    /// One table for each class that is there.
    pub(super) fn entries(self, place: &Place) -> Vec<Entry> {
        let tables = self.tables.into_iter();
        let classes = tables.map(|(class, of)| entry(class.name(), table(place, of)));
        classes.collect()
    }
}

/// A name like `wanted` that is a name of ours and not yet in `taken`.
pub(super) fn free_name(wanted: &str, what: &str, taken: &mut BTreeSet<String>) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let letters = wanted.chars();
    let mut name: String = letters
        .map(|letter| if allowed(letter) { letter } else { '-' })
        .collect();
    if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        name = format!("{what}-{}", name.trim_start_matches('-'));
    }
    let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}
