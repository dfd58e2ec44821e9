//! What a setting may be set to, and a swept key may take.

use std::fmt;

use crate::{Bytes, Duration};

/// One value of a setting. Ordered within a kind as a person would order it; kinds never mix
/// within one setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A count.
    Integer(i64),
    /// A size.
    Bytes(Bytes),
    /// A span of simulated time.
    Duration(Duration),
    /// A name: of a scheduler, a machine, a choice.
    Text(String),
}

impl Value {
    /// The value as a number on an axis: counts, bytes, microseconds. `None` for names and bools.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(count) => Some(*count as f64),
            Value::Bytes(size) => Some(size.0 as f64),
            Value::Duration(span) => Some(span.0 as f64 / 1e6),
            Value::Bool(_) | Value::Text(_) => None,
        }
    }
}

impl From<i64> for Value {
    fn from(count: i64) -> Value {
        Value::Integer(count)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Bool(flag)
    }
}

impl From<&str> for Value {
    fn from(name: &str) -> Value {
        Value::Text(name.to_owned())
    }
}

impl From<Bytes> for Value {
    fn from(size: Bytes) -> Value {
        Value::Bytes(size)
    }
}

impl From<Duration> for Value {
    fn from(span: Duration) -> Value {
        Value::Duration(span)
    }
}

impl fmt::Display for Value {
    /// As it is written in an experiment's file: `512KB`, `300ms`, `linux24`, `32`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(flag) => flag.fmt(formatter),
            Value::Integer(count) => count.fmt(formatter),
            Value::Bytes(size) => formatter.write_str(&size.to_string().replace(' ', "")),
            Value::Duration(span) => write_duration(formatter, *span),
            Value::Text(name) => name.fmt(formatter),
        }
    }
}

const UNITS: [(&str, u64); 5] = [
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

/// The largest unit that leaves a whole number, so that what is printed is read back unchanged.
fn write_duration(formatter: &mut fmt::Formatter<'_>, span: Duration) -> fmt::Result {
    let (unit, ps) = UNITS
        .into_iter()
        .find(|(_, ps)| span.0 > 0 && span.0.is_multiple_of(*ps))
        .unwrap_or(("s", 1));
    write!(formatter, "{}{unit}", span.0 / ps)
}

/// Reads a span such as `300ms`, `1s`, `10 us`; whole numbers only.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, ps) = UNITS
        .into_iter()
        .find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(ps).map(Duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_span_is_read_back() {
        for ps in [
            0,
            1,
            999,
            1_000,
            1_500_000,
            200_000_000_000,
            3_000_000_000_000,
        ] {
            let printed = Value::Duration(Duration(ps)).to_string();
            assert_eq!(parse_duration(&printed), Some(Duration(ps)), "{printed}");
        }
        assert_eq!(Value::Duration(Duration::from_ms(500)).to_string(), "500ms");
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "",
            "5",
            "ms",
            "-5ms",
            "1.5s",
            "5 parsecs",
            "99999999999999s",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
