//! JSON as it is written to a file: members in the order in which they were put there.

use std::fmt::{self, Write};

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Text(String),
    Flag(bool),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<bool> for Json {
    fn from(flag: bool) -> Json {
        Json::Flag(flag)
    }
}

impl From<Vec<Json>> for Json {
    fn from(list: Vec<Json>) -> Json {
        Json::List(list)
    }
}

impl<const N: usize> From<[(&str, Json); N]> for Json {
    fn from(members: [(&str, Json); N]) -> Json {
        let members = members.into_iter();
        Json::Object(
            members
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    }
}

/// A list of texts.
pub(super) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Json {
    Json::List(texts.into_iter().map(Json::from).collect())
}

impl Json {
    /// The same object with one more member.
    pub(super) fn with(mut self, key: &str, value: impl Into<Json>) -> Json {
        if let Json::Object(members) = &mut self {
            members.push((key.to_owned(), value.into()));
        }
        self
    }

    fn write(&self, to: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Json::Text(text) => quoted(text, to),
            Json::Flag(flag) => write!(to, "{flag}"),
            Json::List(values) if values.iter().all(Json::is_short) => {
                to.write_char('[')?;
                for (number, value) in values.iter().enumerate() {
                    to.write_str(if number > 0 { ", " } else { "" })?;
                    value.write(to, depth)?;
                }
                to.write_char(']')
            }
            Json::List(values) => {
                let values = values.iter().map(|value| (None, value));
                block(to, ('[', ']'), depth, values)
            }
            Json::Object(members) if self.is_short() => {
                to.write_str("{ ")?;
                for (key, value) in members {
                    quoted(key, to)?;
                    to.write_str(": ")?;
                    value.write(to, depth)?;
                }
                to.write_str(" }")
            }
            Json::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(key), value));
                block(to, ('{', '}'), depth, members)
            }
        }
    }

    /// Whether it is written in the line where it begins.
    fn is_short(&self) -> bool {
        match self {
            Json::Text(_) | Json::Flag(_) => true,
            Json::List(_) => false,
            Json::Object(members) => {
                matches!(members.as_slice(), [(_, Json::Text(_) | Json::Flag(_))])
            }
        }
    }
}

/// Values between brackets, each on a line of its own.
fn block<'j>(
    to: &mut fmt::Formatter<'_>,
    (open, close): (char, char),
    depth: usize,
    values: impl Iterator<Item = (Option<&'j String>, &'j Json)>,
) -> fmt::Result {
    to.write_char(open)?;
    let mut separator = "";
    for (key, value) in values {
        write!(to, "{separator}\n{:width$}", "", width = 2 * (depth + 1))?;
        if let Some(key) = key {
            quoted(key, to)?;
            to.write_str(": ")?;
        }
        value.write(to, depth + 1)?;
        separator = ",";
    }
    if !separator.is_empty() {
        write!(to, "\n{:width$}", "", width = 2 * depth)?;
    }
    to.write_char(close)
}

fn quoted(text: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    to.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(to, "\\{letter}")?,
            control if control < ' ' => write!(to, "\\u{:04x}", u32::from(control))?,
            other => to.write_char(other)?,
        }
    }
    to.write_char('"')
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, 0)
    }
}
