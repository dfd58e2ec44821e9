//! Why what is asked for is not done.

use std::io;

use warmq_config::Problems;

use crate::run::NoThreads;
use crate::simulator::PartError;

/// Why what is asked for is not done.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// What is wrong, and how to fix it; may be empty.
    #[error("{0}")]
    Usage(String, String),
    /// The same of a file.
    #[error("{file}: {what}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        what: String,
        /// How to fix it.
        help: String,
    },
    /// Documents with something wrong in them.
    #[error("{} documents are wrong", .0.len())]
    Problems(Vec<Problems>),
    /// The part of this kind and name cannot be used.
    #[error("{0} {1}: {2}")]
    Part(&'static str, String, PartError),
    /// The file of this name cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, io::Error),
    /// No threads can be started.
    #[error(transparent)]
    Threads(#[from] NoThreads),
}
