//! `warmq compare`: two recordings, switch by switch.

use clap::Args;
use warmq_metrics::compare::{Extent, compare};
use warmq_units::{CpuId, Duration, Instant};

use crate::compare::{self, Compared};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  warmq run mine.toml --world guest --kernel 6.18 --trace kernel.trace
  warmq run mine.toml --scheduler eevdf-6.18 --trace lab.trace
  warmq compare lab.trace kernel.trace
  warmq compare lab.trace kernel.trace --cpu 1 --from 200ms --json | jq .first_difference";

/// Compare two recordings of a scenario, switch by switch.
///
/// Each CPU's switches are taken as a sequence of who was switched to, who ran before, and whether
/// that one slept or was preempted. Tasks are the same if they are the same ones of the scenario;
/// others (kernel threads), and idling, are left out. Shown are how many switches agree, the first
/// that does not, with who could run then, and the figures of both.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A recording that `warmq run --trace` wrote.
    #[arg(value_name = "A")]
    a: String,
    /// Another.
    #[arg(value_name = "B")]
    b: String,
    /// Compare the switches of this CPU only.
    #[arg(long, value_name = "N")]
    cpu: Option<u16>,
    /// Begin at this time of the recordings.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a switch differs.
    #[arg(long)]
    strict: bool,
}

/// Reads both, and shows how they differ.
///
/// # Errors
/// A file that cannot be read or compared; a difference, if `--strict` was given.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let extent = Extent {
        cpu: arguments.cpu.map(CpuId),
        from: from(arguments.from.as_deref())?,
    };
    let names = [arguments.a.as_str(), arguments.b.as_str()];
    let (a, b) = (compare::read(names[0])?, compare::read(names[1])?);
    let comparison = &compare([&a, &b], extent)
        .map_err(|(index, why)| Failure::usage(format!("{}: {why}", names[index]), ""))?;
    let compared = Compared {
        names,
        both: [&a, &b],
        comparison,
    };
    match arguments.json {
        true => output::print_json(&compare::json(&compared))?,
        false => output::print(&compare::text(&compared))?,
    }
    match arguments.strict && !comparison.agrees() {
        true => Err(Failure::Judged(Exit::ClaimFailed)),
        false => Ok(()),
    }
}

fn from(text: Option<&str>) -> Result<Instant, Failure> {
    let Some(text) = text else {
        return Ok(Instant::START);
    };
    let span: Duration = text.parse().map_err(|_| {
        Failure::usage(
            "--from: this is no time",
            "write when to begin, as in 200ms",
        )
    })?;
    Ok(Instant::START + span)
}
