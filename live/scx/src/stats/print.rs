//! `--stats-json`.

use std::process::ExitCode;
use std::time::Duration;

use crate::say;
use crate::state::State;
use crate::stats::Statistics;
use crate::stop::Stop;

/// Prints the statistics once, or a line of them every so many seconds until it is stopped or
/// nobody reads any more.
pub fn print(every: Option<f64>) -> anyhow::Result<ExitCode> {
    let first = State::read()?;
    match every {
        None => say::put(&(serde_json::to_string_pretty(&Statistics::of(&first))? + "\n"))?,
        Some(seconds) => print_every(Duration::from_secs_f64(seconds), first)?,
    };
    Ok(ExitCode::SUCCESS)
}

fn print_every(interval: Duration, first: State) -> anyhow::Result<bool> {
    let stop = Stop::at_signals(None)?;
    let mut next = Some(first);
    while let Some(state) = next {
        let line = serde_json::to_string(&Statistics::of(&state))? + "\n";
        if !say::put(&line)? || stop.within(interval) {
            break;
        }
        next = State::read_again(&stop)?;
    }
    Ok(true)
}
