//! A command that runs while it, or its machine, is looked at.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it: asks for that, and ends it by force if it goes on for a second.
    pub fn end(&mut self) {
        let asked = i32::try_from(self.0.id()).ok().map(Pid::from_raw);
        let _ = asked.map(|pid| kill(pid, Signal::SIGTERM));
        let end = Instant::now() + Duration::from_secs(1);
        while Instant::now() < end {
            if self.ended().is_some() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// The status with which it has ended, as shells number it; none while it goes on. It does so
    /// by itself when nobody asks any more.
    pub fn ended(&mut self) -> Option<u8> {
        match self.0.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(number(status)),
            // One that cannot be asked for is gone.
            Err(_) => Some(0),
        }
    }
}

/// What it ended with, or 128 and the signal that ended it.
fn number(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    let number = status.code().or_else(signal);
    number
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(u8::MAX)
}

fn refused(program: &OsString, error: &std::io::Error) -> Failure {
    let what = format!("cannot start {}: {error}", program.to_string_lossy());
    match error.kind() {
        ErrorKind::NotFound => Failure::usage(what, "give a command that is there after `--`"),
        _ => Failure::usage(what, ""),
    }
}
