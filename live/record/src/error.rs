//! What can go wrong with a recording, and what helps.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why nothing was recorded, or why a recording cannot be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// This process may not record, or this kernel cannot.
    #[error("{}: {why}; {fix}", warmq_units::printable(path))]
    Refused {
        /// The file or folder that was refused.
        path: PathBuf,
        /// Why.
        why: String,
        /// What helps.
        fix: String,
    },
    /// The operating system failed.
    #[error("cannot {task} {}: {source}", warmq_units::printable(path))]
    System {
        /// What was attempted.
        task: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The bytes are not a recording.
    #[error(transparent)]
    Damaged(#[from] warmq_recordings::Damaged),
}

/// What helps a process that may not use tracefs.
const BE_ROOT: &str = "run as root, or without recording";

impl RecordError {
    pub(crate) fn refused(
        path: impl Into<PathBuf>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> RecordError {
        RecordError::Refused {
            path: path.into(),
            why: why.into(),
            fix: fix.into(),
        }
    }

    /// The system's answer to `task` on `path`, for `map_err`.
    pub(crate) fn of(task: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                RecordError::refused(path, format!("cannot {task} it: {source}"), BE_ROOT)
            }
            // As containers have /sys.
            io::ErrorKind::ReadOnlyFilesystem => {
                let fix = "mount tracefs for writing, or without recording";
                RecordError::refused(path, format!("cannot {task} it: {source}"), fix)
            }
            io::ErrorKind::OutOfMemory => RecordError::refused(
                path,
                "the kernel has no memory for buffers of this size",
                "record with smaller buffers",
            ),
            _ => RecordError::System { task, path, source },
        }
    }
}
