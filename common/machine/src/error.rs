//! What is wrong with a machine, and how to mend it, as values.

use std::fmt;
use std::ops::Range;

/// A rule that a machine's description breaks; the answer of
/// [`MachineDescription::check`](crate::MachineDescription::check).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// What of the machine: `cache.l2.ways`, `memory.size`.
    pub key: String,
    /// What is wrong, as a sentence without a full stop.
    pub problem: String,
    /// What to do about it, as a sentence without a full stop.
    pub mend: String,
}

/// A text that describes no machine. Its texts are boxed to keep results small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineError {
    /// The file, as its reader was told to call it.
    pub file: Box<str>,
    /// The line of the file, counted from 1, where it is known.
    pub line: Option<usize>,
    /// The bytes of the text that are to blame, where they are known.
    pub span: Option<Range<usize>>,
    /// The key or element: `cache[1].ways`, `<object type="L2Cache">`; empty when the text as a
    /// whole cannot be read.
    pub key: Box<str>,
    /// What is wrong, as a sentence without a full stop.
    pub problem: Box<str>,
    /// What to do about it, as a sentence without a full stop.
    pub mend: Box<str>,
}

impl Flaw {
    /// A flaw at `key`.
    pub fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> Flaw {
        Flaw {
            key: key.into(),
            problem: problem.into(),
            mend: mend.into(),
        }
    }

    /// The flaw as an error of `file`, when no place in a text is known.
    pub fn in_file(self, file: &str) -> MachineError {
        MachineError {
            file: file.into(),
            line: None,
            span: None,
            key: self.key.into(),
            problem: self.problem.into(),
            mend: self.mend.into(),
        }
    }

    /// The flaw as an error of `file`, blamed on the bytes `span` of its `text`.
    pub fn at(self, file: &str, text: &str, span: Range<usize>) -> MachineError {
        let before = text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        MachineError {
            line: Some(line),
            span: Some(span),
            ..self.in_file(file)
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.key, self.problem, self.mend)
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(formatter, ": {}", self.key)?;
        }
        write!(formatter, ": {}; {}", self.problem, self.mend)
    }
}

impl std::error::Error for Flaw {}
impl std::error::Error for MachineError {}
