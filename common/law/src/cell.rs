//! A cell of the matrix: a law in a column, judged.

use std::path::PathBuf;

use warmq_config::Problems;
use warmq_metrics::evidence::Evidence;

use crate::column::Column;
use crate::law::{Bound, Law};
use crate::line::Line;
use crate::verdict::{Finding, Judged, Verdict};

/// A law, with what it was found by.
#[derive(Clone, Debug)]
pub struct Found {
    /// The law.
    pub law: Law,
    /// Its text.
    pub text: String,
    /// What finds it on a command line: its name, or its file as that was given.
    pub argument: String,
}

/// A cell of the matrix.
pub struct Cell<'l> {
    /// The law.
    pub law: &'l Law,
    /// Who was held to it.
    pub column: &'l Column,
    /// The verdict.
    pub judged: Judged,
    /// What is kept of the first repetition that does not hold.
    pub kept: Option<Kept>,
    /// The command that judges it again.
    pub again: String,
    /// Changes with the text of the law.
    pub digest: String,
}

/// What is kept of a repetition that does not hold.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Who waited longest, and who ran instead.
    pub evidence: Option<Evidence>,
    /// The trace's file, if there is a folder for it.
    pub trace: Option<PathBuf>,
}

impl Found {
    /// The law `name` of `text`, the text of `file`, which `argument` finds.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(name: &str, file: &str, argument: &str, text: &str) -> Result<Found, Problems> {
        Ok(Found {
            law: Law::read(name, file, text)?,
            text: text.to_owned(),
            argument: argument.to_owned(),
        })
    }

    /// What changes with the law's text.
    pub fn digest(&self) -> String {
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(self.text.as_bytes()))
    }

    /// The cell in `column` that the last of `lines` about it has; nothing if none has one of this
    /// text.
    pub fn known<'l>(&'l self, column: &'l Column, lines: &[Line]) -> Option<Cell<'l>> {
        let (law, digest) = (&self.law, self.digest());
        let mut lines = lines.iter();
        let line = lines.rfind(|line| line.is_of(law, &digest, column))?;
        line.cell(law, column)
    }
}

impl<'l> Cell<'l> {
    /// A cell of which nothing is kept, and that no command judges again.
    pub fn new(law: &'l Law, column: &'l Column, judged: Judged) -> Cell<'l> {
        Cell {
            law,
            column,
            judged,
            kept: None,
            again: String::new(),
            digest: String::new(),
        }
    }

    /// The finding that stands for it, and its bound: the first that does not hold, else the first.
    pub fn decisive(&self) -> Option<(&Finding, &Bound)> {
        let all = || self.judged.bounds.iter().zip(&self.law.bounds);
        let worst = all().find(|(found, _)| found.verdict == Verdict::Broken);
        let doubtful = || all().find(|(found, _)| found.verdict != Verdict::Holds);
        worst.or_else(doubtful).or_else(|| all().next())
    }
}
