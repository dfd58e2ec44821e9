//! Names that other people chose, as they can be shown.
//!
//! A process may call itself anything: a sequence that moves the terminal's cursor, a second line,
//! text that runs from right to left. Whatever shows such a name shows it by [`printable`].

use std::ffi::OsStr;
use std::fmt::{self, Write};

/// A name of others, which shows what cannot be printed as an escape.
///
/// - control characters, and those that show nothing but change what is beside them (Unicode's Cc,
///   Cf, Zl and Zp), as JSON writes them: `\n`, `\u001b`. So what is escaped in JSON is still JSON;
/// - bytes that are not UTF-8 as `\xff`.
///
/// What is printable stays as it is, backslashes too: an escaped name that is escaped again is the
/// same.
#[derive(Clone, Copy)]
pub struct Printable<'n>(&'n [u8]);

/// `name`, a text or a path, as it can be shown.
///
/// ```
/// use warmq_units::printable;
/// assert_eq!(printable("sh\u{1b}[2J\r\nwarmq: all is well").to_string(), r"sh\u001b[2J\r\nwarmq: all is well");
/// assert_eq!(printable("Käse 东京 \\").to_string(), "Käse 东京 \\");
/// ```
pub fn printable<N: AsRef<OsStr> + ?Sized>(name: &N) -> Printable<'_> {
    Printable(name.as_ref().as_encoded_bytes())
}

impl Printable<'_> {
    /// Whether nothing has to be escaped.
    pub fn is_plain(&self) -> bool {
        std::str::from_utf8(self.0).is_ok_and(|text| text.chars().all(is_printable))
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                show(letter, &mut text)?;
            }
            for byte in chunk.invalid() {
                write!(text, "\\x{byte:02x}")?;
            }
        }
        // Widths count what is shown.
        formatter.pad(&text)
    }
}

impl fmt::Debug for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

fn show(letter: char, text: &mut String) -> fmt::Result {
    match letter {
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        letter if is_printable(letter) => text.push(letter),
        letter => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(text, "\\u{unit:04x}")?;
            }
        }
    }
    Ok(())
}

/// Characters that direct how others are shown, or show nothing: Unicode's Cf without those that
/// are visible (signs before Arabic numbers), Zl and Zp.
const DIRECTING: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e007f}'),
];

/// Whether a character shows itself and nothing else.
pub fn is_printable(letter: char) -> bool {
    let directs = |(first, last): &(char, char)| (*first..=*last).contains(&letter);
    !letter.is_control() && (letter.is_ascii() || !DIRECTING.iter().any(directs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_directs_a_terminal_or_shows_nothing_is_escaped() {
        let cases = [
            ("\u{1b}]0;title\u{7}", r"\u001b]0;title\u0007"),
            ("\u{9b}31m", r"\u009b31m"),
            ("a\u{202e}b", r"a\u202eb"),
            ("zero\u{200b}width", r"zero\u200bwidth"),
            ("\u{e0041}", r"\udb40\udc41"),
            ("a\tb\n", r"a\tb\n"),
            ("\u{7f}", r"\u007f"),
        ];
        for (name, shown) in cases {
            assert_eq!(printable(name).to_string(), shown);
            assert!(!printable(name).is_plain());
            assert!(printable(shown).is_plain(), "{shown}");
        }
        assert_eq!(
            format!("{:>4}|{:<8}|", printable("a"), printable("\u{1b}")),
            r"   a|\u001b  |"
        );
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_shown_by_their_number() {
        use std::os::unix::ffi::OsStrExt;
        let name = OsStr::from_bytes(b"a\xff\xc3\xa4\n");
        assert_eq!(printable(name).to_string(), "a\\xff\u{e4}\\n");
    }
}
