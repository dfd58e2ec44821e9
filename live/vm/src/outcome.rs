//! How a command in a guest ended.

use std::time::Duration;

/// What ended the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The command ended with this status: 128 plus a signal's number if a signal ended it, 126 or
    /// 127 if it could not be started.
    Exited(u8),
    /// The time was up, and the guest was killed.
    TimeUp,
    /// The kernel panicked, or stopped itself after an oops.
    Panicked,
    /// The guest was switched off or reset before the command ended.
    SwitchedOff,
}

/// The outcome of a command in a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What ended it.
    pub ending: Ending,
    /// Time from the start of the guest to that of the command, if it was started.
    pub boot: Option<Duration>,
    /// Time from the start of the guest to its end.
    pub total: Duration,
    /// For how long the guest's CPUs waited for those of this machine while the command ran,
    /// summed over them: by so much times by the wall clock may be too long. `None` where this
    /// machine's kernel does not report it.
    pub cpu_delay: Option<Duration>,
    /// The command's standard output, unless it was streamed.
    pub stdout: Vec<u8>,
    /// The command's standard error, unless it was streamed.
    pub stderr: Vec<u8>,
    /// The end of the kernel's console messages.
    pub console: String,
}

impl Outcome {
    /// Status for [`Ending::TimeUp`], as of `timeout(1)`.
    pub const TIME_UP: u8 = 124;
    /// Status if the guest ended before the command.
    pub const GUEST_FAILED: u8 = 125;

    /// An exit status: the command's own, or [`Outcome::TIME_UP`], or [`Outcome::GUEST_FAILED`].
    pub fn status(&self) -> u8 {
        match self.ending {
            Ending::Exited(status) => status,
            Ending::TimeUp => Outcome::TIME_UP,
            Ending::Panicked | Ending::SwitchedOff => Outcome::GUEST_FAILED,
        }
    }

    /// Whether the command ran and ended with 0.
    pub fn success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_commands_unless_the_guest_ended_first() {
        let outcome = |ending| Outcome {
            ending,
            boot: None,
            total: Duration::ZERO,
            cpu_delay: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            console: String::new(),
        };
        for (ending, status, success) in [
            (Ending::Exited(0), 0, true),
            (Ending::Exited(124), 124, false),
            (Ending::TimeUp, 124, false),
            (Ending::Panicked, 125, false),
            (Ending::SwitchedOff, 125, false),
        ] {
            let outcome = outcome(ending);
            assert_eq!(
                (outcome.status(), outcome.success()),
                (status, success),
                "{ending:?}"
            );
        }
    }
}
