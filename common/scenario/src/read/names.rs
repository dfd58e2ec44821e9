//! What names stand for in a scenario.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use warmq_config::{Fields, Item, Kind, NodeKind, Setting};
use warmq_trace::SpinlockNames;

use crate::expr::{Curve, Known};
use crate::object::{Class, ObjectId};
use crate::scenario::Span;
use crate::step::{CounterId, SpanId};
use crate::task::TaskKindId;

/// Everything that has a name. Spans and counters get theirs where they are first used.
#[derive(Default)]
pub(super) struct Names {
    pub(super) settings: BTreeMap<String, Known>,
    pub(super) curves: BTreeMap<String, Arc<Curve>>,
    /// For a setting that is a word: its number and the words allowed.
    pub(super) words: BTreeMap<String, (u32, Vec<String>)>,
    pub(super) objects: BTreeMap<String, (ObjectId, Class, usize)>,
    /// Those of the groups that are autogroups.
    autogroups: BTreeSet<ObjectId>,
    pub(super) tasks: BTreeMap<String, (TaskKindId, usize)>,
    /// By name: its number, and how many indexes it has.
    spans: RefCell<BTreeMap<String, (u32, usize)>>,
    counters: RefCell<BTreeMap<String, u32>>,
    uses: RefCell<BTreeSet<&'static str>>,
}

/// The tables of objects and tasks, before they are read.
pub(super) struct Headings<'a> {
    pub(super) objects: Vec<(Class, String, Item<'a>)>,
    pub(super) tasks: Vec<(String, Item<'a>)>,
}

impl Names {
    pub(super) fn new(settings: &[Setting], known: Vec<(String, Known)>) -> Names {
        let words = (0..)
            .zip(settings)
            .filter_map(|(number, setting)| match &setting.kind {
                Kind::Choice(words) => Some((setting.name.clone(), (number, words.clone()))),
                _ => None,
            });
        Names {
            settings: known.into_iter().collect(),
            words: words.collect(),
            ..Names::default()
        }
    }

    /// Gives numbers to objects and tasks.
    pub(super) fn collect<'a>(&mut self, fields: &Fields<'a>) -> Headings<'a> {
        let mut headings = Headings {
            objects: Vec::new(),
            tasks: Vec::new(),
        };
        for class in Class::ALL {
            for (name, item) in tables(fields, class.name()) {
                let id = ObjectId(headings.objects.len() as u32);
                if self.objects.contains_key(&name) {
                    let what = format!("another object is called `{name}`");
                    item.report(what, "give each object a name of its own");
                    continue;
                }
                self.objects.insert(name.clone(), (id, class, arity(&item)));
                match class == Class::Group && is_set(&item, "autogroup") {
                    true => {
                        self.autogroups.insert(id);
                        self.uses("autogroup");
                    }
                    false => self.uses(class.name()),
                }
                headings.objects.push((class, name, item));
            }
        }
        for (name, item) in tables(fields, "task") {
            let id = TaskKindId(headings.tasks.len() as u32);
            self.tasks.insert(name.clone(), (id, arity(&item)));
            headings.tasks.push((name, item));
        }
        headings
    }

    /// Whether the group `id` is an autogroup, not a cgroup.
    pub(super) fn is_autogroup(&self, id: ObjectId) -> bool {
        self.autogroups.contains(&id)
    }

    /// Remembers that the scenario uses `feature`.
    pub(super) fn uses(&self, feature: &'static str) {
        self.uses.borrow_mut().insert(feature);
    }

    pub(super) fn all_uses(self) -> Vec<&'static str> {
        self.uses.into_inner().into_iter().collect()
    }

    /// The counter called `name`, new or known.
    pub(super) fn counter(&self, name: &str) -> CounterId {
        let mut counters = self.counters.borrow_mut();
        let next = counters.len() as u32;
        CounterId(*counters.entry(name.to_owned()).or_insert(next))
    }

    /// Whether a spin lock counts what is called `name`.
    pub(super) fn is_of_spinlock(&self, name: &str) -> bool {
        let mut objects = self.objects.iter();
        objects.any(|(lock, (_, class, _))| {
            *class == Class::Spinlock && SpinlockNames::of(lock).all().contains(&name)
        })
    }

    /// The span called `name`, new or known; an error is the number of indexes it had before.
    pub(super) fn span(&self, name: &str, indexes: usize) -> Result<SpanId, usize> {
        let mut spans = self.spans.borrow_mut();
        let next = (spans.len() as u32, indexes);
        match *spans.entry(name.to_owned()).or_insert(next) {
            (number, known) if known == indexes => Ok(SpanId(number)),
            (_, known) => Err(known),
        }
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let spans = self.spans.borrow();
        let named = spans.iter().map(|(name, (number, indexes))| {
            let (name, indexes) = (name.clone(), *indexes);
            (*number, Span { name, indexes })
        });
        in_order(named)
    }

    pub(super) fn counters(&self) -> Vec<String> {
        let counters = self.counters.borrow();
        in_order(
            counters
                .iter()
                .map(|(name, number)| (*number, name.clone())),
        )
    }
}

/// What has numbers, by them.
fn in_order<T>(numbered: impl Iterator<Item = (u32, T)>) -> Vec<T> {
    let by_number: BTreeMap<u32, T> = numbered.collect();
    by_number.into_values().collect()
}

/// The tables below `key` whose names can be referred to.
fn tables<'a>(fields: &Fields<'a>, key: &'static str) -> Vec<(String, Item<'a>)> {
    let Some(table) = fields.table(key) else {
        return Vec::new();
    };
    let named = |(entry, item): (&warmq_config::Entry, Item<'a>)| {
        if is_name(&entry.key) {
            return Some((entry.key.clone(), item));
        }
        let help = "write letters, digits, - and _, beginning with a letter";
        item.report("this cannot be a name", help);
        None
    };
    table.entries().filter_map(named).collect()
}

/// True for what a reference can name.
pub(super) fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()) && name.bytes().all(inner)
}

/// Whether `key` of a table is true, before it is read.
fn is_set(item: &Item<'_>, key: &str) -> bool {
    let NodeKind::Table(entries) = &item.node.kind else {
        return false;
    };
    let mut entries = entries.iter();
    entries.any(|entry| entry.key == key && matches!(entry.node.kind, NodeKind::Bool(true)))
}

/// How many indexes a table has, before it is read.
fn arity(item: &Item<'_>) -> usize {
    let NodeKind::Table(entries) = &item.node.kind else {
        return 0;
    };
    let of = |key: &str| entries.iter().find(|entry| entry.key == key);
    match (of("for").map(|entry| &entry.node.kind), of("count")) {
        (Some(NodeKind::Table(indexes)), _) => indexes.len(),
        (None, Some(_)) => 1,
        _ => 0,
    }
}
