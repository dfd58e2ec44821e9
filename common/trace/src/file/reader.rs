//! Reads records from a file, which may be damaged in any way.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use thiserror::Error;
use warmq_units::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::writer::varint;
use super::{END, FIRST_VERSION, MAGIC, VERSION};
use crate::words::{MOST, WORDS_OF, Words};
use crate::{Digest, Header, Record};

/// What is wrong with a trace file, and where.
#[derive(Debug, Error)]
#[error("{damage} (byte {offset}, after {records} whole records)")]
pub struct ReadError {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// How many records were read correctly before it.
    pub records: u64,
    /// What is wrong, and how to fix it.
    pub damage: Damage,
}

/// What can be wrong with a trace file; each message says how to fix it.
#[derive(Debug, Error)]
pub enum Damage {
    /// The file does not begin with the header of a trace.
    #[error("this is no recording of WarmQ")]
    NotATrace,
    /// The file has another version of the format.
    #[error(
        "the trace is of format {version}, and this WarmQ reads {FIRST_VERSION} to {VERSION}; read \
             it with the WarmQ that wrote it, or record it again"
    )]
    Version {
        /// The file's version.
        version: u8,
    },
    /// The file ends before its end mark.
    #[error("the trace is cut off; copy it again, or record it again and let the run finish")]
    CutOff,
    /// No record has this kind.
    #[error("no record is of kind {kind}; the file is damaged, copy or record it again")]
    Kind {
        /// The kind found.
        kind: u8,
    },
    /// A record of this kind has a field that is out of range.
    #[error(
        "a record of kind {kind} has a field out of its range; the file is damaged, copy or \
             record it again"
    )]
    Field {
        /// The record's kind.
        kind: u8,
    },
    /// A number is longer than 64 bits.
    #[error("a number is longer than 64 bits; the file is damaged, copy or record it again")]
    Number,
    /// The record count at the end of the file is wrong.
    #[error(
        "the file should have {expected} records and has not; it is damaged, copy or \
             record it again"
    )]
    Count {
        /// What the file says.
        expected: u64,
    },
    /// The digest at the end of the file is wrong.
    #[error(
        "the records have the digest {found:016x}, and the file says {expected:016x}; it is \
             damaged, copy or record it again"
    )]
    Digest {
        /// What the file says.
        expected: u64,
        /// The digest of its records.
        found: u64,
    },
    /// The header is not what was written.
    #[error("the header of the trace is damaged; copy or record it again")]
    Header,
    /// There are bytes after the end mark.
    #[error("bytes follow the end of the trace; cut them off, or copy the file again")]
    Surplus,
    /// The file could not be read.
    #[error("the trace cannot be read: {0}; see that the file is there and yours to read")]
    Io(io::Error),
}

/// Reads a trace: an iterator of times and records. It ends after the end mark, whose count and
/// digest it has checked by then, or after its first error.
#[derive(Debug)]
pub struct Reader<R: Read> {
    // Invariant: `offset` is how many bytes were taken from `from`.
    from: BufReader<R>,
    offset: u64,
    before: Instant,
    header: Header,
    /// Of all records, which the end of the file has, too.
    sum: Digest,
    /// That of the run.
    digest: Digest,
    ended: bool,
}

/// The longest text of a header that is believed, in bytes.
const LONGEST_TEXT: u64 = 1 << 16;
/// Bytes of the largest header: it names the tasks, spans and counters of a scenario.
const MOST_ABOUT: usize = 64 << 20;

impl<R: Read> Reader<R> {
    /// Starts to read. The reader does its own buffering.
    ///
    /// # Errors
    /// [`Damage::NotATrace`], [`Damage::Version`] or [`Damage::Io`].
    pub fn new(from: R) -> Result<Reader<R>, ReadError> {
        let mut reader = Reader {
            from: BufReader::new(from),
            offset: 0,
            before: Instant::START,
            header: Header::default(),
            sum: Digest::new(),
            digest: Digest::new(),
            ended: false,
        };
        match reader.begin() {
            Ok(()) => Ok(reader),
            Err(damage) => Err(reader.error(damage)),
        }
    }

    /// What the trace is of; empty for a file of the first format.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many bytes were read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The digest of the run as far as it was read: without records in detail.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    fn error(&self, damage: Damage) -> ReadError {
        ReadError {
            offset: self.offset,
            records: self.sum.seen(),
            damage,
        }
    }

    fn begin(&mut self) -> Result<(), Damage> {
        for expected in MAGIC {
            match self.byte() {
                Ok(found) if found == expected => {}
                Ok(_) | Err(Damage::CutOff) => return Err(Damage::NotATrace),
                Err(damage) => return Err(damage),
            }
        }
        match self.byte()? {
            FIRST_VERSION => Ok(()),
            VERSION => self.describe(),
            version => Err(Damage::Version { version }),
        }
    }

    fn describe(&mut self) -> Result<(), Damage> {
        let mut bytes = Vec::new();
        let facts = self.varint_into(&mut bytes)?;
        for _ in 0..facts {
            let key = self.text_into(&mut bytes)?;
            let value = self.text_into(&mut bytes)?;
            if bytes.len() > MOST_ABOUT {
                return Err(Damage::Header);
            }
            self.header.learn(&key, &value);
        }
        let expected = self.eight_bytes()?;
        match xxh3_64(&bytes) == expected {
            true => Ok(()),
            false => Err(Damage::Header),
        }
    }

    fn varint_into(&mut self, bytes: &mut Vec<u8>) -> Result<u64, Damage> {
        let word = self.varint()?;
        bytes.extend(varint(word));
        Ok(word)
    }

    fn text_into(&mut self, bytes: &mut Vec<u8>) -> Result<String, Damage> {
        let length = self.varint_into(bytes)?;
        if length > LONGEST_TEXT {
            return Err(Damage::Header);
        }
        let text: Vec<u8> = (0..length).map(|_| self.byte()).collect::<Result<_, _>>()?;
        bytes.extend(&text);
        String::from_utf8(text).map_err(|_| Damage::Header)
    }

    fn eight_bytes(&mut self) -> Result<u64, Damage> {
        let mut bytes = [0; 8];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    fn entry(&mut self) -> Result<Option<(Instant, Record)>, Damage> {
        let kind = self.byte()?;
        if kind == END {
            return self.end().map(|()| None);
        }
        let Some(used) = WORDS_OF.get(usize::from(kind)).copied() else {
            return Err(Damage::Kind { kind });
        };
        let at = Instant(self.before.0.wrapping_add(unzigzag(self.varint()?)));
        let mut words = Words {
            kind,
            used,
            words: [0; MOST],
        };
        for place in 0..usize::from(used) {
            words.words[place] = self.varint()?;
        }
        let record = words.to_record().ok_or(Damage::Field { kind })?;
        self.before = at;
        self.sum.fold(at, &words);
        if !record.is_detail() {
            self.digest.fold(at, &words);
        }
        Ok(Some((at, record)))
    }

    fn end(&mut self) -> Result<(), Damage> {
        let expected = self.varint()?;
        if expected != self.sum.seen() {
            return Err(Damage::Count { expected });
        }
        let (expected, found) = (self.eight_bytes()?, self.sum.value());
        if expected != found {
            return Err(Damage::Digest { expected, found });
        }
        match self.byte() {
            Err(Damage::CutOff) => Ok(()),
            Ok(_) => Err(Damage::Surplus),
            Err(damage) => Err(damage),
        }
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let mut word = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return Err(Damage::Number);
            }
            word |= part << shift;
            if byte < 0x80 {
                return Ok(word);
            }
        }
        Err(Damage::Number)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        loop {
            match self.from.fill_buf() {
                Ok([]) => return Err(Damage::CutOff),
                Ok([byte, ..]) => {
                    let byte = *byte;
                    self.from.consume(1);
                    self.offset += 1;
                    return Ok(byte);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Damage::Io(error)),
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<(Instant, Record), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.entry();
        self.ended = !matches!(entry, Ok(Some(_)));
        entry.map_err(|damage| self.error(damage)).transpose()
    }
}

/// The inverse of [`zigzag`](super::writer).
fn unzigzag(word: u64) -> u64 {
    word >> 1 ^ (word & 1).wrapping_neg()
}
