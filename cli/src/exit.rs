//! The exit codes: stable, so that scripts can rely on them.

use std::process::ExitCode;

/// How the command ended, in a number. The codes never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// A claim failed, or recordings differ, and `--strict` was given.
    ClaimFailed = 1,
    /// Bad input or usage. (clap's own code for a wrong option, too.)
    BadInput = 2,
    /// A scheduler broke a rule of the kernel.
    SchedulerBroke = 3,
    /// A run could not go on: a stall, or no memory left on the simulated machine.
    Stalled = 4,
    /// Two times the same run gave different results.
    NotDeterministic = 5,
    /// This machine cannot do it: no permission, no space, no such CPU.
    MachineCannot = 6,
    /// A run broke an invariant that holds on every machine: a bug of the scheduler or of WarmQ.
    InvariantBroken = 7,
    /// A program of the workload broke a rule of the kernel or of a library.
    ProgramBroke = 8,
    /// Interrupted, as shells number it: 128 and the number of SIGINT.
    Interrupted = 130,
}

/// The codes as `--help` and the manual explain them.
pub const TABLE: &str = "\
Exit codes:
  0  done; failed claims are results, not errors, unless --strict is given
  1  a claim failed, and --strict was given
  2  bad input or usage
  3  a scheduler broke a rule of the kernel
  4  a run could not go on: a stall, or the simulated memory is full
  5  not deterministic: the same run gave two different results
  6  this machine cannot do it: no permission, no space, no such CPU
  7  a run broke an invariant that holds on every machine: a bug of the scheduler or of warmq
  8  a program of the workload broke a rule of the kernel or of a library
  130  interrupted (Ctrl-C)";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_the_help_explains() {
        let codes = [
            Exit::ClaimFailed,
            Exit::BadInput,
            Exit::SchedulerBroke,
            Exit::Stalled,
            Exit::NotDeterministic,
            Exit::MachineCannot,
            Exit::InvariantBroken,
            Exit::ProgramBroke,
            Exit::Interrupted,
        ];
        assert_eq!(codes.map(|exit| exit as u8), [1, 2, 3, 4, 5, 6, 7, 8, 130]);
        for exit in codes {
            assert!(TABLE.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
    }
}
