//! `key=value`, as `--set` and `--point` take it.

use std::fmt;
use std::str::FromStr;

/// A key and its value, as they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What is set.
    pub key: String,
    /// To what.
    pub value: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.value)
    }
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        match text
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
        {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(Pair {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err("write key=value, as in colors=32".to_owned()),
        }
    }
}
