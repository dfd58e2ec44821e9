//! A value as a reader asks for it: by type, range and unit.

use std::ops::RangeInclusive;

use warmq_units::{Bytes, Duration, printable, thousandths};

use crate::document::{Node, NodeKind, typed_at};
use crate::fields::Fields;
use crate::problem::Sink;
use crate::{Kind, Value};

/// The longest time that is read, 12 days: sums and products of such times fit into 64 bits.
const MOST_TIME: Duration = Duration::from_s(1_000_000);

/// A value, the keys that lead to it, and where to report what is wrong with it.
///
/// A method that answers with nothing has reported why.
#[derive(Clone)]
pub struct Item<'a> {
    /// The value.
    pub node: &'a Node,
    /// The path of its key: `sweep.colors`.
    pub key: String,
    pub(crate) sink: &'a Sink<'a>,
}

impl<'a> Item<'a> {
    /// Reports that something is wrong here, and how to fix it.
    pub fn report(&self, what: impl Into<String>, help: impl Into<String>) {
        self.sink.report(&self.key, &self.node.place, what, help);
    }

    /// Reports that this is not `wanted`.
    pub fn wrong<T>(&self, wanted: &str) -> Option<T> {
        let what = format!("{} is not allowed here", self.node.describe());
        self.report(what, format!("write {wanted}"));
        None
    }

    /// A text.
    pub fn text(&self) -> Option<String> {
        match &self.node.kind {
            NodeKind::Text(text) => Some(text.clone()),
            _ => self.wrong("a text in quotes"),
        }
    }

    /// A text that people are shown as part of a line. What cannot be printed is escaped: the
    /// document may be anybody's.
    pub fn line(&self) -> Option<String> {
        Some(printable(&self.text()?).to_string())
    }

    /// Whether this is the text `wanted`; reports nothing.
    pub fn is_text(&self, wanted: &str) -> bool {
        matches!(&self.node.kind, NodeKind::Text(text) if text == wanted)
    }

    /// A number, for what is compared and drawn.
    pub fn number(&self) -> Option<f64> {
        let number = match &self.node.kind {
            NodeKind::Integer(count) => Some(*count as f64),
            NodeKind::Decimal(digits) => digits.parse().ok(),
            _ => None,
        };
        number.or_else(|| self.wrong("a number"))
    }

    /// A whole number within `range`.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let integer = match self.node.kind {
            NodeKind::Integer(count) => u64::try_from(count).ok(),
            _ => None,
        };
        let integer = integer.filter(|integer| range.contains(integer));
        integer.or_else(|| match (range.start(), range.end()) {
            (least, &u64::MAX) => self.wrong(&format!("a whole number from {least}")),
            (least, most) => self.wrong(&format!("a whole number from {least} to {most}")),
        })
    }

    /// A whole number from 0.
    pub fn count(&self) -> Option<u64> {
        self.integer(0..=u64::MAX)
    }

    /// A decimal number in thousandths, read exactly: 37.5 gives 37,500.
    pub fn thousandths(&self) -> Option<u64> {
        let read = match &self.node.kind {
            NodeKind::Integer(count) => u64::try_from(*count)
                .ok()
                .and_then(|count| count.checked_mul(1_000)),
            NodeKind::Decimal(digits) => thousandths(digits),
            _ => None,
        };
        read.or_else(|| self.wrong("a number from 0 with up to three decimal places"))
    }

    /// True or false.
    pub fn flag(&self) -> Option<bool> {
        match self.node.kind {
            NodeKind::Bool(flag) => Some(flag),
            _ => self.wrong("true or false"),
        }
    }

    /// A time with its unit, up to [`MOST_TIME`].
    pub fn duration(&self) -> Option<Duration> {
        let read = match &self.node.kind {
            NodeKind::Text(text) => text.parse().ok(),
            _ => None,
        };
        match read {
            Some(time) if time > MOST_TIME => self.wrong("a time of at most \"1000000s\""),
            None => self.wrong("a time such as \"300ms\""),
            read => read,
        }
    }

    /// A size: a whole number of bytes, or a text with a unit.
    pub fn bytes(&self) -> Option<Bytes> {
        let read = match &self.node.kind {
            NodeKind::Integer(count) => u64::try_from(*count).ok().map(Bytes),
            NodeKind::Text(text) => text.parse().ok(),
            _ => None,
        };
        read.or_else(|| self.wrong("a size such as \"512KB\""))
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let word = self.text()?;
        let chosen = words.iter().find(|(name, _)| *name == word);
        if chosen.is_none() {
            self.unknown(
                format!("\"{word}\" is not known here"),
                &word,
                words.iter().map(|(name, _)| *name),
            );
        }
        chosen.map(|(_, value)| *value)
    }

    /// A value of `kind` that is written as `value` within this text, as an option would be.
    pub fn value_within(&self, value: &str, kind: &Kind) -> Option<Value> {
        let node = typed_at(value, &self.node.place);
        let item = Item {
            node: &node,
            key: self.key.clone(),
            sink: self.sink,
        };
        item.value(kind)
    }

    /// A value of `kind`, within its bounds. A size needs its unit: a bare number is more often a
    /// slip than a number of bytes.
    pub fn value(&self, kind: &Kind) -> Option<Value> {
        // A kernel's release is a word, too, and looks like a number.
        let word = match &self.node.kind {
            NodeKind::Text(text) | NodeKind::Decimal(text) => Some(text.clone()),
            NodeKind::Integer(count) => Some(count.to_string()),
            _ => None,
        };
        let read = match (kind, &self.node.kind) {
            (Kind::Bool, NodeKind::Bool(flag)) => Some(Value::Bool(*flag)),
            (Kind::Integer { .. } | Kind::PowerOfTwo { .. }, NodeKind::Integer(count)) => {
                Some(Value::Integer(*count))
            }
            (Kind::Bytes { .. }, NodeKind::Text(text)) => text.parse().ok().map(Value::Bytes),
            (Kind::Duration { .. }, NodeKind::Text(text)) => text.parse().ok().map(Value::Duration),
            (Kind::Choice(_) | Kind::Text, _) => word.map(Value::Text),
            _ => None,
        };
        let admitted = read.filter(|value| kind.admits(value));
        admitted.or_else(|| self.wrong(&kind.allowed()))
    }

    /// The values of a list.
    pub fn list(&self) -> Option<Vec<Item<'a>>> {
        match self.node.kind {
            NodeKind::List(_) => Some(self.one_or_more()),
            _ => self.wrong("a list in [ ]"),
        }
    }

    /// The values of a list, or the one value that stands in its place.
    pub fn one_or_more(&self) -> Vec<Item<'a>> {
        let NodeKind::List(nodes) = &self.node.kind else {
            return vec![self.clone()];
        };
        let inner = |node| Item {
            node,
            ..self.clone()
        };
        nodes.iter().map(inner).collect()
    }

    /// A table.
    pub fn table(&self) -> Option<Fields<'a>> {
        match &self.node.kind {
            NodeKind::Table(entries) => {
                Some(Fields::new(&self.key, &self.node.place, entries, self.sink))
            }
            _ => self.wrong("a table"),
        }
    }

    /// Reports `what` of `word`, and suggests the nearest of the words that are `known`.
    pub fn unknown<'k>(
        &self,
        what: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        self.report(what, crate::did_you_mean(word, known));
    }
}
