//! In which order a machine writes the bytes of a number.

/// The order of the bytes of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The low byte first.
    #[default]
    Little,
    /// The high byte first.
    Big,
}

impl Order {
    /// Two bytes as a number.
    #[inline]
    pub fn half(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Four bytes as a number.
    #[inline]
    pub fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Eight bytes as a number.
    #[inline]
    pub fn long(self, bytes: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(bytes),
            Order::Big => u64::from_be_bytes(bytes),
        }
    }
}
