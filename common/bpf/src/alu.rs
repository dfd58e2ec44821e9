//! What instructions of arithmetic and branches make of numbers, but for those that extend a sign
//! or swap bytes.

/// The numbers as an instruction sees them, all of their 64 bits or the lower half, and the same
/// with a sign.
fn seen(wide: bool, number: u64) -> (u64, i64) {
    match wide {
        true => (number, number as i64),
        false => (u64::from(number as u32), i64::from(number as i32)),
    }
}

/// What an instruction of arithmetic with this code gives; nothing if it is none of them.
#[must_use]
pub fn calculate(code: u8, left: u64, right: u64) -> Option<u64> {
    let wide = code & 7 == 7;
    let ((left, signed), (right, _)) = (seen(wide, left), seen(wide, right));
    let shift = right & if wide { 63 } else { 31 };
    let value = match code & 0xf0 {
        0x00 => left.wrapping_add(right),
        0x10 => left.wrapping_sub(right),
        0x20 => left.wrapping_mul(right),
        0x30 => left.checked_div(right).unwrap_or(0),
        0x40 => left | right,
        0x50 => left & right,
        0x60 => left << shift,
        0x70 => left >> shift,
        0x80 => left.wrapping_neg(),
        0x90 => left.checked_rem(right).unwrap_or(left),
        0xa0 => left ^ right,
        0xc0 => (signed >> shift) as u64,
        _ => return None,
    };
    Some(seen(wide, value).0)
}

/// Whether a branch with this code is taken; nothing if it asks for no comparison.
#[must_use]
pub fn is_taken(code: u8, left: u64, right: u64) -> Option<bool> {
    let wide = code & 7 == 5;
    let ((left, signed), (right, other)) = (seen(wide, left), seen(wide, right));
    Some(match code & 0xf0 {
        0x10 => left == right,
        0x20 => left > right,
        0x30 => left >= right,
        0x40 => left & right != 0,
        0x50 => left != right,
        0x60 => signed > other,
        0x70 => signed >= other,
        0xa0 => left < right,
        0xb0 => left <= right,
        0xc0 => signed < other,
        0xd0 => signed <= other,
        _ => return None,
    })
}
