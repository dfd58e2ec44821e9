//! Why nothing can be said.

use std::io;

use thiserror::Error;

/// What went wrong, and what helps.
#[derive(Debug, Error)]
pub enum ConflictsError {
    /// There is no such process, or it has ended.
    #[error("there is no process {pid}, or it has ended; look at /proc for those that run")]
    Gone {
        /// Its number.
        pid: u32,
    },
    /// It has no memory: a kernel thread, or one that has ended and waits for its parent.
    #[error("process {pid} has no memory of its own: a kernel thread, or one that has ended")]
    NoMemory {
        /// Its number.
        pid: u32,
    },
    /// The kernel refuses to show something of it.
    #[error(
        "cannot read {what} of process {pid}: {source}; run as root, or as the user of the \
         process where /proc/sys/kernel/yama/ptrace_scope is 0"
    )]
    Refused {
        /// Its number.
        pid: u32,
        /// The file in its folder of /proc.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// What the user wrote makes no sense.
    #[error("{what}; {fix}")]
    Input {
        /// What is wrong.
        what: String,
        /// What to write instead.
        fix: String,
    },
    /// A file that is not what it should be.
    #[error("{file}: {what}; {fix}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong with it.
        what: String,
        /// What helps.
        fix: String,
    },
}

impl ConflictsError {
    pub(crate) fn input(what: impl Into<String>, fix: impl Into<String>) -> ConflictsError {
        ConflictsError::Input {
            what: what.into(),
            fix: fix.into(),
        }
    }

    pub(crate) fn file(
        file: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> ConflictsError {
        ConflictsError::File {
            file: file.into(),
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// What an error in reading `what` of process `pid` means.
    pub(crate) fn of_process(pid: u32, what: &str, source: io::Error) -> ConflictsError {
        match is_gone(&source) {
            true => ConflictsError::Gone { pid },
            false => ConflictsError::Refused {
                pid,
                what: what.to_owned(),
                source,
            },
        }
    }
}

/// Whether a file of /proc could not be read because its process or thread has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    /// What reads of a file of a process that has ended give, on all architectures of Linux.
    const ESRCH: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}
