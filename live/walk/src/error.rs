//! What can go wrong in a measurement, and what helps.

use std::fmt::Display;
use std::io;

use thiserror::Error;

/// Why there is no measurement.
#[derive(Debug, Error)]
pub enum WalkError {
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
    /// There are no such stacks.
    #[error("{0}")]
    Stacks(warmq_color::Error),
}

impl WalkError {
    pub(crate) fn setting(
        field: &'static str,
        value: impl Display,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> WalkError {
        WalkError::Setting {
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
    ) -> WalkError {
        WalkError::System {
            action: action.into(),
            source: source.into(),
            fix,
        }
    }

    /// The error that the last system call of this thread left behind.
    pub(crate) fn last_system(action: impl Into<String>, fix: &'static str) -> WalkError {
        WalkError::system(action, io::Error::last_os_error(), fix)
    }
}
