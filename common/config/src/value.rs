//! What a setting may be set to, and a swept key may take.

use std::fmt;

use warmq_units::{Bytes, Duration};

/// One value of a setting. Ordered within a kind as a person would order it; kinds never mix
/// within one setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::From)]
pub enum Value {
    /// Yes or no.
    #[from]
    Bool(bool),
    /// A count.
    #[from]
    Integer(i64),
    /// A size.
    #[from]
    Bytes(Bytes),
    /// A span of simulated time.
    #[from]
    Duration(Duration),
    /// A name: of a scheduler, a machine, a choice.
    #[from(&str)]
    Text(String),
}

/// `text` as TOML writes it.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Value {
    /// The value as a number on an axis: counts, bytes, microseconds. `None` for names and bools.
    #[expect(clippy::float_arithmetic, reason = "for axes of reports only")]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(count) => Some(*count as f64),
            Value::Bytes(size) => Some(size.0 as f64),
            Value::Duration(span) => Some(span.0 as f64 / 1e6),
            Value::Bool(_) | Value::Text(_) => None,
        }
    }
}

impl Value {
    /// True if `text` gives this value when it is read as a value of its type: `1024KB` is written
    /// for 1 MB.
    pub fn is_written(&self, text: &str) -> bool {
        match self {
            Value::Bool(flag) => text.parse() == Ok(*flag),
            Value::Integer(count) => text.parse() == Ok(*count),
            Value::Bytes(size) => text.parse() == Ok(*size),
            Value::Duration(span) => text.parse() == Ok(*span),
            Value::Text(name) => name == text,
        }
    }
}

impl fmt::Display for Value {
    /// As it is written in an experiment's file: `512KB`, `300ms`, `linux24`, `32`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(flag) => flag.fmt(formatter),
            Value::Integer(count) => count.fmt(formatter),
            Value::Bytes(size) => formatter.write_str(&size.to_string().replace(' ', "")),
            Value::Duration(span) => formatter.write_str(&span.exact()),
            Value::Text(name) => name.fmt(formatter),
        }
    }
}
