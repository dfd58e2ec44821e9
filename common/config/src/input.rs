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
    text_of(read_bytes(path, MOST_TEXT)?)
}

/// The bytes in the file at `path`, of which there may be `most`.
///
/// # Errors
/// It cannot be read, or is larger than that.
pub fn read_bytes(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    // The length of a pipe or of a file in /proc is 0, whatever is in it.
    match file.metadata()?.len() > most {
        true => Err(too_large(most)),
        false => bytes_of(file, most),
    }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

fn bytes_of(file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large(most)),
        false => Ok(bytes),
    }
}

fn too_large(most: u64) -> io::Error {
    let what = format!("it has more than {} MB", most >> 20);
    io::Error::new(ErrorKind::FileTooLarge, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_end_is_read_up_to_the_limit() {
        let error = bytes_of(io::repeat(b'#'), MOST_TEXT).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 64 MB");
        let error = read_bytes("/dev/zero", 2 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 2 MB");
    }

    #[test]
    fn what_has_the_limit_is_read() {
        let bytes = bytes_of(io::repeat(b'#').take(MOST_TEXT), MOST_TEXT).unwrap();
        assert_eq!(bytes.len() as u64, MOST_TEXT);
    }

    #[test]
    fn what_is_no_text_is_said_to_be_none() {
        let error = text_of(b"a\xff".to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
