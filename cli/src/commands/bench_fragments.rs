//! `warmq bench fragments`: threads that never sleep and share data.

use std::time::Duration;

use clap::Args;
use warmq_bench::compare::Mode;
use warmq_bench::fragments::{FragmentsSettings, measure_fragments};

use crate::failure::Failure;
use crate::progress::Watch;
use crate::{fragments, output};

use super::bench::time_limit;

const EXAMPLES: &str = "\
Examples:
  warmq bench fragments
  warmq bench fragments --threads 8,32,128 --size 8000 --write-share 20
  warmq bench fragments --modes plain,hinted --json | jq '{mode, size, together: .together.median}'";

/// Threads that never sleep and share data: plain, bound by fragment, and hinted.
///
/// Threads are started in a loop; thread i increments (or reads) random numbers of an array that it
/// shares with the other threads of fragment i modulo the fragments, a fixed number of times. Plain:
/// the scheduler chooses where it runs. Bound: on CPU fragment modulo CPUs, and nowhere else.
/// Hinted: each thread tells its fragment to a scheduler that listens. All modes are run in turn in
/// each repetition and compared within it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FragmentsArguments {
    /// Numbers of threads; each is measured on its own [default: 8,32].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Option<Vec<u32>>,
    /// Fragments [default: 4].
    #[arg(long, value_name = "N")]
    fragments: Option<u32>,
    /// 32-bit numbers in a fragment; each size is measured on its own [default: 1000,8000,20000].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    size: Option<Vec<u32>>,
    /// Accesses of each thread [default: 8000000].
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Accesses in a hundred that increment; the others read [default: 100].
    #[arg(long, value_name = "PERCENT")]
    write_share: Option<u32>,
    /// The modes to measure [default: plain,bound,hinted].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Option<Vec<Mode>>,
    /// Times that everything is run; medians are shown [default: 6].
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// End after so many seconds with the repetitions that are complete [default: 300].
    #[arg(long, value_name = "S", value_parser = time_limit)]
    time_limit: Option<Duration>,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
}

/// Measures and shows.
///
/// # Errors
/// Settings that make no sense; what the operating system refuses.
pub fn run(arguments: &FragmentsArguments) -> Result<(), Failure> {
    let settings = arguments.settings();
    settings.check()?;
    let report = {
        let watch = Watch::over("runs", settings.runs());
        measure_fragments(&settings, &mut |step| {
            watch.see(step.done, step.total, &step.name);
        })?
    };
    output::print(&if arguments.json {
        fragments::json_lines(&report)
    } else {
        fragments::table(&report)
    })
}

impl FragmentsArguments {
    fn settings(&self) -> FragmentsSettings {
        let usual = FragmentsSettings::default();
        FragmentsSettings {
            threads: self.threads.clone().unwrap_or(usual.threads),
            fragments: self.fragments.unwrap_or(usual.fragments),
            sizes: self.size.clone().unwrap_or(usual.sizes),
            iterations: self.iterations.unwrap_or(usual.iterations),
            write_share: self.write_share.unwrap_or(usual.write_share),
            modes: self.modes.clone().unwrap_or(usual.modes),
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            time_limit: self.time_limit.unwrap_or(usual.time_limit),
        }
    }
}
