//! Why something is not written.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why something is not written, without its name.
#[derive(Debug, derive_more::From)]
pub enum Refused {
    /// The operating system refused.
    #[from(io::Error, Errno)]
    System(io::Error),
    /// Another process writes it: which, as far as the kernel says.
    Busy(Option<String>),
    /// Somebody else made what is there.
    Planted {
        /// What is there: `a link`, `a file`.
        what: &'static str,
        /// The user who made it.
        uid: u32,
    },
    /// It is a folder.
    IsFolder,
    /// It became something else than a file while it was written.
    Changed,
}

impl Refused {
    /// How to fix it; may be empty.
    pub fn fix(&self) -> &'static str {
        match self {
            Refused::System(_) => "",
            Refused::Busy(_) => "wait for it, or choose another name",
            Refused::Planted { .. } => {
                "choose a folder where only you may write, or remove what is there"
            }
            Refused::IsFolder => "give the name of a file",
            Refused::Changed => "try again",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::System(error) => error.fmt(formatter)?,
            Refused::Busy(Some(who)) => write!(formatter, "{who} is writing it")?,
            Refused::Busy(None) => formatter.write_str("another process is writing it")?,
            Refused::Planted { what, uid } => write!(
                formatter,
                "{what} of user {uid} is there, where others may make one"
            )?,
            Refused::IsFolder => formatter.write_str("it is a folder")?,
            Refused::Changed => formatter.write_str("it became something else meanwhile")?,
        }
        match self.fix() {
            "" => Ok(()),
            fix => write!(formatter, "; {fix}"),
        }
    }
}

impl std::error::Error for Refused {}
