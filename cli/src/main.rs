//! `warmq`: the door to the laboratory and to the real thing.
//!
//! Arguments are parsed low (`arguments`, and the `Arguments` of each command), checked high, and
//! then run. Results go to standard output, everything else to standard error; an error is a
//! [`failure::Failure`], which knows its exit code.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "the command `warmq` needs Linux: it records kernels, boots guests and measures caches. The \
     laboratory's crates (common/, lab/) build on any system: docs/install.md"
);

mod arguments;
mod calibrated;
mod chart;
mod clocked;
mod colors;
mod commands;
mod compare;
mod conflicts;
mod contents;
mod convert;
mod described;
mod diagnose;
mod exit;
mod failure;
mod fibers;
mod files;
mod guest;
mod interrupt;
mod judge;
mod kind;
mod laws;
mod listing;
mod machines;
mod nearby;
mod oracle_gap;
mod output;
mod planned;
mod present;
mod profile;
mod progress;
mod recorded;
mod recording;
mod replay;
mod scenario;
mod seeds;
mod snippet;
mod source;
mod study;
mod trace;
mod typed;
mod walk;
mod worlds;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && failure::json::is_wanted() => {
            output::say(&failure::json::usage(&error).to_string());
            return ExitCode::from(exit::Exit::BadInput as u8);
        }
        Err(error) if error.use_stderr() => {
            let text = error.render();
            let text = match output::messages().colors {
                true => text.ansi().to_string(),
                false => text.to_string(),
            };
            output::say(text.trim_end());
            return ExitCode::from(exit::Exit::BadInput as u8);
        }
        Err(error) => error.exit(),
    };
    interrupt::expect();
    match commands::run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.code()
        }
    }
}
