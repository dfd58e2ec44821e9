//! What can be set on a machine, a scheduler or a workload, described so that a reader can check
//! it and a person can be told.

use warmq_units::{Bytes, Duration};

use crate::value::Value;

/// One thing that can be set, with everything a person needs in order to set it.
///
/// Invariant: `default` is a value that `kind` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name by which an experiment sets or sweeps it: `colors`.
    pub name: String,
    /// What values it takes.
    pub kind: Kind,
    /// The unit of a count: `tasks`; empty where there is none or the kind says it.
    pub unit: String,
    /// What it is when nobody sets it.
    pub default: Value,
    /// What it does, in a sentence.
    pub what: String,
    /// Where the default comes from: a paper, a kernel's source, a calibration.
    pub source: String,
}

/// What values a setting takes. All bounds are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// The least allowed.
        min: i64,
        /// The greatest allowed.
        max: i64,
    },
    /// A size: `512KB`.
    Bytes {
        /// The least allowed.
        min: Bytes,
        /// The greatest allowed.
        max: Bytes,
    },
    /// A span of time: `300ms`.
    Duration {
        /// The least allowed.
        min: Duration,
        /// The greatest allowed.
        max: Duration,
    },
    /// One of a few names.
    Choice(Vec<String>),
}

impl Kind {
    /// A sentence's middle that says what is allowed: `a whole number from 1 to 32`.
    pub fn allowed(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Bytes { min, max } => {
                let (min, max) = (Value::Bytes(*min), Value::Bytes(*max));
                format!("a size from \"{min}\" to \"{max}\"")
            }
            Kind::Duration { min, max } => {
                let (min, max) = (Value::Duration(*min), Value::Duration(*max));
                format!("a time from \"{min}\" to \"{max}\"")
            }
            Kind::Choice(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
        }
    }

    /// Whether `value` is of this kind and within its bounds.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Bool, Value::Bool(_)) => true,
            (Kind::Integer { min, max }, Value::Integer(count)) => (min..=max).contains(&count),
            (Kind::Bytes { min, max }, Value::Bytes(size)) => (min..=max).contains(&size),
            (Kind::Duration { min, max }, Value::Duration(span)) => (min..=max).contains(&span),
            (Kind::Choice(names), Value::Text(name)) => names.contains(name),
            _ => false,
        }
    }
}
