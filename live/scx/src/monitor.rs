//! `--monitor`: what a running scheduler did since the last look, redrawn every interval.

mod picture;
mod screen;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use warmq_units::printable;

use crate::say;
use crate::state::State;
use crate::stats::Look;
use crate::stop::Stop;
use screen::Screen;

const GLANCE: Duration = Duration::from_millis(100);

/// Shows a running scheduler until this is stopped or the scheduler has ended.
pub fn run(seconds: f64) -> anyhow::Result<ExitCode> {
    let every = Duration::from_secs_f64(seconds);
    let stop = Stop::at_signals(None)?;
    let mut before = Look::at(&State::read()?);
    let mut screen = Screen::open();
    loop {
        if screen.asked_to_end(every, |time| stop.within(time)) {
            return Ok(ExitCode::SUCCESS);
        }
        let Some(state) = State::read_again(&stop)? else {
            return Ok(ExitCode::SUCCESS);
        };
        let now = Look::at(&state);
        if !draw(&mut screen, &before, &now)? {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

/// False if the reader is gone.
fn draw(screen: &mut Screen, before: &Look, now: &Look) -> io::Result<bool> {
    screen.show(&text(before, now, screen.rows()))
}

fn text(before: &Look, now: &Look, rows: usize) -> String {
    picture::draw(&now.since(before), rows, &name_of)
}

/// `--stats`: prints the same every so many seconds, as plain lines, beside the scheduler of this
/// process and until that ends.
pub fn beside(seconds: f64) {
    let every = Duration::from_secs_f64(seconds);
    let print = move || {
        let mut before = loop {
            // It may be loading still.
            match State::read() {
                Ok(state) => break Look::at(&state),
                Err(_) => thread::sleep(GLANCE),
            }
        };
        loop {
            thread::sleep(every);
            let Ok(state) = State::read() else {
                continue;
            };
            let now = Look::at(&state);
            if !say::line(&text(&before, &now, usize::MAX)) {
                return;
            }
            before = now;
        }
    };
    // The scheduler works without it.
    if let Err(error) = thread::Builder::new().spawn(print) {
        say::error(&format!("no statistics: cannot start a thread: {error}"));
    }
}

/// The name of a process.
fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(printable(OsStr::from_bytes(name.trim_ascii_end())).to_string())
}
