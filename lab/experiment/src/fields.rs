//! Reading tables: every key that is asked for is known, every other one is a problem.

use std::cell::RefCell;
use std::ops::Range;

use warmq_units::Duration;

use crate::document::{Entry, Node, NodeKind};
use crate::problem::{Sink, did_you_mean};
use warmq_units::setting::parse_duration;

/// A value, the keys that lead to it, and where to report what is wrong with it.
#[derive(Clone)]
pub(crate) struct Item<'a> {
    pub(crate) node: &'a Node,
    pub(crate) key: String,
    pub(crate) sink: &'a Sink<'a>,
}

/// A table that is being read. [`Fields::finish`] reports the keys that nobody asked for.
pub(crate) struct Fields<'a> {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) sink: &'a Sink<'a>,
    entries: &'a [Entry],
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Item<'a> {
    pub(crate) fn report(&self, what: impl Into<String>, mend: impl Into<String>) {
        self.sink.report(&self.key, &self.node.span, what, mend);
    }

    /// Reports that this is not `wanted`.
    pub(crate) fn wrong<T>(&self, wanted: &str) -> Option<T> {
        let what = format!("{} cannot stand here", self.node.describe());
        self.report(what, format!("write {wanted}"));
        None
    }

    pub(crate) fn text(&self) -> Option<String> {
        match &self.node.kind {
            NodeKind::Text(text) => Some(text.clone()),
            _ => self.wrong("a text in quotes"),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self.node.kind {
            NodeKind::Integer(count) => Some(count as f64),
            NodeKind::Number(number) => Some(number),
            _ => self.wrong("a number"),
        }
    }

    pub(crate) fn count(&self) -> Option<u64> {
        match self.node.kind {
            NodeKind::Integer(count) if count >= 0 => Some(count as u64),
            _ => self.wrong("a whole number from 0"),
        }
    }

    pub(crate) fn duration(&self) -> Option<Duration> {
        let read = match &self.node.kind {
            NodeKind::Text(text) => parse_duration(text),
            _ => None,
        };
        read.or_else(|| self.wrong("a time such as \"300ms\""))
    }

    pub(crate) fn list(&self) -> Option<Vec<Item<'a>>> {
        let NodeKind::List(nodes) = &self.node.kind else {
            return self.wrong("a list in [ ]");
        };
        Some(nodes.iter().map(|node| self.inner(node)).collect())
    }

    /// The items of a list, or the one value that stands in its place.
    pub(crate) fn one_or_more(&self) -> Vec<Item<'a>> {
        match &self.node.kind {
            NodeKind::List(nodes) => nodes.iter().map(|node| self.inner(node)).collect(),
            _ => vec![self.clone()],
        }
    }

    pub(crate) fn table(&self) -> Option<Fields<'a>> {
        let NodeKind::Table(entries) = &self.node.kind else {
            return self.wrong("a table");
        };
        Some(Fields {
            key: self.key.clone(),
            span: self.node.span.clone(),
            sink: self.sink,
            entries,
            asked: RefCell::default(),
        })
    }

    /// A value inside this one, of the same key.
    fn inner(&self, node: &'a Node) -> Item<'a> {
        Item {
            node,
            key: self.key.clone(),
            sink: self.sink,
        }
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn report(&self, what: impl Into<String>, mend: impl Into<String>) {
        self.sink.report(&self.key, &self.span, what, mend);
    }

    /// The value of `key`, which is known from now on.
    pub(crate) fn item(&self, key: &'static str) -> Option<Item<'a>> {
        self.asked.borrow_mut().push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(self.entry_item(entry))
    }

    /// The same, and its absence is a problem.
    pub(crate) fn required(&self, key: &'static str, mend: &str) -> Option<Item<'a>> {
        let item = self.item(key);
        if item.is_none() {
            self.report(format!("`{key}` is missing"), mend);
        }
        item
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        self.item(key)?.text()
    }

    pub(crate) fn number(&self, key: &'static str) -> Option<f64> {
        self.item(key)?.number()
    }

    pub(crate) fn flag(&self, key: &'static str) -> bool {
        let Some(item) = self.item(key) else {
            return false;
        };
        match item.node.kind {
            NodeKind::Bool(flag) => flag,
            _ => item.wrong("true or false").unwrap_or(false),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let item = self.item(key)?;
        let word = item.text()?;
        let chosen = words.iter().find(|(name, _)| *name == word);
        if chosen.is_none() {
            let known = words.iter().map(|(name, _)| *name);
            item.report(
                format!("\"{word}\" is not known here"),
                did_you_mean(&word, known),
            );
        }
        chosen.map(|(_, value)| *value)
    }

    /// An array of tables, or none.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<Fields<'a>> {
        let Some(item) = self.item(key) else {
            return Vec::new();
        };
        item.one_or_more().iter().filter_map(Item::table).collect()
    }

    /// All entries in the order of the text: for tables whose keys are not known beforehand.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a Entry, Item<'a>)> + '_ {
        self.entries
            .iter()
            .map(|entry| (entry, self.entry_item(entry)))
    }

    /// Makes keys known that reading did not come to, because it stopped at a problem before.
    pub(crate) fn know(&self, keys: &[&'static str]) {
        self.asked.borrow_mut().extend(keys);
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(&self) {
        let asked = self.asked.borrow();
        for entry in self
            .entries
            .iter()
            .filter(|entry| !asked.contains(&entry.key.as_str()))
        {
            let mend = did_you_mean(&entry.key, asked.iter().copied());
            self.sink
                .report(&self.path_of(entry), &entry.key_span, "unknown key", mend);
        }
    }

    fn entry_item(&self, entry: &'a Entry) -> Item<'a> {
        Item {
            node: &entry.node,
            key: self.path_of(entry),
            sink: self.sink,
        }
    }

    fn path_of(&self, entry: &Entry) -> String {
        match self.key.is_empty() {
            true => entry.key.clone(),
            false => format!("{}.{}", self.key, entry.key),
        }
    }
}
