//! Little-endian numbers at offsets that may be anything.

/// The 32-bit number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// The 16-bit number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(two.try_into().ok()?))
}

/// The number of `size` bytes, 8 at most, at `at`.
pub(crate) fn number_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let from = bytes.get(at..at.checked_add(size)?)?;
    let mut all = [0; 8];
    all.get_mut(..size)?.copy_from_slice(from);
    Some(u64::from_le_bytes(all))
}

/// The text at `at`, up to its 0.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<String> {
    let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}
