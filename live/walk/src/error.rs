//! What can go wrong in a measurement, and what helps.

use std::fmt::Display;
use std::io;

use thiserror::Error;

/// Why there is no measurement.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A setting makes no sense.
    #[error("{field} = {value}: {problem}; {fix}")]
    Setting {
        /// The field of the settings, by its name there.
        field: &'static str,
        /// Its value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        fix: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}: {source}; {fix}")]
    System {
        /// What was attempted.
        action: String,
        /// The system's error.
        source: io::Error,
        /// What may help.
        fix: &'static str,
    },
    /// A message of the chat was lost, doubled or overtaken.
    #[error("{0}; this is a fault of the program, report it")]
    Astray(String),
    /// The server of the chat gave up.
    #[error("the server gave up: {0}")]
    Server(String),
    /// The time was up before there was anything to report.
    #[error("{problem}; {fix}")]
    TimeUp {
        /// What was not complete yet.
        problem: &'static str,
        /// What to write instead.
        fix: &'static str,
    },
}

impl BenchError {
    pub(crate) fn setting(
        field: &'static str,
        value: impl Display,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> BenchError {
        BenchError::Setting {
            field,
            value: value.to_string(),
            problem: problem.into(),
            fix: fix.into(),
        }
    }

    /// An error of the system in `action`.
    pub(crate) fn system(
        action: impl Into<String>,
        source: impl Into<io::Error>,
        fix: &'static str,
    ) -> BenchError {
        BenchError::System {
            action: action.into(),
            source: source.into(),
            fix,
        }
    }

    /// The error that the last system call of this thread left behind.
    pub(crate) fn last_system(action: impl Into<String>, fix: &'static str) -> BenchError {
        BenchError::system(action, io::Error::last_os_error(), fix)
    }
}
