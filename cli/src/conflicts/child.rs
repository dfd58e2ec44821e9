//! A command that runs for as long as it is looked at.

use std::ffi::OsString;
use std::thread::sleep;
use std::time::Instant;

use warmq_units::Duration;

use crate::failure::Failure;
use crate::recorded::Child;

/// How often it is looked whether the command still runs.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// A command that is ended on drop.
pub struct Looked(Child);

impl Looked {
    /// Starts `command` and lets it run for `time`; none if there is nothing to start.
    ///
    /// # Errors
    /// It does not start, or ends before that.
    pub fn start(command: &[OsString], time: Duration) -> Result<Option<Looked>, Failure> {
        let Some(child) = Child::start(command)? else {
            return Ok(None);
        };
        let mut looked = Looked(child);
        let time = std::time::Duration::from_nanos(time.as_ns());
        let start = Instant::now();
        loop {
            if let Some(status) = looked.0.ended() {
                let what = format!("the command ended by itself, with status {status}");
                return Err(Failure::usage(
                    what,
                    "give a shorter --after, or let it run longer",
                ));
            }
            let Some(left) = time
                .checked_sub(start.elapsed())
                .filter(|left| !left.is_zero())
            else {
                return Ok(Some(looked));
            };
            sleep(left.min(PAUSE));
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        self.0.end();
    }
}
