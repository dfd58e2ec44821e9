//! Blocks that a user names.

use std::str::FromStr;

use warmq_units::Bytes;

use crate::error::ConflictsError;
use crate::layout::{Kind, Layout};

/// More blocks than any cache has lines.
const MOST: u64 = 1 << 20;

/// `ADDRESS,STRIDE,COUNT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserBlocks {
    start: u64,
    stride: u64,
    count: u64,
}

/// `NAME,STRIDE` or `NAME,STRIDE,COUNT`: an array by the name of its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSymbol {
    /// The symbol.
    pub name: String,
    stride: u64,
    count: Option<u64>,
}

impl UserBlocks {
    /// `count` blocks, one every `stride` bytes from `start` on.
    ///
    /// # Errors
    /// No blocks, too many, no distance, or an end that is no address.
    pub fn new(start: u64, stride: u64, count: u64) -> Result<UserBlocks, ConflictsError> {
        if stride == 0 {
            let fix = "give the bytes from one block to the next, such as 16KB";
            return Err(ConflictsError::input("a stride of 0 is no distance", fix));
        }
        if count == 0 || count > MOST {
            let fix = format!("give a number from 1 to {MOST}");
            return Err(ConflictsError::input(format!("{count} blocks"), fix));
        }
        let end = stride
            .checked_mul(count)
            .and_then(|size| start.checked_add(size));
        if end.is_none() {
            let what = "the last block lies beyond all addresses";
            let fix = "give a smaller stride or count";
            return Err(ConflictsError::input(what, fix));
        }
        Ok(UserBlocks {
            start,
            stride,
            count,
        })
    }

    /// Where they begin.
    pub fn layout(self) -> Layout {
        let starts = (0..self.count).map(|index| self.start + index * self.stride);
        Layout::new(Kind::Blocks, starts.collect())
    }
}

impl UserSymbol {
    /// The blocks in the symbol at `start` that has `size` bytes.
    ///
    /// # Errors
    /// Those of [`UserBlocks::new`]; a symbol without a size, where no count was given.
    pub fn blocks(&self, start: u64, size: u64) -> Result<UserBlocks, ConflictsError> {
        let by_size = size / self.stride.max(1);
        if self.count.is_none() && by_size == 0 {
            let what = format!("symbol {} has {size} bytes, less than a block", self.name);
            let fix = "give the number of blocks as well: NAME,STRIDE,COUNT";
            return Err(ConflictsError::input(what, fix));
        }
        UserBlocks::new(start, self.stride, self.count.unwrap_or(by_size))
    }
}

impl FromStr for UserBlocks {
    type Err = String;

    fn from_str(text: &str) -> Result<UserBlocks, String> {
        let words: Vec<&str> = text.split(',').collect();
        let [start, stride, count] = words[..] else {
            return Err("write ADDRESS,STRIDE,COUNT, as in 0x7f0000000000,16KB,4096".to_owned());
        };
        let blocks = UserBlocks::new(address(start)?, size(stride)?, number(count)?);
        blocks.map_err(|error| error.to_string())
    }
}

impl FromStr for UserSymbol {
    type Err = String;

    fn from_str(text: &str) -> Result<UserSymbol, String> {
        let words: Vec<&str> = text.split(',').collect();
        let (name, stride, count) = match words[..] {
            [name, stride] if !name.is_empty() => (name, stride, None),
            [name, stride, count] if !name.is_empty() => (name, stride, Some(number(count)?)),
            _ => return Err("write NAME,STRIDE or NAME,STRIDE,COUNT, as in slots,4KB".to_owned()),
        };
        let stride = size(stride)?;
        let usual = UserBlocks::new(0, stride, count.unwrap_or(1));
        usual.map_err(|error| error.to_string())?;
        Ok(UserSymbol {
            name: name.to_owned(),
            stride,
            count,
        })
    }
}

fn size(text: &str) -> Result<u64, String> {
    let size = text.parse::<Bytes>();
    size.map(|size| size.0).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<u64, String> {
    let number = text.parse();
    number.map_err(|_| format!("`{text}` is no number of blocks; write it as 4096"))
}

/// An address, decimal or with 0x before it.
pub(crate) fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no address; write it as 0x7f0000000000"))
}
