//! What can go wrong around a guest, with the mend.

use std::io;
use std::path::Path;

use thiserror::Error;

/// Why no guest ran, or why nothing is known of what it did.
#[derive(Debug, Error)]
pub enum VmError {
    /// A setting makes no sense.
    #[error("--{option} {value}: {problem}; {mend}")]
    Setting {
        /// The setting, by the name of its option.
        option: &'static str,
        /// Its value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        mend: String,
    },
    /// Something that is needed is not there.
    #[error("{what}; {mend}")]
    Missing {
        /// What was looked for, and where.
        what: String,
        /// How to get it.
        mend: String,
    },
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program that does a part of the work failed.
    #[error("{tool} failed: {said}; {mend}")]
    Tool {
        /// The program and what it was to do.
        tool: String,
        /// What it said.
        said: String,
        /// What may help.
        mend: String,
    },
}

impl VmError {
    pub(crate) fn setting(
        option: &'static str,
        value: impl ToString,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> VmError {
        VmError::Setting {
            option,
            value: value.to_string(),
            problem: problem.into(),
            mend: mend.into(),
        }
    }

    pub(crate) fn missing(what: impl Into<String>, mend: impl Into<String>) -> VmError {
        VmError::Missing {
            what: what.into(),
            mend: mend.into(),
        }
    }

    /// The answer of the system to `action`, for `map_err`.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> VmError {
        let action = action.into();
        |source| VmError::System { action, source }
    }

    /// The same for what is done to a file.
    pub(crate) fn file(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> VmError {
        VmError::system(format!("{verb} {}", path.display()))
    }
}
