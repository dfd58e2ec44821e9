//! What is wrong with a tree of /sys, as a value.

use std::path::PathBuf;

/// A machine that cannot be described from its /sys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}; {fix}", warmq_units::printable(path))]
pub struct HostError {
    /// The file or folder to blame.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}
