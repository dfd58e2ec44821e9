//! `--monitor`: what a running scheduler did since the last look, drawn again and again.

mod picture;
mod screen;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::state::{State, StateError};
use crate::stats::Statistics;
use crate::stop::Stop;
use screen::Screen;

/// How long a scheduler may be away while it restarts.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(100);

/// Shows a running scheduler until it is stopped, or there is none any more.
pub fn run(seconds: f64) -> anyhow::Result<ExitCode> {
    let every = Duration::from_secs_f64(seconds);
    let stop = Stop::at_signals(None)?;
    let mut before = look()?;
    let mut screen = Screen::open();
    loop {
        if screen.asked_to_end(every, |time| stop.within(time)) {
            return Ok(ExitCode::SUCCESS);
        }
        let Some(now) = look_again(&stop)? else {
            return Ok(ExitCode::SUCCESS);
        };
        if !draw(&mut screen, &before, &now)? {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

/// The statistics at a time.
struct Look {
    at: Instant,
    statistics: Statistics,
}

fn look() -> Result<Look, StateError> {
    let state = State::read()?;
    Ok(Look {
        at: Instant::now(),
        statistics: Statistics::of(&state),
    })
}

/// As [`look`], but a scheduler that restarts is waited for; nothing when it is time to stop.
fn look_again(stop: &Stop) -> Result<Option<Look>, StateError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match look() {
            Err(StateError::NotRunning(_) | StateError::Missing { .. })
                if Instant::now() < until => {}
            looked => return looked.map(Some),
        }
        if stop.within(GLANCE) {
            return Ok(None);
        }
    }
}

/// False when nobody reads any more.
fn draw(screen: &mut Screen, before: &Look, now: &Look) -> io::Result<bool> {
    let rates = picture::Interval {
        before: &before.statistics,
        now: &now.statistics,
        seconds: now.at.duration_since(before.at).as_secs_f64(),
    };
    let text = picture::draw(&rates, screen.rows(), &name_of);
    match screen.show(&text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

/// What a process calls itself.
fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Writes whole lines at once.
fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
