//! A command that runs while its machine is recorded.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{self, Command};

use crate::failure::Failure;

/// A command that was started.
#[derive(Debug)]
pub struct Child(process::Child);

impl Child {
    /// Starts it; none if there is nothing to start.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(command: &[OsString]) -> Result<Option<Child>, Failure> {
        let [program, arguments @ ..] = command else {
            return Ok(None);
        };
        let started = Command::new(program).args(arguments).spawn();
        started
            .map(|child| Some(Child(child)))
            .map_err(|error| refused(program, &error))
    }

    /// Whether it has ended. It goes on by itself when nobody asks any more.
    pub fn has_ended(&mut self) -> bool {
        // One that cannot be asked for is gone.
        !matches!(self.0.try_wait(), Ok(None))
    }
}

fn refused(program: &OsString, error: &std::io::Error) -> Failure {
    let what = format!("cannot start {}: {error}", program.to_string_lossy());
    match error.kind() {
        ErrorKind::NotFound => Failure::usage(what, "give a command that is there after `--`"),
        _ => Failure::usage(what, ""),
    }
}
