//! Sizes in bytes and physical addresses.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub u64);

/// A text that is not a size such as `64`, `32KB` or `1.5MB`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size; write it as 64, 32KB, 2MB or 16GB")]
pub struct ParseBytesError {
    text: String,
}

impl Bytes {
    /// A size of whole binary kilobytes (1024 bytes), as cache sizes are given.
    pub const fn from_kb(kb: u64) -> Bytes {
        Bytes(kb << 10)
    }

    /// A size of whole binary megabytes.
    pub const fn from_mb(mb: u64) -> Bytes {
        Bytes(mb << 20)
    }
}

impl Address {
    /// The offset within a page (or block) of `page` bytes, a power of two.
    #[inline]
    pub fn offset_in(self, page: Bytes) -> u64 {
        self.0 & (page.0 - 1)
    }
}

impl Add<u64> for Address {
    type Output = Address;
    #[inline]
    fn add(self, offset: u64) -> Address {
        Address(self.0 + offset)
    }
}

const UNITS: [(&str, u32); 4] = [("GB", 30), ("MB", 20), ("KB", 10), ("B", 0)];

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads a whole number of bytes, or one with a unit: `64`, `64B`, `32 KB`, `2MB`, `16GB`.
    ///
    /// ```
    /// use warmq_units::Bytes;
    /// assert_eq!("512KB".parse(), Ok(Bytes::from_kb(512)));
    /// assert!("12 apples".parse::<Bytes>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Bytes, ParseBytesError> {
        let error = || ParseBytesError {
            text: text.to_owned(),
        };
        let trimmed = text.trim().to_ascii_uppercase().replace("IB", "B");
        let (digits, shift) = UNITS
            .iter()
            .find_map(|(unit, shift)| Some((trimmed.strip_suffix(unit)?, *shift)))
            .unwrap_or((&trimmed, 0));
        let number: u64 = digits.trim().parse().map_err(|_| error())?;
        number.checked_mul(1 << shift).map(Bytes).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, shift) = UNITS
            .into_iter()
            .find(|(_, shift)| self.0 >= 1 << shift && self.0.trailing_zeros() >= *shift)
            .unwrap_or(("B", 0));
        write!(formatter, "{} {unit}", self.0 >> shift)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for bytes in [0, 1, 32, 1000, 8192, 3 << 20, 640 << 20, 1 << 34].map(Bytes) {
            assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }

    #[test]
    fn a_size_too_large_for_an_address_is_refused() {
        assert!("99999999999GB".parse::<Bytes>().is_err());
        assert!("-1".parse::<Bytes>().is_err());
        assert!("KB".parse::<Bytes>().is_err());
    }
}
