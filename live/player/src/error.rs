//! Why a scenario is not played, or not to its end.

use std::io;

/// Why there is no trace, or only a part of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The scenario or an option is wrong: what, where, and the fix.
    #[error("{0}")]
    Input(String),
    /// The run ended early: who, and why.
    #[error("{0}")]
    Ended(String),
    /// The system refused something that the scenario needs.
    #[error("{}", refusal(what, why, fix))]
    Refused {
        /// What was tried.
        what: String,
        /// What the system said.
        why: String,
        /// What can be done.
        fix: String,
    },
    /// The kernel has thrown out the scheduler that was loaded, or its program has ended.
    #[error("{0}")]
    ThrownOut(String),
}

impl PlayError {
    /// The system answered `error` when the player tried to `what`.
    pub fn refused(
        what: impl Into<String>,
        error: &io::Error,
        fix: impl Into<String>,
    ) -> PlayError {
        PlayError::Refused {
            what: what.into(),
            why: error.to_string(),
            fix: fix.into(),
        }
    }

    /// The exit code of the command.
    pub fn exit_code(&self) -> u8 {
        match self {
            PlayError::Input(_) => 2,
            PlayError::Ended(_) => 3,
            PlayError::Refused { .. } => 4,
            PlayError::ThrownOut(_) => 5,
        }
    }

    /// The error with this exit code, as `Display` wrote it in another process.
    pub(crate) fn from_parts(code: u32, text: String) -> PlayError {
        match code {
            2 => PlayError::Input(text),
            4 => PlayError::Refused {
                what: text,
                why: String::new(),
                fix: String::new(),
            },
            5 => PlayError::ThrownOut(text),
            _ => PlayError::Ended(text),
        }
    }
}

fn refusal(what: &str, why: &str, fix: &str) -> String {
    let parts = [(": ", why), ("; ", fix)].into_iter();
    let parts = parts.filter(|(_, part)| !part.is_empty());
    let more: String = parts.flat_map(|(before, part)| [before, part]).collect();
    format!("{what}{more}")
}

impl From<warmq_scenario::EvalError> for PlayError {
    fn from(error: warmq_scenario::EvalError) -> PlayError {
        PlayError::Input(error.to_string())
    }
}
