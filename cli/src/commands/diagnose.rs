//! `warmq diagnose`: who starves in a trace, and why.

use std::path::PathBuf;

use clap::Args;
use warmq_units::{Duration, Instant};

use crate::diagnose::{self, Span};
use crate::failure::Failure;
use crate::recording::{self, Recording};

const EXAMPLES: &str = "\
Examples:
  warmq run receiver --scheduler eevdf-6.18 --machine tiny-2cpu --set preempt=full --trace it.warmq
  warmq diagnose it.warmq
  warmq diagnose it.warmq --out page
  warmq diagnose it.warmq --from 2s --until 3s --json | jq .verdicts
  warmq watch --for 10s --out now.warmq";

/// Say who starves in a trace, who ran instead, and why it could.
///
/// A trace is a file of `warmq watch`, of `warmq run --trace NAME.warmq`, or of another recorder:
/// perf.data, trace.dat, of Perfetto, or text of ftrace, trace-cmd or perf; - is standard input.
/// Of each task that waited long the most specific reason is given: quota, real-time and kernel
/// threads, interrupts, affinity, an idle CPU, another group that is woken often, frequent
/// sleepers, weight, too many tasks. What was due is an estimate, off by some tenths.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The trace.
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    #[command(flatten)]
    how: How,
    /// Write diagnosis.html, with a picture of who ran while somebody waited, and diagnosis.json
    /// into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// What of a trace is looked at, and where the diagnosis goes.
#[derive(Args, Clone, Debug, Default)]
pub struct How {
    /// Look at what happened from this time of the trace on [default: its beginning].
    #[arg(long, value_name = "TIME")]
    pub from: Option<Duration>,
    /// Look at what happened until this time of the trace [default: its end].
    #[arg(long, value_name = "TIME")]
    pub until: Option<Duration>,
    /// Print the diagnosis as one line of JSON.
    #[arg(long)]
    pub json: bool,
}

impl How {
    /// The times as those of a trace.
    ///
    /// # Errors
    /// The end is not after the beginning.
    pub fn span(&self) -> Result<Span, Failure> {
        let from = Instant::START + self.from.unwrap_or(Duration::ZERO);
        let until = self.until.map(|until| Instant::START + until);
        let until = until.unwrap_or(Instant(u64::MAX));
        match from < until {
            true => Ok(Span { from, until }),
            false => Err(Failure::usage(
                "--until: it is not after --from",
                "give a later time",
            )),
        }
    }
}

/// Reads, judges, prints.
///
/// # Errors
/// A file that is no trace, or a folder that cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let span = arguments.how.span()?;
    arguments.out.as_deref().map_or(Ok(()), diagnose::prepare)?;
    let recording = Recording::open(&arguments.file)?;
    let found = diagnose::of(&recording, span)?;
    diagnose::print(&found, arguments.how.json)?;
    if let Some(folder) = &arguments.out {
        diagnose::write(&found, &recording, folder, arguments.how.json)?;
    }
    recording::cut(&arguments.file, found.contents.as_ref())
}
