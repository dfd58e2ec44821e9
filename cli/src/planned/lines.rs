//! Lines of an input that may have no end.

use std::io::{self, BufRead, ErrorKind, Read};

/// Bytes of the longest line that is read, 16 MB: a run has a few thousand figures.
const LONGEST: u64 = 16 << 20;

/// The lines of `from`, without their ends. A longer line than [`LONGEST`] is an error.
pub fn lines<R: BufRead>(mut from: R) -> impl Iterator<Item = io::Result<String>> {
    std::iter::from_fn(move || line(&mut from).transpose())
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = from.take(LONGEST + 1).read_until(b'\n', &mut line)?;
    if read as u64 > LONGEST {
        let what = format!("a line has more than {} MB", LONGEST >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8");
    let line = String::from_utf8(line).map_err(no_text)?;
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_the_last_needs_none() {
        let read: Vec<String> = lines(&b"one\n\ntwo"[..]).map(Result::unwrap).collect();
        assert_eq!(read, ["one", "", "two"]);
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let error = lines(BufReader::new(io::repeat(b'x')))
            .next()
            .unwrap()
            .unwrap_err();
        assert_eq!(error.to_string(), "a line has more than 16 MB");
    }
}
