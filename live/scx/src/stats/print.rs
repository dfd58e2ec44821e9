//! `--stats-json`.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::state::State;
use crate::stats::Statistics;
use crate::stop::Stop;

/// Prints the statistics once, or a line of them every so many seconds until it is stopped or nobody reads any more.
pub fn print(every: Option<f64>) -> anyhow::Result<ExitCode> {
    let Some(seconds) = every else {
        put(&serde_json::to_string_pretty(&Statistics::of(
            &State::read()?,
        ))?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let stop = Stop::at_signals(None)?;
    loop {
        let line = serde_json::to_string(&Statistics::of(&State::read()?))?;
        if !put(&line)? || stop.within(Duration::from_secs_f64(seconds)) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Prints a line; false when nobody reads any more.
fn put(line: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}
