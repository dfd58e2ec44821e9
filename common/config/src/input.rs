//! Files that people give, read up to a size.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes of the largest text that is read, 64 MB. What it becomes takes ten times as much memory.
pub const MOST_TEXT: u64 = 64 << 20;

/// The text in the file at `path`, which may be a pipe or a device without end.
///
/// # Errors
/// It cannot be read, is no UTF-8, or is larger than [`MOST_TEXT`].
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    text_of(File::open(path)?)
}

fn text_of(file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_TEXT {
        let what = format!("it has more than {} MB", MOST_TEXT >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_end_is_read_up_to_the_limit() {
        let error = text_of(io::repeat(b'#')).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 64 MB");
    }

    #[test]
    fn a_text_of_the_limit_is_read() {
        let text = text_of(io::repeat(b'#').take(MOST_TEXT)).unwrap();
        assert_eq!(text.len() as u64, MOST_TEXT);
    }

    #[test]
    fn what_is_no_text_is_said_to_be_none() {
        let error = text_of(&b"a\xff"[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
