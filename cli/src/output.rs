//! Standard output and what the terminal can show. Results go to standard output, everything else
//! to standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size_of};
use warmq_report::{Terminal, Versioned};
use warmq_units::{is_printable, printable};

use crate::failure::Failure;

/// Columns where there is no terminal to ask.
const WIDTH_OF_A_FILE: u16 = 120;
/// Columns below which a table is no table; a terminal that narrow wraps lines by itself.
const LEAST_WIDTH: u16 = 60;

/// What standard output can show.
pub fn results() -> Terminal {
    shown_by(&io::stdout())
}

/// What standard error can show.
pub fn messages() -> Terminal {
    shown_by(&io::stderr())
}

/// See <https://no-color.org>: any value but an empty one turns colors off.
fn shown_by(stream: &(impl AsFd + IsTerminal)) -> Terminal {
    let width = terminal_size_of(stream).map(|(Width(columns), _)| columns);
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    Terminal {
        width: width.unwrap_or(WIDTH_OF_A_FILE).max(LEAST_WIDTH),
        colors: stream.is_terminal() && !refused && !dumb,
        all: true,
    }
}

/// Values as lines of JSON.
///
/// # Errors
/// A number that JSON does not have.
pub fn lines_of<T: serde::Serialize>(
    values: impl IntoIterator<Item = T>,
) -> Result<String, Failure> {
    let lines = values.into_iter().map(|value| json_of(&value));
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// Writes `text` and an end of line to standard output.
///
/// # Errors
/// When standard output refuses.
pub fn print(text: &str) -> Result<(), Failure> {
    let text = shown(text, results().colors);
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

/// Prints `value` as JSON.
///
/// # Errors
/// When standard output refuses.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&json_of(value)?)
}

/// `value` as JSON.
///
/// # Errors
/// A number or a key that JSON does not have.
pub fn json_of(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(&Versioned::of(value));
    text.map_err(|error| Failure::System("write JSON".to_owned(), error.to_string()))
}

/// Writes a message to standard error; if that fails, nothing changes.
pub fn say(text: &str) {
    let text = shown(text, messages().colors);
    let _ = writeln!(io::stderr(), "{text}");
}

/// `text` as a terminal may have it: lines, and our own colors where it shows any. Names are
/// escaped where they are put into sentences and tables; nothing that was forgotten there gets past
/// here. JSON stays JSON: what is escaped in it is within its strings, and escaped as JSON does.
fn shown(text: &str, colors: bool) -> Cow<'_, str> {
    if text
        .chars()
        .all(|letter| letter == '\n' || is_printable(letter))
    {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let color = if colors { color(rest) } else { 0 };
        let (length, kept) = match letter {
            '\u{1b}' if color > 0 => (color, true),
            '\n' => (1, true),
            letter => (letter.len_utf8(), false),
        };
        let (part, after) = rest.split_at(length);
        match kept {
            true => clean.push_str(part),
            false => clean.push_str(&printable(part).to_string()),
        }
        rest = after;
    }
    Cow::Owned(clean)
}

/// How many bytes the sequence takes that sets colors (`ESC [ 1 ; 33 m`) and that `text` begins
/// with; 0 if it begins with none.
fn color(text: &str) -> usize {
    let numbers = text.strip_prefix("\u{1b}[").unwrap_or_default();
    let numbers = numbers
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b';');
    let end = 2 + numbers.count();
    match text.as_bytes().get(end) {
        Some(b'm') => end + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_and_our_colors_reach_a_terminal() {
        let text = "\u{1b}[1;33mname\u{1b}[0m\n\u{1b}[2J\u{1b}]0;x\u{7}\r\u{9b}m";
        let clean = r"\u001b[2J\u001b]0;x\u0007\r\u009bm";
        assert_eq!(
            shown(text, true),
            format!("\u{1b}[1;33mname\u{1b}[0m\n{clean}")
        );
        let plain = r"\u001b[1;33mname\u001b[0m";
        assert_eq!(shown(text, false), format!("{plain}\n{clean}"));
        let json = serde_json::json!({"name": "\u{7f}\u{202e}\n"}).to_string();
        assert_eq!(shown(&json, false), r#"{"name":"\u007f\u202e\n"}"#);
    }
}
