//! Writes the records of a run to a file.

use std::io::{self, Write};

use warmq_units::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::{END, MAGIC, VERSION};
use crate::words::{MOST, Words};
use crate::{Digest, Header, Observer, Record};

/// The most bytes of a record: one for its kind, and ten each for its time and for each word.
const LONGEST: usize = 1 + 10 * (1 + MOST);

/// Writes every record that it sees. The writer that it is given should be buffered.
///
/// An observer cannot fail, so the first error is kept, nothing is written after it, and
/// [`Writer::finish`] returns it. A file that was not finished cannot be read to its end.
///
/// ```
/// use warmq_trace::file::{Reader, Writer};
/// use warmq_trace::{Header, Observer, Record};
/// use warmq_units::{CpuId, Instant};
/// let recalculated = Record::Recalculate { cpu: CpuId(3) };
///
/// let mut writer = Writer::new(Vec::new(), &Header::default());
/// writer.see(Instant(70), &recalculated);
/// let bytes = writer.finish()?;
///
/// let mut reader = Reader::new(&bytes[..])?;
/// assert_eq!(reader.next().unwrap()?, (Instant(70), recalculated));
/// assert!(reader.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    // Invariant: once `failed` is set, nothing more is written to `to`.
    to: W,
    failed: Option<io::Error>,
    before: Instant,
    digest: Digest,
}

impl<W: Write> Writer<W> {
    /// Begins a file about what `header` says.
    pub fn new(to: W, header: &Header) -> Writer<W> {
        let mut writer = Writer {
            to,
            failed: None,
            before: Instant::START,
            digest: Digest::new(),
        };
        writer.write(&MAGIC);
        writer.write(&[VERSION]);
        writer.describe(header);
        writer
    }

    fn describe(&mut self, header: &Header) {
        let facts = header.facts();
        let mut bytes = varint(facts.len() as u64);
        for text in facts.iter().flat_map(|(key, value)| [*key, value.as_str()]) {
            bytes.extend(varint(text.len() as u64));
            bytes.extend(text.bytes());
        }
        self.write(&bytes);
        self.write(&xxh3_64(&bytes).to_le_bytes());
    }

    /// Ends the file, flushes it and returns the underlying writer.
    ///
    /// # Errors
    /// The first write error of the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        let mut end = Line::of(END);
        end.varint(self.digest.seen());
        self.write(end.bytes());
        self.write(&self.digest.value().to_le_bytes());
        match self.failed {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| self.to),
        }
    }

    /// The digest of the records seen so far.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(bytes).err();
        }
    }
}

impl<W: Write> Observer for Writer<W> {
    fn see(&mut self, at: Instant, record: &Record) {
        let words = Words::of(record);
        let mut line = Line::of(words.kind);
        line.varint(zigzag(at.0.wrapping_sub(self.before.0)));
        for word in &words.words[..usize::from(words.used)] {
            line.varint(*word);
        }
        self.write(line.bytes());
        self.before = at;
        self.digest.fold(at, &words);
    }
}

/// The bytes of one record.
struct Line {
    bytes: [u8; LONGEST],
    used: usize,
}

impl Line {
    fn of(kind: u8) -> Line {
        let mut line = Line {
            bytes: [0; LONGEST],
            used: 0,
        };
        line.push(kind);
        line
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    fn varint(&mut self, mut word: u64) {
        while word >= 0x80 {
            self.push(word as u8 | 0x80);
            word >>= 7;
        }
        self.push(word as u8);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

/// The bytes of `word`.
pub(super) fn varint(word: u64) -> Vec<u8> {
    let mut line = Line {
        bytes: [0; LONGEST],
        used: 0,
    };
    line.varint(word);
    line.bytes().to_vec()
}

/// Maps a signed difference to a word that is small when the difference is small.
fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    (signed << 1 ^ signed >> 63) as u64
}
