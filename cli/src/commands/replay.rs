//! `warmq replay`: what a trace recorded, played again in the lab.

use std::path::PathBuf;

use clap::Args;
use warmq_units::{Duration, Instant};

use crate::diagnose::Span;
use crate::failure::Failure;
use crate::recording;
use crate::replay::{self, On};

const EXAMPLES: &str = "\
Examples:
  warmq run receiver --world guest --kernel 6.18 --preempt full --trace it.warmq
  warmq replay it.warmq                            under the scheduler that it was recorded under
  warmq replay it.warmq --scheduler eevdf-7.1      what another one makes of it
  warmq replay it.warmq --scheduler ./scx_mine.bpf.o   a compiled scheduler under the same load
  warmq replay it.warmq --out it.toml && warmq run it.toml --scheduler scx_warmq,eevdf-7.1
  sudo warmq watch --only-record --out now.warmq && warmq replay now.warmq --machine epyc-12llc";

/// Play again what a trace recorded, under any scheduler of the lab, beside what was recorded.
///
/// A trace is a file of `warmq watch`, of `warmq run --trace NAME.warmq`, or of another recorder:
/// perf.data, trace.dat, of Perfetto, or text of ftrace, trace-cmd or perf; - is standard input.
/// Each task computes, sleeps and wakes others as it did; whoever waited for what another task did
/// waits for that again; timers and what arrives from outside keep their times. How long tasks wait
/// for a CPU, and who preempts whom, is left to the scheduler. What cannot be carried over is said.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The trace.
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    #[command(flatten)]
    on: On,
    /// Play what happened from this time of the trace on [default: its beginning].
    #[arg(long, value_name = "TIME")]
    from: Option<Duration>,
    /// Play what happened until this time of the trace [default: its end].
    #[arg(long, value_name = "TIME")]
    until: Option<Duration>,
    /// Write the scenario to this file, for `warmq run`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Reads, plays, prints.
///
/// # Errors
/// A file that is no whole trace, a machine or a scheduler that is not there, a run that fails.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let until = arguments.until.map(|until| Instant::START + until);
    let span = Span {
        from: Instant::START + arguments.from.unwrap_or(Duration::ZERO),
        until: until.unwrap_or(Instant(u64::MAX)),
    };
    let out = arguments.out.as_deref();
    let replayed = replay::of_file(&arguments.file, span, &arguments.on, out)?;
    replay::print(&replayed, arguments.json)?;
    recording::cut(&arguments.file, replayed.contents.as_ref())
}
