//! A bus (or a channel to memory) as a timetable.
//!
//! CPUs are simulated in chunks, so transactions are requested slightly out of the order of time. A
//! bus that recorded only the end of its busy period would make a late request wait for
//! transactions in its future. A timetable gives each request the first gap at or after its own
//! time.

use std::hint::select_unpredictable;

use warmq_units::{Duration, Instant};

/// Slots in a word of the timetable.
const WORD: u64 = 64;
/// How far back before the latest transaction the timetable reaches, at least.
const WINDOW: Duration = Duration::from_ms(4);
/// The most slots of a transaction, so that a search looks at only two words.
const MOST_SLOTS: u64 = 32;

/// The busy times of a resource that serves one transaction at a time.
///
/// Time is divided into slots; a transaction takes consecutive ones. Invariant: no slot is given
/// twice. Only the last few milliseconds are kept; before them the resource counts as free.
#[derive(Clone, Debug)]
pub struct Timetable {
    // Set when it is built, and never after.
    slot: u64,
    slots_in_2_to_the_64: u64,

    // Changed only by `book`. A ring: word w of all time lies at w modulo the length.
    words: Vec<Word>,
    latest: u64,
}

/// 64 slots: the word's index since time 0, and a bit for each slot that is taken.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    number: u64,
    taken: u64,
}

impl Timetable {
    /// A timetable for transactions of two lengths.
    ///
    /// A slot is the greatest common divisor of both, unless the longer one would then take more
    /// than 32 slots; in that case a slot is a 32nd of it, and lengths are rounded up to slots.
    pub fn new(one: Duration, other: Duration) -> Timetable {
        let longest = one.0.max(other.0);
        let slot = greatest_common_divisor(one.0, other.0)
            .max(longest.div_ceil(MOST_SLOTS))
            .max(1);
        let words = WINDOW
            .0
            .div_ceil(slot * WORD)
            .clamp(64, 1 << 16)
            .next_power_of_two();
        Timetable {
            slot,
            slots_in_2_to_the_64: u64::MAX / slot,
            words: vec![Word::default(); words as usize],
            latest: 0,
        }
    }

    /// The length of a slot.
    pub fn slot(&self) -> Duration {
        Duration(self.slot)
    }

    /// How many slots a transaction of `length` takes: at most 32 for the two lengths that the
    /// timetable was made for.
    pub fn slots(&self, length: Duration) -> u32 {
        length.0.div_ceil(self.slot) as u32
    }

    /// Takes the first `slots` free slots in a row at or after `now`. Returns how long the
    /// transaction waits for them: zero if the slot of `now` is the first of them.
    ///
    /// # Panics
    /// When `slots` is more than 64.
    #[inline]
    pub fn book(&mut self, now: Instant, slots: u32) -> Duration {
        self.book_if(u64::MAX, now, slots)
    }

    /// The same if `wanted` is all ones, nothing if it is 0; without a branch on that where the
    /// slots are free and in one word.
    #[inline(always)]
    pub(crate) fn book_if(&mut self, wanted: u64, now: Instant, slots: u32) -> Duration {
        let asked = self.slot_of(now);
        let (number, from) = (asked / WORD, asked % WORD);
        let ring = self.words.len();
        let word = &mut self.words[number as usize & (ring - 1)];
        let taken = select_unpredictable(word.number == number, word.taken, 0);
        let run = ((1 << (slots % WORD as u32)) - 1) << from;
        let ends_beyond = from + u64::from(slots) > WORD;
        let is_past = number + ring as u64 <= self.latest;
        let is_odd = slots.wrapping_sub(1) >= MOST_SLOTS as u32;
        let in_the_way = run & taken | u64::from(ends_beyond | is_past | is_odd);
        if in_the_way & wanted != 0 {
            return self.book_later(now, asked, slots);
        }
        word.number ^= (word.number ^ number) & wanted;
        word.taken ^= (word.taken ^ (taken | run)) & wanted;
        self.latest = self.latest.max(number & wanted);
        Duration::ZERO
    }

    /// The same from the slot `asked` on, which is that of `now`, whatever is taken.
    #[inline(never)]
    fn book_later(&mut self, now: Instant, asked: u64, slots: u32) -> Duration {
        assert!(slots <= WORD as u32, "a transaction of {slots} slots");
        let (mut word, mut from) = (asked / WORD, asked % WORD);
        if slots == 0 || word + (self.words.len() as u64) <= self.latest {
            return Duration::ZERO;
        }
        while self.taken(word) == u64::MAX {
            (word, from) = (word + 1, 0);
        }
        let start = loop {
            let starts = starts_of_runs(!self.taken(word), !self.taken(word + 1), slots);
            let starts = starts & u64::MAX << from;
            if starts != 0 {
                break word * WORD + u64::from(starts.trailing_zeros());
            }
            (word, from) = (word + 1, 0);
        };
        self.take(start, slots);
        if start == asked {
            Duration::ZERO
        } else {
            Duration(start * self.slot - now.0)
        }
    }

    /// `now / slot` by multiplication, which is faster than division. The estimate falls short by
    /// less than one: `2^64 / slot` is rounded down by at most one, and `now` is less than `2^64`.
    #[inline]
    fn slot_of(&self, now: Instant) -> u64 {
        let product = u128::from(now.0) * u128::from(self.slots_in_2_to_the_64);
        let estimate = (product >> 64) as u64;
        estimate + u64::from(now.0 - estimate * self.slot >= self.slot)
    }

    #[inline]
    fn taken(&self, number: u64) -> u64 {
        let word = self.words[number as usize & (self.words.len() - 1)];
        if word.number == number { word.taken } else { 0 }
    }

    #[inline]
    fn take(&mut self, start: u64, slots: u32) {
        let run = u128::from(u64::MAX >> (WORD as u32 - slots)) << (start % WORD);
        let number = start / WORD;
        self.take_word(number, run as u64);
        if run >> WORD != 0 {
            self.take_word(number + 1, (run >> WORD) as u64);
        }
    }

    #[inline]
    fn take_word(&mut self, number: u64, bits: u64) {
        let length = self.words.len();
        let word = &mut self.words[number as usize & (length - 1)];
        if word.number != number {
            *word = Word { number, taken: 0 };
        }
        word.taken |= bits;
        self.latest = self.latest.max(number);
    }
}

/// The bits of `free` at which `length` set bits in a row begin; they may go on in `next`.
#[inline]
fn starts_of_runs(free: u64, next: u64, length: u32) -> u64 {
    let (mut starts, mut next, mut known) = (free, next, 1);
    while known < length {
        let step = known.min(length - known); // at most 32
        starts &= starts >> step | next << (WORD as u32 - step);
        next &= next >> step;
        known += step;
    }
    starts
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        greatest_common_divisor(other, one % other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_a_time_is_its_quotient() {
        for slot in [1, 2, 3, 1_000, 1_876, 20_000, 1 << 20, 59_999_999] {
            let timetable = Timetable::new(Duration(slot), Duration(slot));
            for time in [
                0,
                1,
                slot - 1,
                slot,
                slot + 1,
                7 * slot - 1,
                7 * slot,
                1 << 50,
                u64::MAX,
            ] {
                assert_eq!(
                    timetable.slot_of(Instant(time)),
                    time / slot,
                    "{time} / {slot}"
                );
            }
        }
    }
}
