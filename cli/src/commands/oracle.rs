//! `warmq oracle`: how far schedules are from the optimum.

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::failure::Failure;
use crate::oracle::{self, Drawn};

const EXAMPLES: &str = "\
Examples:
  warmq oracle example                     the paper's worked example, drawn
  warmq oracle mine.toml --json | jq .optimum.end
  warmq oracle --random 1000               how far the online algorithm is from the optimum
  warmq oracle --random 1000 --cpus 2 --tasks 8 --fragments 3 --seed 7
  warmq oracle --random 1 --seed 371       one of these instances, drawn";

/// Say how far scheduling by data affinity is from the optimum, exactly.
///
/// A file has tasks, the fragments of data that they use, and what a cache costs to fill and to
/// write back (docs/affinity.md). Shown are the orders that it gives, what the online algorithm of
/// the affinity scheduler makes of it, and the schedule that ends first of all. Instances must be
/// small: some dozens of runs on two CPUs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A file, or one that comes with warmq: example, bins, changes.
    #[arg(value_name = "FILE", required_unless_present = "random")]
    file: Option<String>,
    /// Draw N small instances instead, and show how the gap is distributed.
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    random: Option<u64>,
    /// The seed of the first; each further one has the next [default: 1].
    #[arg(long, value_name = "SEED", conflicts_with = "file")]
    seed: Option<u64>,
    /// CPUs of each [default: 2 or 3].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=4))]
    cpus: Option<u64>,
    /// Tasks of each, beside one that may run first [default: 2 to 10].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=16))]
    tasks: Option<u64>,
    /// Fragments of each [default: 1 to 4].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=16))]
    fragments: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Reads or draws, solves, shows.
///
/// # Errors
/// A file with something wrong in it; drawn instances that are too large.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.file {
        Some(file) => oracle::file(file, arguments.json),
        None => oracle::drawn(&drawn(arguments), arguments.json),
    }
}

fn drawn(arguments: &Arguments) -> Drawn {
    Drawn {
        count: arguments.random.unwrap_or(1),
        seed: arguments.seed.unwrap_or(1),
        cpus: arguments.cpus,
        tasks: arguments.tasks,
        fragments: arguments.fragments,
    }
}
