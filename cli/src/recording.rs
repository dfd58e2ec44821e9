//! The file of a recording.

use std::fs::File;
use std::path::Path;

use warmq_trace::file::{Damage, Foreign, ReadError, Reader};
use warmq_units::printable;

use crate::failure::Failure;
use crate::nearby;

/// Its reader.
///
/// # Errors
/// It is not there, or no trace.
pub fn open(file: &Path) -> Result<Reader<File>, Failure> {
    let opened = File::open(file).map_err(|error| {
        let what = format!("{}: cannot read it: {error}", printable(file));
        let usual = "give a recording of `warmq watch` or `warmq run --trace`";
        Failure::usage(what, nearby::or(file, usual))
    })?;
    Reader::new(opened).map_err(|error| unreadable(file, &error))
}

/// What is wrong with it, and where.
pub fn unreadable(file: &Path, error: &ReadError) -> Failure {
    let name = printable(file);
    match error.damage {
        Damage::NotATrace(format) => {
            Failure::usage(format!("{name}: {}", error.damage), instead(format))
        }
        _ => Failure::usage(format!("{name}: {error}"), ""),
    }
}

/// How to come by a recording, for somebody who has a file of another format.
pub fn instead(format: Foreign) -> String {
    const RECORD: &str = "record this machine with `warmq watch --only-record --out NAME.warmq`, \
                          or a run with `warmq run ... --trace NAME.warmq`";
    match format {
        Foreign::Scenario => "play it: `warmq run ... --trace NAME.warmq` makes a recording".into(),
        Foreign::Compressed(_) => {
            format!("if a recording of WarmQ was compressed, decompress it; else {RECORD}")
        }
        _ => RECORD.into(),
    }
}
