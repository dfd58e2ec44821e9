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

/// The kernel's message of a breakpoint that none of its own parts knows.
const BREAKPOINT: &str = "int3: 0000 [#1]";

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

    /// Whether the emulator broke the boot: a breakpoint (`int3`) that nobody set, before the
    /// command began.
    ///
    /// A kernel that patches its own code puts breakpoints there for a moment. Where the CPUs of
    /// an emulator are threads (seen with QEMU 7.2), one of them may come upon a breakpoint that
    /// is gone for the others. It says nothing of the kernel or the command.
    pub fn emulator_broke(&self) -> bool {
        self.ending == Ending::Panicked && self.boot.is_none() && self.console.contains(BREAKPOINT)
    }

    /// Whether the command ran and ended with 0.
    pub fn success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ending: Ending) -> Outcome {
        Outcome {
            ending,
            boot: None,
            total: Duration::ZERO,
            cpu_delay: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            console: String::new(),
        }
    }

    /// As Linux 6.18 said it, and as those before 6.14 do.
    #[test]
    fn the_emulators_fault_is_a_breakpoint_before_the_command() {
        let broken = [
            "[ 2.68] Oops: int3: 0000 [#1] SMP NOPTI",
            "[ 2.68] int3: 0000 [#1] SMP PTI",
        ];
        let own = [
            "[ 2.68] Oops: general protection fault [#1]",
            "Unable to mount root fs",
            "",
        ];
        let boot = Some(Duration::from_secs(3));
        for (console, ending, boot, expected) in [
            (broken[0], Ending::Panicked, None, true),
            (broken[1], Ending::Panicked, None, true),
            (broken[0], Ending::Panicked, boot, false),
            (broken[0], Ending::TimeUp, None, false),
            (broken[0], Ending::Exited(0), None, false),
            (own[0], Ending::Panicked, None, false),
            (own[1], Ending::Panicked, None, false),
            (own[2], Ending::SwitchedOff, None, false),
        ] {
            let console = console.to_owned();
            let outcome = Outcome {
                boot,
                console,
                ..outcome(ending)
            };
            assert_eq!(outcome.emulator_broke(), expected, "{outcome:?}");
        }
    }

    #[test]
    fn the_status_is_the_commands_unless_the_guest_ended_first() {
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
