//! `warmq convert`: a recording in another form.

use std::path::PathBuf;

use clap::Args;

use crate::convert;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  warmq convert perf.data it.warmq
  warmq convert trace.dat it.perfetto-trace      for ui.perfetto.dev
  warmq convert it.warmq it.ndjson && jq -c 'select(.t == \"switch\")' it.ndjson
  perf record -a -e 'sched:*' -o - -- sleep 5 | warmq convert - it.warmq";

/// Write a recording in another form: WarmQ's own, Perfetto's, or rows of JSON.
///
/// What is read: recordings of WarmQ, perf.data, trace.dat, traces of Perfetto, and the text of
/// tracefs' `trace` file, `trace-cmd report` and `perf script`; compressed by gzip or zstd or not.
/// The name of the new file says its form: .warmq; .perfetto-trace, .pftrace or .perfetto; .ndjson
/// or .jsonl, a JSON object a line. What the new form does not have is said.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The recording; - is standard input.
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The new file.
    #[arg(value_name = "OUT")]
    to: PathBuf,
}

/// Reads, writes, says what is lost.
///
/// # Errors
/// What is no recording, a name of no form, a file that cannot be written; damage in the middle,
/// once what stands before it was written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    convert::file(&arguments.from, &arguments.to)
}
