//! What is wrong with a document: where, what, and how to fix it.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use warmq_units::printable;

use crate::document::Place;
use crate::suggestion::shortened;

/// A text that values come from: a file, or an option of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it: the file's name, or the option.
    pub name: Arc<str>,
    /// All of its text.
    pub text: Arc<str>,
    /// Where each of its lines ends; none for an option, whose lines are not worth counting.
    line_ends: Option<Arc<[usize]>>,
}

/// Something wrong in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The text in which it is.
    pub source: Source,
    /// The key with the tables that lead to it (`quick.sweep.colors`), or an XML element. Empty:
    /// the text as a whole.
    pub key: String,
    /// The line, counted from 1; none for an option.
    pub line: Option<usize>,
    /// The bytes of the text that are meant, on borders of characters; empty: no place is known.
    pub span: Range<usize>,
    /// What is wrong, as a sentence without a full stop.
    pub what: String,
    /// How to fix it, as a sentence without a full stop; may be empty.
    pub help: String,
}

/// Everything wrong in one document, in the order of its text; at least one problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The problems.
    pub list: Vec<Problem>,
}

impl Source {
    /// The file `name`, which holds `text`.
    pub fn file(name: &str, text: &str) -> Source {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Source {
            name: name.into(),
            text: text.into(),
            line_ends: Some(ends.map(|(at, _)| at).collect()),
        }
    }

    /// The option `name` of a command line, and what was typed after it.
    pub fn option(name: &str, typed: &str) -> Source {
        Source {
            name: name.into(),
            text: typed.into(),
            line_ends: None,
        }
    }

    /// A problem at the bytes `span` of this text.
    pub fn problem(
        &self,
        key: impl Into<String>,
        span: Range<usize>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Problem {
        let line = |ends: &Arc<[usize]>| 1 + ends.partition_point(|end| *end < span.start);
        Problem {
            source: self.clone(),
            key: shown(key),
            line: self.line_ends.as_ref().map(line),
            span,
            what: shown(what),
            help: shown(help),
        }
    }
}

/// Keys and values of a document are other people's: a message stays a line, whatever they hold.
fn shown(text: impl Into<String>) -> String {
    let text = text.into();
    match printable(&text) {
        plain if plain.is_plain() => text,
        odd => odd.to_string(),
    }
}

impl Problem {
    /// Where it is and what is wrong, without the fix: `fig8.toml:14: `sweep.cpus`: unknown key`.
    pub fn headline(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let key = match self.key.as_str() {
            "" => String::new(),
            key => format!("`{}`: ", shortened(key)),
        };
        format!(
            "{}{line}: {key}{}",
            printable(&*self.source.name),
            self.what
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.headline())?;
        if !self.help.is_empty() {
            write!(formatter, "; {}", self.help)?;
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

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        let list = vec![problem];
        Problems { list }
    }
}

impl std::error::Error for Problem {}
impl std::error::Error for Problems {}

/// Collects the problems of a document while it is read.
pub(crate) struct Sink<'a> {
    sources: &'a [Source],
    found: RefCell<Vec<(Place, Problem)>>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(sources: &'a [Source]) -> Sink<'a> {
        let found = RefCell::default();
        Sink { sources, found }
    }

    pub(crate) fn report(
        &self,
        key: &str,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let problem = self.sources[place.source].problem(key, place.span.clone(), what, help);
        self.found.borrow_mut().push((place.clone(), problem));
    }

    pub(crate) fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Everything that was reported as an error, if there is anything.
    pub(crate) fn verdict(self) -> Result<(), Problems> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|(place, _)| (place.source, place.span.start));
        let list = found.into_iter().map(|(_, problem)| problem).collect();
        Err(Problems { list })
    }
}
