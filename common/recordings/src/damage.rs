//! What is wrong with a recording of somebody else, and where.

use std::io;

use thiserror::Error;

/// What is wrong, and where reading ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("byte {offset}: {what}")]
pub struct Damage {
    /// The offset in the file, in bytes; of a compressed one, in what it has when unpacked.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl Damage {
    /// At this place.
    pub fn at(offset: u64, what: impl Into<String>) -> Damage {
        Damage {
            offset,
            what: what.into(),
        }
    }

    /// That the system refused to read there.
    pub fn refused(offset: u64, error: &io::Error) -> Damage {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage::at(offset, "the file ends here: it is cut off"),
            _ => Damage::at(offset, format!("it cannot be read: {error}")),
        }
    }
}
