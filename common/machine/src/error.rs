//! What is wrong with a machine, and how to fix it, as a value.

/// A rule that a machine's description breaks, as found by
/// [`MachineDescription::check`](crate::MachineDescription::check).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}; {help}")]
pub struct Flaw {
    /// The part of the machine: `cache.l2.ways`, `memory.size`.
    pub key: String,
    /// What is wrong, as a sentence without a full stop.
    pub problem: String,
    /// How to fix it, as a sentence without a full stop.
    pub help: String,
}

impl Flaw {
    /// Makes a flaw of `key`.
    pub fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Flaw {
        Flaw {
            key: key.into(),
            problem: problem.into(),
            help: help.into(),
        }
    }
}
