//! What can go wrong with a guest, and what helps.

use std::io;
use std::path::Path;

use thiserror::Error;

/// Why no guest ran, or why its result is unknown.
#[derive(Debug, Error)]
pub enum VmError {
    /// A setting makes no sense.
    #[error("--{option} {value}: {problem}; {help}")]
    Setting {
        /// The setting, by the name of its option.
        option: &'static str,
        /// Its value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        help: String,
    },
    /// Something that is needed is missing.
    #[error("{what}; {help}")]
    Missing {
        /// What was looked for, and where.
        what: String,
        /// How to get it.
        help: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program that is used for this failed.
    #[error("{tool} failed: {said}; {help}")]
    Tool {
        /// The program and its task.
        tool: String,
        /// Its message.
        said: String,
        /// What may help.
        help: String,
    },
}

impl VmError {
    pub(crate) fn setting(
        option: &'static str,
        value: impl ToString,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> VmError {
        VmError::Setting {
            option,
            value: value.to_string(),
            problem: problem.into(),
            help: help.into(),
        }
    }

    pub(crate) fn missing(what: impl Into<String>, help: impl Into<String>) -> VmError {
        VmError::Missing {
            what: what.into(),
            help: help.into(),
        }
    }

    /// An error of the system in `action`, for `map_err`.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> VmError {
        let action = action.into();
        |source| VmError::System { action, source }
    }

    /// The same for an action on a file.
    pub(crate) fn file(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> VmError {
        VmError::system(format!("{verb} {}", path.display()))
    }
}
