//! Where the monitor draws: the whole terminal, or plain lines.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::{cursor, execute, terminal};

use super::GLANCE;
use crate::say::put;

/// How many lines to print where there is no terminal.
const PLAIN_ROWS: usize = 40;

/// A terminal, which is restored when this is dropped, or plain lines.
pub struct Screen {
    interactive: bool,
}

impl Screen {
    /// A terminal if there is one.
    pub fn open() -> Screen {
        let both = io::stdout().is_terminal() && io::stdin().is_terminal();
        let interactive = both && terminal::enable_raw_mode().is_ok();
        let screen = Screen { interactive };
        if interactive {
            // If this fails, the picture is only less pretty.
            let _ = execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide);
        }
        screen
    }

    /// How many lines there is room for.
    pub fn rows(&self) -> usize {
        match terminal::size() {
            Ok((_, rows)) if self.interactive && rows > 0 => usize::from(rows),
            _ => PLAIN_ROWS,
        }
    }

    /// Shows a text in place of the one before, or below it; false if the reader is gone.
    pub fn show(&mut self, text: &str) -> io::Result<bool> {
        if !self.interactive {
            return put(&format!("{text}\n\n"));
        }
        execute!(
            io::stdout(),
            cursor::MoveTo(0, 0),
            terminal::Clear(terminal::ClearType::All)
        )?;
        put(&text.replace('\n', "\r\n"))
    }

    /// Waits for so long. True if it should end: `stopped` says so, or somebody pressed q, Escape
    /// or Ctrl-C.
    pub fn asked_to_end(&self, time: Duration, stopped: impl Fn(Duration) -> bool) -> bool {
        if !self.interactive {
            return stopped(time);
        }
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if stopped(Duration::ZERO) || key_to_end(left.min(GLANCE)) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.interactive {
            let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
            let _ = terminal::disable_raw_mode();
        }
    }
}

fn key_to_end(wait: Duration) -> bool {
    if !poll(wait).unwrap_or(false) {
        return false;
    }
    let Ok(Event::Key(key)) = read() else {
        return false;
    };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
