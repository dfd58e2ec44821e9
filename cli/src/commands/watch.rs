//! `warmq watch`: what this machine does, recorded and diagnosed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use warmq_units::{Duration, Instant, printable};

use super::diagnose::How;
use crate::diagnose;
use crate::failure::Failure;
use crate::output;
use crate::recorded::{self, Asked, Recorder};
use crate::recording::Recording;

const EXAMPLES: &str = "\
Examples:
  warmq watch                              ten seconds of this machine, diagnosed
  warmq watch --for 30s --page diagnosis   with a page and pictures
  warmq watch --out it.warmq -- make -j8   while a command runs; the trace is kept
  warmq watch --only-record --out it.warmq && warmq diagnose it.warmq --from 2s";

/// Record this machine, and say who starves on it, who ran instead, and why it could.
///
/// All of it is recorded by the kernel's tracepoints, for a time or while a command runs, and
/// nothing is changed. They are read through tracefs, or by BPF where that cannot be had. That
/// needs root. What the recorder took of CPU time and memory, and what was lost, is printed. Group,
/// nice value, policy and affinity are those at the start, or when a task was first seen. With a
/// COMMAND that ended by then, `warmq watch` ends with its status.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// How long to record [default: 10s, or until the command ends].
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Duration>,
    /// Keep the trace in this file, which ends in `.warmq`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Record only, without a diagnosis.
    #[arg(long, requires = "out", conflicts_with_all = ["page", "json", "from", "until"])]
    only_record: bool,
    /// Write diagnosis.html and diagnosis.json into this folder.
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// The kernel's buffer for each CPU, in KiB: more where events are lost and memory is left.
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    buffer: u32,
    #[command(flatten)]
    recorder: Recorder,
    #[command(flatten)]
    how: How,
    /// Wait until standard input ends, then remove what killed recorders left behind.
    #[arg(long, hide = true, exclusive = true)]
    sweep: bool,
    /// Record while this command runs; --for ends the recording, not the command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Records, prints what that took, diagnoses.
///
/// # Errors
/// A machine that cannot be recorded, a command that does not start, a file that cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.sweep {
        recorded::sweep_when_left();
        return Ok(());
    }
    let span = arguments.how.span()?;
    if let Some(file) = arguments
        .out
        .as_deref()
        .filter(|file| !diagnose::is_trace(file))
    {
        let what = format!("--out: {} is no name of a trace", printable(file));
        return Err(Failure::usage(what, "let it end in .warmq"));
    }
    if arguments.time == Some(Duration::ZERO) {
        return Err(Failure::usage(
            "--for: nothing happens in no time",
            "give a time such as 10s",
        ));
    }
    if let Some(time) = arguments.time
        && span.from >= Instant::START + time
    {
        let what = "--from: the recording is over by then (see --for)";
        return Err(Failure::usage(what, "give an earlier time"));
    }
    arguments
        .page
        .as_deref()
        .map_or(Ok(()), diagnose::prepare)?;
    let asked = Asked {
        time: arguments.time,
        buffer_kb: arguments.buffer,
        recorder: arguments.recorder.choice,
        command: &arguments.command,
    };
    let mut kept = recorded::Kept::at(arguments.out.as_deref())?;
    let took = recorded::record(&asked, &mut kept)?;
    output::say(&took.text());
    if !arguments.only_record {
        let recording = Recording::open(kept.path())?;
        let found = diagnose::of(&recording, span)?;
        diagnose::print(&found, arguments.how.json)?;
        if let Some(folder) = &arguments.page {
            diagnose::write(&found, &recording, folder, arguments.how.json)?;
        }
    }
    match took.status {
        None | Some(0) => Ok(()),
        Some(status) => Err(Failure::Command(status, String::new())),
    }
}
