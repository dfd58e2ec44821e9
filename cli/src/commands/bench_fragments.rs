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
/// Thread i belongs to fragment i modulo the number of fragments. It increments (or reads) random
/// numbers of an array that the threads of its fragment share, a fixed number of times. In mode
/// plain, the scheduler chooses where it runs; in mode bound, it is bound to one CPU, by the number
/// of its fragment modulo the CPUs; in mode hinted, it names its fragment by a hint. Each
/// repetition runs all modes in turn and compares them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FragmentsArguments {
    /// Numbers of threads, each of them measured [default: 8,32].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Option<Vec<u32>>,
    /// Number of fragments [default: 4].
    #[arg(long, value_name = "N")]
    fragments: Option<u32>,
    /// Sizes of a fragment in 32-bit numbers, each of them measured [default: 1000,8000,20000].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    size: Option<Vec<u32>>,
    /// Accesses of each thread [default: 8000000].
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Percentage of accesses that increment; the others read [default: 100].
    #[arg(long, value_name = "PERCENT")]
    write_share: Option<u32>,
    /// The modes to measure [default: plain,bound,hinted].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Option<Vec<Mode>>,
    /// How often everything is measured; the medians are shown [default: 6].
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Stop after S seconds and show the repetitions that are complete [default: 300].
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
