//! The ways of one set: find a line, and keep the ways in the order of use.
//!
//! The usual associativities have code of their own without branches on what is found where:
//! a branch on the position of a hit is one that no host predicts.

use std::hint::select_unpredictable;

use super::{EMPTY, TAG};

/// Calls `$fixed` on `$set` as an array if it has a usual length, else `$any` on it as a slice.
macro_rules! by_length {
    ($set:expr, $fixed:ident, $any:ident $(, $argument:expr)*) => {
        match $set.len() {
            2 => by_length!(@ 2, $set, $fixed, $any $(, $argument)*),
            4 => by_length!(@ 4, $set, $fixed, $any $(, $argument)*),
            8 => by_length!(@ 8, $set, $fixed, $any $(, $argument)*),
            16 => by_length!(@ 16, $set, $fixed, $any $(, $argument)*),
            _ => $any($set $(, $argument)*),
        }
    };
    (@ $length:literal, $set:expr, $fixed:ident, $any:ident $(, $argument:expr)*) => {
        match $set.try_into() {
            Ok(set) => $fixed::<$length>(set $(, $argument)*),
            Err(_) => unreachable!("the length was looked at"),
        }
    };
}

/// Where in `set` the line with `key` is.
#[inline(always)]
pub(super) fn position(set: &[u32], key: u32) -> Option<usize> {
    by_length!(set, position_fixed, position_any, key)
}

/// Makes the line with `key` the first of `set`. Whether it is there.
#[inline(always)]
pub(super) fn move_to_front(set: &mut [u32], key: u32) -> bool {
    by_length!(set, move_to_front_fixed, move_to_front_any, key)
}

/// Puts `word` first; the last falls out.
#[inline(always)]
pub(super) fn push_front(set: &mut [u32], word: u32) -> u32 {
    by_length!(set, push_front_fixed, push_front_any, word)
}

/// Takes the line with `key` out of `set`; the ones behind it move up. What was there, or zero.
#[inline(always)]
pub(super) fn close_up(set: &mut [u32], key: u32) -> u32 {
    by_length!(set, close_up_fixed, close_up_any, key)
}

/// Bits that stand for a way in what [`holders`] answers, shifted left by its number. Two of them:
/// a single one lets the compiler turn the comparisons into scalar code.
const WAY: u32 = 0x1_0001;

/// In which ways of `set` the line with `key` is: its [`WAY`], or nothing.
#[inline(always)]
fn holders<const WAYS: usize>(set: &[u32; WAYS], key: u32) -> u32 {
    let mut found = 0;
    for (way, word) in set.iter().enumerate() {
        found |= u32::from(word & TAG == key).wrapping_neg() & WAY << way;
    }
    found
}

#[inline(always)]
pub(super) fn position_fixed<const WAYS: usize>(set: &[u32; WAYS], key: u32) -> Option<usize> {
    let found = holders(set, key);
    (found != 0).then(|| found.trailing_zeros() as usize)
}

/// The first way of `set` that is empty.
#[inline(always)]
pub(super) fn empty_fixed<const WAYS: usize>(set: &[u32; WAYS]) -> Option<usize> {
    let mut found = 0;
    for (way, word) in set.iter().enumerate() {
        found |= u32::from(*word == EMPTY).wrapping_neg() & WAY << way;
    }
    (found != 0).then(|| found.trailing_zeros() as usize)
}

/// Masks over the ways of a set, by position.
struct Masks<const WAYS: usize>;

impl<const WAYS: usize> Masks<WAYS> {
    /// All ones before the position.
    const BEFORE: [[u32; WAYS]; WAYS] = Self::up_to(0);
    /// All ones before the position and at it.
    const UP_TO: [[u32; WAYS]; WAYS] = Self::up_to(1);

    const fn up_to(beyond: usize) -> [[u32; WAYS]; WAYS] {
        let mut masks = [[0; WAYS]; WAYS];
        let mut position = 0;
        while position < WAYS {
            let mut way = 0;
            while way < position + beyond {
                masks[position][way] = u32::MAX;
                way += 1;
            }
            position += 1;
        }
        masks
    }
}

/// The ways of `one` where `mask` has ones, those of `other` elsewhere.
#[inline(always)]
fn merge<const WAYS: usize>(
    mask: &[u32; WAYS],
    one: &[u32; WAYS],
    other: &[u32; WAYS],
) -> [u32; WAYS] {
    std::array::from_fn(|way| one[way] & mask[way] | other[way] & !mask[way])
}

/// Each way is what the one before it was; the first stays.
#[inline(always)]
fn moved_up<const WAYS: usize>(set: &[u32; WAYS]) -> [u32; WAYS] {
    std::array::from_fn(|way| set[way.max(1) - 1])
}

fn position_any(set: &[u32], key: u32) -> Option<usize> {
    set.iter().position(|word| word & TAG == key)
}

#[inline(always)]
pub(super) fn move_to_front_fixed<const WAYS: usize>(set: &mut [u32; WAYS], key: u32) -> bool {
    let Some(position) = position_fixed(set, key) else {
        return false;
    };
    let position = position % WAYS;
    let mut moved = [set[position]; WAYS];
    moved[1..].copy_from_slice(&set[..WAYS - 1]);
    *set = merge(&Masks::UP_TO[position], &moved, set);
    true
}

/// Makes the line with `key` the first of `set`, which takes it in, as `word`, if it lacks it. No
/// branch on that: there is none that a host predicts. Whether the line was there, and what fell
/// out if it was not.
#[inline(always)]
pub(super) fn use_or_push_fixed<const WAYS: usize>(
    set: &mut [u32; WAYS],
    key: u32,
    word: u32,
) -> (bool, u32) {
    let found = holders(set, key);
    let had = found != 0;
    let position = (found | 1 << (WAYS - 1)).trailing_zeros() as usize % WAYS;
    let there = set[position];
    *set = merge(&Masks::UP_TO[position], &moved_up(set), set);
    set[0] = select_unpredictable(had, there, word);
    (had, there)
}

fn move_to_front_any(set: &mut [u32], key: u32) -> bool {
    let Some(position) = position_any(set, key) else {
        return false;
    };
    set[..=position].rotate_right(1);
    true
}

#[inline(always)]
pub(super) fn push_front_fixed<const WAYS: usize>(set: &mut [u32; WAYS], word: u32) -> u32 {
    let last = set[WAYS - 1];
    set.copy_within(0..WAYS - 1, 1);
    set[0] = word;
    last
}

fn push_front_any(set: &mut [u32], word: u32) -> u32 {
    set.rotate_right(1);
    std::mem::replace(&mut set[0], word)
}

#[inline(always)]
pub(super) fn close_up_fixed<const WAYS: usize>(set: &mut [u32; WAYS], key: u32) -> u32 {
    let Some(position) = position_fixed(set, key) else {
        return 0;
    };
    let position = position % WAYS;
    let (word, mut moved) = (set[position], [0; WAYS]);
    moved[..WAYS - 1].copy_from_slice(&set[1..]);
    *set = merge(&Masks::BEFORE[position], set, &moved);
    word
}

fn close_up_any(set: &mut [u32], key: u32) -> u32 {
    let Some(position) = position_any(set, key) else {
        return 0;
    };
    let word = std::mem::take(&mut set[position]);
    set[position..].rotate_left(1);
    word
}
