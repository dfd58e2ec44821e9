//! Numbers and texts as bytes, and back.

use thiserror::Error;

/// Bytes that are no recording.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("byte {at}: {why}; record it again")]
pub struct Damaged {
    /// Where reading failed.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

/// Bytes being written.
#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// The number of items, and each.
    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        put: impl Fn(&mut Writer, T),
    ) {
        self.number(items.len() as u64);
        items.for_each(|item| put(self, item));
    }
}

/// Bytes being read.
pub(crate) struct Reader<'a> {
    all: usize,
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            all: bytes.len(),
            left: bytes,
        }
    }

    /// That something is wrong here.
    pub fn damaged(&self, why: impl Into<String>) -> Damaged {
        Damaged {
            at: self.all - self.left.len(),
            why: why.into(),
        }
    }

    pub fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Damaged> {
        let Some((bytes, left)) = self.left.split_at_checked(bytes) else {
            return Err(self.damaged("the recording ends too early"));
        };
        self.left = left;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u64, Damaged> {
        let bytes = self.bytes(8)?.try_into().expect("8 bytes");
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number that is at most the maximum of its type.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Damaged> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.damaged(format!("{number} is out of range")))
    }

    pub fn counted(&mut self) -> Result<&'a [u8], Damaged> {
        let bytes = self.small()?;
        self.bytes(bytes)
    }

    pub fn text(&mut self) -> Result<String, Damaged> {
        let text = str::from_utf8(self.counted()?);
        text.map(str::to_owned)
            .map_err(|error| self.damaged(error.to_string()))
    }

    /// The items of a list. Nothing is reserved for items that are not there.
    pub fn list<T>(
        &mut self,
        take: impl Fn(&mut Reader<'a>) -> Result<T, Damaged>,
    ) -> Result<Vec<T>, Damaged> {
        let items = self.number()?;
        let mut list = Vec::new();
        for _ in 0..items {
            list.push(take(self)?);
        }
        Ok(list)
    }

    pub fn end(&self) -> Result<(), Damaged> {
        match self.left {
            [] => Ok(()),
            left => Err(self.damaged(format!("{} bytes too many", left.len()))),
        }
    }
}
