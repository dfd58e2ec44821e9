//! A TOML text as an owned tree with spans, its tables in the order of the text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::problem::Sink;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) kind: NodeKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// What no experiment ever uses: a date, an integer beyond 64 bits.
    Other(&'static str),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// What a person calls such a value.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Bool(flag) => flag.to_string(),
            NodeKind::Integer(count) => count.to_string(),
            NodeKind::Number(number) => number.to_string(),
            NodeKind::Text(text) => format!("\"{}\"", text.escape_debug()),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Table(_) => "a table".to_owned(),
            NodeKind::Other(what) => (*what).to_owned(),
        }
    }
}

/// Reads `text` as TOML; what is not TOML is reported.
pub(crate) fn parse(text: &str, sink: &Sink) -> Option<Node> {
    match DeTable::parse(text) {
        Ok(table) => {
            let span = 0..0;
            Some(Node {
                span,
                kind: NodeKind::Table(entries(table.into_inner())),
            })
        }
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            sink.report(
                "",
                &span,
                format!("this is not TOML: {}", error.message()),
                "",
            );
            None
        }
    }
}

fn entries(table: DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_span: key.span(),
            key: key.into_inner().into_owned(),
            node: node(value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let kind = match value.into_inner() {
        DeValue::Boolean(flag) => NodeKind::Bool(flag),
        DeValue::Integer(digits) => integer(&digits),
        DeValue::Float(digits) => number(digits.as_str()),
        DeValue::String(text) => NodeKind::Text(text.into_owned()),
        DeValue::Array(items) => NodeKind::List(items.into_iter().map(node).collect()),
        DeValue::Table(table) => NodeKind::Table(entries(table)),
        DeValue::Datetime(_) => NodeKind::Other("a date"),
    };
    Node { span, kind }
}

fn integer(digits: &DeInteger<'_>) -> NodeKind {
    match i64::from_str_radix(digits.as_str(), digits.radix()) {
        Ok(count) => NodeKind::Integer(count),
        Err(_) => NodeKind::Other("a number beyond 64 bits"),
    }
}

/// Infinities and NaN are no quantities of an experiment.
fn number(digits: &str) -> NodeKind {
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => NodeKind::Number(number),
        _ => NodeKind::Other("not a finite number"),
    }
}
