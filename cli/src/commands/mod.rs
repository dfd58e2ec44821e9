//! The commands, a file each: arguments first, then what is done with them.

pub mod bench;
pub mod calibrate;
pub mod check;
pub mod compare;
pub mod completions;
pub mod conflicts;
pub mod convert;
pub mod diagnose;
pub mod judge;
pub mod laws;
pub mod machines;
pub mod man;
pub mod metrics;
pub mod parts;
pub mod plan;
pub mod race;
pub mod replay;
pub mod reproduce;
pub mod run;
pub mod vm;
pub mod watch;

use crate::arguments::Command;
use crate::failure::Failure;

/// Does what was asked for.
///
/// # Errors
/// What ended it early.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Laws(arguments) => laws::run(&arguments),
        Command::Judge(arguments) => judge::run(&arguments),
        Command::Race(arguments) => race::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Diagnose(arguments) => diagnose::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Machines(arguments) => machines::run(&arguments),
        Command::Schedulers(arguments) => parts::schedulers(&arguments),
        Command::Workloads(arguments) => parts::workloads(&arguments),
        Command::Metrics(arguments) => metrics::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Conflicts(arguments) => conflicts::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Vm(arguments) => vm::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
