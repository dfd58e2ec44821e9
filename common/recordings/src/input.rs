//! Bytes of a file by their places.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use crate::damage::Damage;
use crate::order::Order;

/// A file of known length, which is read at any place. Copies are of the same file.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    from: Rc<Held>,
    length: u64,
    /// How many bytes were read so far, by all copies.
    read: Rc<Cell<u64>>,
}

/// Where the bytes are.
#[derive(Debug)]
enum Held {
    File(File),
    Memory(Vec<u8>),
}

impl Input {
    /// A file whose places can be read.
    pub fn of(file: File) -> io::Result<Input> {
        let length = file.metadata()?.len();
        Ok(Input {
            from: Rc::new(Held::File(file)),
            length,
            read: Rc::default(),
        })
    }

    /// These bytes.
    pub fn of_bytes(bytes: Vec<u8>) -> Input {
        Input {
            length: bytes.len() as u64,
            from: Rc::new(Held::Memory(bytes)),
            read: Rc::default(),
        }
    }

    /// Counts how many bytes are read from now on.
    pub fn counted(&self) -> Rc<Cell<u64>> {
        self.read.set(0);
        Rc::clone(&self.read)
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// So many bytes from `offset` on. None are reserved for those that are not there.
    pub fn bytes(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Damage> {
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > self.length)
        {
            let what = format!(
                "{bytes} bytes should follow, and the file has {}",
                self.length
            );
            return Err(Damage::at(offset, what));
        }
        let mut all = vec![0; bytes as usize];
        let read = self.read_at(offset, &mut all);
        read.map_err(|error| Damage::refused(offset, &error))?;
        Ok(all)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read
            .set(self.read.get().saturating_add(into.len() as u64));
        match &*self.from {
            Held::File(file) => {
                let mut file = file;
                file.seek(SeekFrom::Start(offset))?;
                file.read_exact(into)
            }
            Held::Memory(bytes) => {
                let from = usize::try_from(offset)
                    .ok()
                    .and_then(|from| bytes.get(from..));
                from.unwrap_or_default().read_exact(into)
            }
        }
    }

    /// A reader from `offset` to `end`, or to the end of the file if that comes first.
    pub fn from(&self, offset: u64, end: u64) -> Stream {
        Stream {
            input: self.clone(),
            offset,
            end: end.min(self.length),
            buffer: Vec::new(),
            at: 0,
        }
    }
}

/// What is wrong with a file that ends too early.
pub(crate) const CUT: &str = "the file ends here: it is cut off";

/// How much is read at once.
const PIECE: usize = 1 << 16;

/// Reads a file from a place on, in pieces.
#[derive(Debug)]
pub(crate) struct Stream {
    input: Input,
    // Where the next piece begins.
    offset: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Stream {
    /// Where the next byte is.
    pub fn offset(&self) -> u64 {
        self.offset - (self.buffer.len() - self.at) as u64
    }

    /// A reader of the next bytes alone, as far as they are there; they stay.
    pub fn within(&self, bytes: u64) -> Stream {
        let begin = self.offset();
        self.input
            .from(begin, begin.saturating_add(bytes).min(self.end))
    }

    /// How many bytes follow.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.offset())
    }

    /// The next bytes, which stay; fewer at the end.
    pub fn peek(&mut self, bytes: usize) -> Result<&[u8], Damage> {
        if self.buffer.len() - self.at < bytes && self.offset < self.end {
            self.fill(bytes)?;
        }
        let have = (self.buffer.len() - self.at).min(bytes);
        Ok(&self.buffer[self.at..self.at + have])
    }

    fn fill(&mut self, bytes: usize) -> Result<(), Damage> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        let wanted = bytes.max(PIECE) - before;
        let wanted = (wanted as u64).min(self.end - self.offset) as usize;
        self.buffer.resize(before + wanted, 0);
        let into = &mut self.buffer[before..];
        let read = self.input.read_at(self.offset, into);
        if let Err(error) = read {
            self.buffer.truncate(before);
            return Err(Damage::refused(self.offset, &error));
        }
        self.offset += wanted as u64;
        Ok(())
    }

    /// The next bytes, as many as were read at once; none at the end.
    pub fn ahead(&mut self) -> Result<&[u8], Damage> {
        if self.at == self.buffer.len() {
            self.peek(1)?;
        }
        Ok(&self.buffer[self.at..])
    }

    /// The next bytes, which are taken.
    pub fn take(&mut self, bytes: usize) -> Result<&[u8], Damage> {
        let offset = self.offset();
        if self.peek(bytes)?.len() < bytes {
            return Err(Damage::at(offset, CUT));
        }
        self.at += bytes;
        Ok(&self.buffer[self.at - bytes..self.at])
    }

    /// Passes over bytes that have to be there.
    pub fn pass(&mut self, bytes: u64) -> Result<(), Damage> {
        let left = self.left();
        self.skip(bytes);
        match bytes > left {
            true => Err(Damage::at(self.end, CUT)),
            false => Ok(()),
        }
    }

    /// Passes over bytes, as far as they are there.
    pub fn skip(&mut self, bytes: u64) {
        let have = (self.buffer.len() - self.at) as u64;
        match bytes <= have {
            true => self.at += bytes as usize,
            false => {
                self.offset = self.offset().saturating_add(bytes).min(self.end);
                self.buffer.clear();
                self.at = 0;
            }
        }
    }

    /// The next eight bytes as a number.
    pub fn long(&mut self, order: Order) -> Result<u64, Damage> {
        let bytes = self.take(8)?;
        Ok(order.long(bytes.try_into().expect("as many as asked for")))
    }

    /// The next four bytes as a number.
    pub fn word(&mut self, order: Order) -> Result<u32, Damage> {
        let bytes = self.take(4)?;
        Ok(order.word(bytes.try_into().expect("as many as asked for")))
    }

    /// The next two bytes as a number.
    pub fn half(&mut self, order: Order) -> Result<u16, Damage> {
        let bytes = self.take(2)?;
        Ok(order.half(bytes.try_into().expect("as many as asked for")))
    }

    /// The bytes up to the next zero, which is passed over; at most `most`.
    pub fn text(&mut self, most: usize) -> Result<String, Damage> {
        let offset = self.offset();
        let ahead = self.peek(most)?;
        let Some(length) = ahead.iter().position(|byte| *byte == 0) else {
            return Err(Damage::at(offset, "a text has no end here"));
        };
        let text = String::from_utf8_lossy(&ahead[..length]).into_owned();
        self.skip(length as u64 + 1);
        Ok(text)
    }

    /// A text whose length stands before it in eight bytes; at most `most` bytes.
    pub fn counted(&mut self, order: Order, most: u64) -> Result<String, Damage> {
        let offset = self.offset();
        let length = self.long(order)?;
        if length > most.min(self.left()) {
            let what = format!("a text of {length} bytes cannot follow here");
            return Err(Damage::at(offset, what));
        }
        Ok(String::from_utf8_lossy(self.take(length as usize)?).into_owned())
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ahead = self.peek(into.len().min(PIECE));
        let ahead = ahead.map_err(|damage| io::Error::other(damage.to_string()))?;
        let bytes = ahead.len();
        into[..bytes].copy_from_slice(ahead);
        self.at += bytes;
        Ok(bytes)
    }
}
