//! Rows as JSON lines: one object a line, for scripts.

use std::io::Write;

use serde::Serialize;

use warmq_units::JSON_SCHEMA;

use crate::{Profile, Row, WriteError};

/// A line or a document of JSON, and the version of what its keys mean.
#[derive(Serialize)]
pub struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    value: T,
}

impl<T: Serialize> Versioned<T> {
    /// `value`, which becomes an object, as this WarmQ writes it.
    pub fn of(value: T) -> Versioned<T> {
        Versioned {
            schema: JSON_SCHEMA,
            value,
        }
    }
}

/// Writes each row as one line of JSON, every figure in full; a figure that is not finite is null.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_json_lines<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    mut out: impl Write,
) -> Result<(), WriteError> {
    for row in rows {
        serde_json::to_writer(&mut out, &Versioned::of(row))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// A profile, and of which experiment it is.
#[derive(Serialize)]
struct Profiled<'p> {
    experiment: &'p str,
    profile: &'p Profile,
}

/// Writes each profile of an experiment as one line of JSON.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_json_profiles(
    experiment: &str,
    profiles: &[Profile],
    mut out: impl Write,
) -> Result<(), WriteError> {
    for profile in profiles {
        let line = Profiled {
            experiment,
            profile,
        };
        serde_json::to_writer(&mut out, &Versioned::of(line))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
