//! Standard output and what the terminal can show. Results go to standard output, everything else
//! to standard error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use terminal_size::{Width, terminal_size_of};
use warmq_report::Terminal;

use crate::failure::Failure;

/// Columns where there is no terminal to ask.
const WIDTH_OF_A_FILE: u16 = 120;
/// Columns below which a table is no table; a terminal that narrow wraps lines by itself.
const LEAST_WIDTH: u16 = 60;

/// What a stream of ours can show.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns.
    pub width: u16,
    /// Whether it shows colors.
    pub colors: bool,
}

impl Screen {
    /// Standard output.
    pub fn of_results() -> Screen {
        let stdout = io::stdout();
        let width = terminal_size_of(&stdout).map(|(Width(columns), _)| columns);
        Screen::new(width, stdout.is_terminal())
    }

    /// Standard error.
    pub fn of_messages() -> Screen {
        let stderr = io::stderr();
        let width = terminal_size_of(&stderr).map(|(Width(columns), _)| columns);
        Screen::new(width, stderr.is_terminal())
    }

    /// See <https://no-color.org>: any value but an empty one turns colors off.
    fn new(width: Option<u16>, terminal: bool) -> Screen {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Screen {
            width: width.unwrap_or(WIDTH_OF_A_FILE).max(LEAST_WIDTH),
            colors: terminal && !refused && !dumb,
        }
    }

    /// The same for tables of results.
    pub fn terminal(self) -> Terminal {
        Terminal {
            width: self.width,
            colors: self.colors,
        }
    }
}

/// Writes `text` and an end of line to standard output.
///
/// # Errors
/// When standard output refuses.
pub fn print(text: &str) -> Result<(), Failure> {
    write(|out| writeln!(out, "{text}"))
}

/// Lets `writer` write to standard output. A reader that has closed it (`| head`) is not an
/// error: there may still be files to write, and there is an exit code.
///
/// # Errors
/// When standard output refuses for any other reason.
pub fn write(writer: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match writer(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::system("write to standard output", &error)),
    }
}

/// Writes a message to standard error; if that fails, nothing changes.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
