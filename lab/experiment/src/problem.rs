//! What is wrong with an experiment's file: where, what, and what would mend it.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// Something wrong in an experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named to the reader.
    pub file: String,
    /// The key, with the tables that lead to it: `quick.sweep.colors`. Empty: the whole file.
    pub key: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The bytes of the text that are meant; within the text, on borders of characters.
    pub span: Range<usize>,
    /// What is wrong, in a sentence's middle.
    pub what: String,
    /// What would mend it; may be empty.
    pub mend: String,
}

/// Everything wrong in one file, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The text that was read, to show the spans in.
    pub text: String,
    /// The problems, at least one.
    pub list: Vec<Problem>,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(formatter, "`{}`: ", self.key)?;
        }
        formatter.write_str(&self.what)?;
        if !self.mend.is_empty() {
            write!(formatter, "; {}", self.mend)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.list.iter().map(Problem::to_string).collect();
        formatter.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problem {}
impl std::error::Error for Problems {}

/// Collects problems while a file is read, so that one reading finds all of them.
pub(crate) struct Sink<'a> {
    file: &'a str,
    text: &'a str,
    found: RefCell<Vec<Problem>>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Sink<'a> {
        Sink {
            file,
            text,
            found: RefCell::default(),
        }
    }

    pub(crate) fn report(
        &self,
        key: &str,
        span: &Range<usize>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        self.found.borrow_mut().push(Problem {
            file: self.file.to_owned(),
            key: key.to_owned(),
            line: before.matches('\n').count() + 1,
            span: span.clone(),
            what: what.into(),
            mend: mend.into(),
        });
    }

    /// How many problems were found so far.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Everything found so far as an error, if there is anything.
    pub(crate) fn verdict(&self) -> Result<(), Problems> {
        if self.count() == 0 {
            return Ok(());
        }
        let mut list = self.found.borrow().clone();
        list.sort_by_key(|problem| problem.span.start);
        Err(Problems {
            text: self.text.to_owned(),
            list,
        })
    }
}

/// The mend for a word that is not known: the nearest that is, else all that are.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), *name))
        .min();
    match nearest {
        Some((distance, name)) if distance <= (word.chars().count() / 3).max(1) => {
            format!("did you mean `{name}`?")
        }
        _ if known.is_empty() => String::new(),
        _ => format!("known are {}", known.join(", ")),
    }
}
