//! A table as a reader asks for it: every key that is asked for is known, every other is a problem.

use std::cell::RefCell;

use crate::did_you_mean;
use crate::document::{Entry, NodeKind, Place};
use crate::item::Item;
use crate::problem::Sink;

/// A table that is being read. [`Fields::finish`] reports the keys that nobody asked for.
///
/// A method that answers with nothing for a key that is there has reported why.
pub struct Fields<'a> {
    key: String,
    place: &'a Place,
    entries: &'a [Entry],
    sink: &'a Sink<'a>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        key: &str,
        place: &'a Place,
        entries: &'a [Entry],
        sink: &'a Sink<'a>,
    ) -> Fields<'a> {
        Fields {
            key: key.to_owned(),
            place,
            entries,
            sink,
            asked: RefCell::default(),
        }
    }

    /// Reports that something is wrong with the table, and how to fix it.
    pub fn report(&self, what: impl Into<String>, help: impl Into<String>) {
        self.sink.report(&self.key, self.place, what, help);
    }

    /// How many problems the document has so far.
    pub fn problems(&self) -> usize {
        self.sink.count()
    }

    /// The value of `key`, which is known from now on.
    pub fn item(&self, key: &'static str) -> Option<Item<'a>> {
        self.asked.borrow_mut().push(key);
        self.find(key)
    }

    /// The value of `key`, whatever it is called, without making the key known.
    pub fn find(&self, key: &str) -> Option<Item<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(self.entry_item(entry))
    }

    /// Whether somebody has asked for `key`.
    pub fn is_asked(&self, key: &str) -> bool {
        self.asked.borrow().contains(&key)
    }

    /// The value of `key`, whose absence is a problem that `help` solves.
    pub fn required(&self, key: &'static str, help: &str) -> Option<Item<'a>> {
        let item = self.item(key);
        if item.is_none() {
            self.report(format!("`{key}` is missing"), help);
        }
        item
    }

    /// What `read` makes of `key`, or `usual` where it is not there; `None` where it is wrong,
    /// which `read` reports.
    pub fn or<T>(
        &self,
        key: &'static str,
        usual: T,
        read: impl FnOnce(&Item<'a>) -> Option<T>,
    ) -> Option<T> {
        self.item(key).map_or(Some(usual), |item| read(&item))
    }

    /// As [`Fields::or`], of a key without a usual value.
    pub fn if_given<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Item<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        self.or(key, None, |item| read(item).map(Some))
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        self.item(key)?.text()
    }

    /// A text that people are shown as part of a line, such as a title: see [`Item::line`].
    pub fn line(&self, key: &'static str) -> Option<String> {
        self.item(key)?.line()
    }

    /// A number, for what is compared and drawn.
    pub fn number(&self, key: &'static str) -> Option<f64> {
        self.item(key)?.number()
    }

    /// True or false; false where the key is missing.
    pub fn flag(&self, key: &'static str) -> bool {
        let flag = self.item(key).and_then(|item| item.flag());
        flag.unwrap_or(false)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.item(key)?.choice(words)
    }

    /// A table in this table, if it is there.
    pub fn table(&self, key: &'static str) -> Option<Fields<'a>> {
        self.item(key)?.table()
    }

    /// An array of tables, or a single one, or none.
    pub fn tables(&self, key: &'static str) -> Vec<Fields<'a>> {
        self.asked.borrow_mut().push(key);
        let items = self.members(key);
        items.iter().filter_map(Item::table).collect()
    }

    /// The members of the list `key`, each with its index in its path, or the one value that
    /// stands in its place; the key does not become known.
    pub fn members(&self, key: &str) -> Vec<Item<'a>> {
        let Some(item) = self.find(key) else {
            return Vec::new();
        };
        let mut members = item.one_or_more();
        if let NodeKind::List(_) = item.node.kind {
            for (index, member) in members.iter_mut().enumerate() {
                member.key = format!("{}[{index}]", item.key);
            }
        }
        members
    }

    /// All entries in the order of the text, for tables whose keys are not known beforehand.
    pub fn entries(&self) -> impl Iterator<Item = (&'a Entry, Item<'a>)> + '_ {
        self.entries
            .iter()
            .map(|entry| (entry, self.entry_item(entry)))
    }

    /// Makes keys known that were not asked for, because reading ended at a problem before.
    pub fn know(&self, keys: &[&'static str]) {
        self.asked.borrow_mut().extend(keys);
    }

    /// Reports every key that nobody asked for.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        let unknown = |entry: &&Entry| !asked.contains(&entry.key.as_str());
        for entry in self.entries.iter().filter(unknown) {
            let help = did_you_mean(&entry.key, asked.iter().copied());
            self.sink
                .report(&self.path_of(entry), &entry.place, "unknown key", help);
        }
    }

    fn entry_item(&self, entry: &'a Entry) -> Item<'a> {
        Item {
            node: &entry.node,
            key: self.path_of(entry),
            sink: self.sink,
        }
    }

    /// The full path of a key: `cache[1].ways`, `costs."linux-2.4"`.
    fn path_of(&self, entry: &Entry) -> String {
        let bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let quote = if entry.key.chars().all(bare) {
            ""
        } else {
            "\""
        };
        let dot = if self.key.is_empty() { "" } else { "." };
        format!("{}{dot}{quote}{}{quote}", self.key, entry.key)
    }
}
