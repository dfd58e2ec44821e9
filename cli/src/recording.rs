//! The file of a recording.

use std::fs::File;
use std::path::Path;

use warmq_trace::file::{Damage, ReadError, Reader};

use crate::failure::Failure;

/// Its reader.
///
/// # Errors
/// It is not there, or no trace.
pub fn open(file: &Path) -> Result<Reader<File>, Failure> {
    let opened = File::open(file).map_err(|error| {
        let what = format!("{}: cannot read it: {error}", file.display());
        Failure::usage(what, "give a trace that warmq wrote")
    })?;
    Reader::new(opened).map_err(|error| unreadable(file, &error))
}

/// What is wrong with it, and where.
pub fn unreadable(file: &Path, error: &ReadError) -> Failure {
    let help = match error.damage {
        Damage::NotATrace => {
            "traces for Perfetto cannot be read: write one with --trace NAME.warmq"
        }
        _ => "",
    };
    Failure::usage(format!("{}: {error}", file.display()), help)
}
