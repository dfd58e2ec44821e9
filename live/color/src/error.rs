//! What can go wrong.

use std::fmt;

/// What was refused, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    fix: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Error {
        Error {
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// What was refused.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What helps.
    pub fn fix(&self) -> &str {
        &self.fix
    }

    /// The last error of the operating system, while `doing` something.
    pub(crate) fn system(doing: &str, fix: &str) -> Error {
        let cause = std::io::Error::last_os_error();
        Error::new(format!("cannot {doing}: {cause}"), fix)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.fix)
    }
}

impl std::error::Error for Error {}
