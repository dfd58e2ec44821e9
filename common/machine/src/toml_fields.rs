//! A TOML table with spans: every key is known, every value has a type, every mistake a place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use warmq_units::Bytes;

use crate::error::{Flaw, MachineError};

/// The text that is read, for errors.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// The file's name as errors show it.
    pub file: &'a str,
    /// All of its text.
    pub text: &'a str,
}

/// A table of a file, with its place.
#[derive(Clone)]
pub struct Fields<'a> {
    text: Text<'a>,
    path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Text<'a> {
    /// The document's root table.
    ///
    /// # Errors
    /// Text that is not TOML.
    pub fn parse(self) -> Result<Spanned<DeTable<'a>>, MachineError> {
        DeTable::parse(self.text).map_err(|error| {
            let flaw = Flaw::new("", error.message(), "write it as TOML 1.0 has it");
            match error.span() {
                Some(span) => flaw.at(self.file, self.text, span),
                None => flaw.in_file(self.file),
            }
        })
    }

    /// The fields of the root table, which may have the keys `known`.
    ///
    /// # Errors
    /// A key that is not known.
    pub fn root(
        self,
        document: &'a Spanned<DeTable<'a>>,
        known: &[&str],
    ) -> Result<Fields<'a>, MachineError> {
        let table = document.get_ref();
        let start = 0..self.text.lines().next().map_or(0, str::len);
        Fields {
            text: self,
            path: String::new(),
            span: start,
            table,
        }
        .knowing(known)
    }
}

impl<'a> Fields<'a> {
    /// Refuses keys other than `known`, and suggests the nearest of them.
    fn knowing(self, known: &[&str]) -> Result<Fields<'a>, MachineError> {
        match self
            .table
            .keys()
            .find(|key| !known.contains(&key.get_ref().as_ref()))
        {
            None => Ok(self),
            Some(key) => {
                let problem = format!("there is no key `{}` here", key.get_ref());
                let mend = suggestion(key.get_ref(), known);
                Err(self.flaw(key.get_ref(), problem, mend).at(
                    self.text.file,
                    self.text.text,
                    key.span(),
                ))
            }
        }
    }

    /// The keys of the table with the spans of their values, by name.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// The full path of a key: `cache[1].ways`, `costs."linux-2.4"`.
    pub fn path(&self, key: &str) -> String {
        let bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let quote = if key.chars().all(bare) { "" } else { "\"" };
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{quote}{key}{quote}", self.path)
    }

    fn flaw(&self, key: &str, problem: impl Into<String>, mend: impl Into<String>) -> Flaw {
        Flaw::new(self.path(key), problem, mend)
    }

    /// An error at a key of this table, or at the table where the key is missing.
    pub fn error(
        &self,
        key: &str,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> MachineError {
        self.flaw(key, problem, mend)
            .at(self.text.file, self.text.text, self.span_of(key))
    }

    /// The bytes of a key's value, or of the table's head where the key is missing.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or(self.span.clone(), Spanned::span)
    }

    /// Whether the key is given.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn need(&self, key: &str, example: &str) -> Result<&'a DeValue<'a>, MachineError> {
        let value = self.table.get(key).map(Spanned::get_ref);
        value.ok_or_else(|| self.error(key, "it is missing", format!("add {example}")))
    }

    fn wrong_type<T>(
        &self,
        key: &str,
        value: &DeValue<'_>,
        example: &str,
    ) -> Result<T, MachineError> {
        let problem = format!("a value of the type {} does not fit", value.type_str());
        Err(self.error(key, problem, format!("write {example}")))
    }

    /// A text.
    pub fn string(&self, key: &str, example: &str) -> Result<&'a str, MachineError> {
        match self.need(key, example)? {
            DeValue::String(text) => Ok(text.as_ref()),
            other => self.wrong_type(key, other, example),
        }
    }

    /// One of the texts `choices`; the first one where the key is missing and `optional`.
    pub fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        optional: bool,
    ) -> Result<T, MachineError> {
        if optional && !self.has(key) {
            return Ok(choices[0].1);
        }
        let example = format!("{key} = \"{}\"", choices[0].0);
        let text = self.string(key, &example)?;
        let chosen = choices.iter().find(|(name, _)| *name == text);
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.error(
                key,
                format!("`{text}` is not a choice"),
                suggestion(text, &names),
            )
        })
    }

    /// True or false; false where the key is missing.
    pub fn flag(&self, key: &str) -> Result<bool, MachineError> {
        match self.table.get(key).map(Spanned::get_ref) {
            None => Ok(false),
            Some(DeValue::Boolean(flag)) => Ok(*flag),
            Some(other) => self.wrong_type(key, other, &format!("{key} = true")),
        }
    }

    /// A whole number from 0 to `most`.
    pub fn integer(&self, key: &str, most: u64) -> Result<u64, MachineError> {
        let example = format!("{key} = 4");
        match self.need(key, &example)? {
            DeValue::Integer(integer) => {
                let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                number.filter(|number| *number <= most).ok_or_else(|| {
                    let problem = format!("{} is out of range", integer.as_str());
                    self.error(
                        key,
                        problem,
                        format!("give a whole number from 0 to {most}"),
                    )
                })
            }
            other => self.wrong_type(key, other, &example),
        }
    }

    /// A decimal number in thousandths: 37.5 gives 37,500.
    pub fn thousandths(&self, key: &str) -> Result<u64, MachineError> {
        let example = format!("{key} = 37.5");
        let text = match self.need(key, &example)? {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            other => return self.wrong_type(key, other, &example),
        };
        thousandths(text).ok_or_else(|| {
            let mend = "give a number from 0 with up to three decimal places";
            self.error(key, format!("`{text}` is out of range"), mend)
        })
    }

    /// A size: a whole number of bytes, or a text such as "512KB".
    pub fn bytes(&self, key: &str) -> Result<Bytes, MachineError> {
        let example = format!("{key} = \"512KB\"");
        match self.need(key, &example)? {
            DeValue::Integer(_) => self.integer(key, u64::MAX).map(Bytes),
            DeValue::String(text) => text.parse::<Bytes>().map_err(|error| {
                self.error(
                    key,
                    error.to_string(),
                    format!("write for example {example}"),
                )
            }),
            other => self.wrong_type(key, other, &example),
        }
    }

    /// A table in this table, with the keys `known`; any keys where `known` is `None`.
    pub fn table(&self, key: &str, known: Option<&[&str]>) -> Result<Fields<'a>, MachineError> {
        let example = format!("a table [{}]", self.path(key));
        match self.need(key, &example)? {
            DeValue::Table(table) => self.inner(self.path(key), self.span_of(key), table, known),
            other => self.wrong_type(key, other, &example),
        }
    }

    /// The tables of an array, each with the keys `known`.
    pub fn tables(&self, key: &str, known: &[&str]) -> Result<Vec<Fields<'a>>, MachineError> {
        let example = format!("a table [[{}]]", self.path(key));
        let array = match self.need(key, &example)? {
            DeValue::Array(array) => array,
            other => return self.wrong_type(key, other, &example),
        };
        let inner = array
            .iter()
            .enumerate()
            .map(|(index, value)| match value.get_ref() {
                DeValue::Table(table) => {
                    let path = format!("{}[{index}]", self.path(key));
                    self.inner(path, value.span(), table, Some(known))
                }
                other => self.wrong_type(key, other, &example),
            });
        inner.collect()
    }

    fn inner(
        &self,
        path: String,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        known: Option<&[&str]>,
    ) -> Result<Fields<'a>, MachineError> {
        let fields = Fields {
            text: self.text,
            path,
            span,
            table,
        };
        match known {
            Some(known) => fields.knowing(known),
            None => Ok(fields),
        }
    }

    /// Whether the value is a table.
    pub fn is_table(&self, key: &str) -> bool {
        self.table
            .get(key)
            .is_some_and(|value| value.get_ref().is_table())
    }
}

/// What to do about a word that is not one of `known`.
fn suggestion(word: &str, known: &[&str]) -> String {
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), *name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
        .min();
    match near {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("use one of: {}", known.join(", ")),
    }
}

/// A decimal number of at most three places in thousandths, read exactly: `37.5` gives 37,500.
pub fn thousandths(text: &str) -> Option<u64> {
    let text: String = text
        .trim()
        .chars()
        .filter(|letter| *letter != '_')
        .collect();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 3 {
        return None;
    }
    let places: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        let table = [
            ("37.5", Some(37_500)),
            ("0.001", Some(1)),
            ("7", Some(7_000)),
            ("1.50000", Some(1500)),
        ];
        for (text, thousandth) in table {
            assert_eq!(thousandths(text), thousandth, "{text}");
        }
        for text in [
            "",
            ".5",
            "-1",
            "1e3",
            "inf",
            "0.0001",
            "99999999999999999999",
        ] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
