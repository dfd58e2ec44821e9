//! One number that stands for a whole run: equal runs have equal digests, on every machine.

use std::fmt;

use warmq_units::Instant;
use xxhash_rust::xxh3::Xxh3Default;

use crate::words::{MOST, Words};
use crate::{Observer, Record};

/// Folds records and their times into 64 bits, and prints as 16 hexadecimal digits.
///
/// ```text
///     digest = xxh3_64( for each record but details: time, kind, its words )        each 8 bytes, low byte first
///
///     time  := picoseconds since the start
///     kind  := 1 for Fork, 2 Exit, 3 Wakeup, 4 Switch, 5 Migrate, 6 InterruptEnter,
///              7 InterruptExit, 8 RescheduleSent, 9 Lock, 10 Recalculate,
///              11 Affinity, 12 Hotplug, 13 LockBusy, 29 Role, 30 SpanBegin, 31 SpanEnd,
///              32 Count, 33 Phase, 34 Ran, 41 SpanBegan
///     words := the record's fields in the order of their declaration, one word each;
///              in an optional field 0 is none and n + 1 is task n; a name is two words
/// ```
///
/// Records in detail ([`Record::is_detail`]: 14 Block, 15 Waking, 16 Ids, 17 Renamed, 18 Nice,
/// 19 Policy, 20 Slice, 21 Group, 22 Fragment, 23 Packet, 24 Drop, 25 Poll, 26 Idle, 27 Steal,
/// 28 Lost) are left out: a simulator makes them only when somebody wants them, and a run is the
/// same run with and without them. What they say follows from the others: who sleeps, is woken and
/// moves to other data shows in the switches. The checksum of a trace file has them.
///
/// Two different runs have the same digest with a probability of 2^-64. It is not a signature: it
/// is easy to construct two runs that share one.
///
/// ```
/// use warmq_trace::{Digest, Observer, Record};
/// use warmq_units::{CpuId, Instant};
/// let mut digest = Digest::new();
/// digest.see(Instant(5), &Record::Recalculate { cpu: CpuId(1) });
/// assert_eq!(digest.to_string(), "21c42faa9af83dfa");
/// ```
#[derive(Clone, Default)]
pub struct Digest {
    hash: Xxh3Default,
    seen: u64,
}

impl Digest {
    /// The digest of no record.
    pub fn new() -> Digest {
        Digest::default()
    }

    /// The digest of what was seen so far. More may follow.
    pub fn value(&self) -> u64 {
        self.hash.digest()
    }

    /// How many records were folded.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    #[inline]
    pub(crate) fn fold(&mut self, at: Instant, words: &Words) {
        let mut bytes = [0; 8 * (MOST + 2)];
        let parts = [at.0, u64::from(words.kind)].into_iter().chain(words.words);
        for (place, part) in bytes.chunks_exact_mut(8).zip(parts) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        self.hash
            .update(&bytes[..8 * (usize::from(words.used) + 2)]);
        self.seen += 1;
    }
}

impl Observer for Digest {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        if !record.is_detail() {
            self.fold(at, &Words::of(record));
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.value())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self} of {} records)", self.seen)
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.seen == other.seen && self.value() == other.value()
    }
}

impl Eq for Digest {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary::records;

    fn digest_of(records: &[(Instant, Record)]) -> Digest {
        let mut digest = Digest::new();
        records
            .iter()
            .for_each(|(at, record)| digest.see(*at, record));
        digest
    }

    #[test]
    fn details_make_no_difference_to_a_digest() {
        for (kind, used) in (0..).zip(crate::words::WORDS_OF).skip(1) {
            let (used, words) = (*used, [0; MOST]);
            let words = Words { kind, used, words };
            let record = words.to_record().expect("zeros stand for something");
            let digest = digest_of(&[(Instant(1), record)]);
            assert_eq!(digest == Digest::new(), record.is_detail());
            let detail = (14..=28).contains(&kind) || (35..=40).contains(&kind);
            assert_eq!(record.is_detail(), detail, "{record:?}");
        }
    }

    proptest! {
        #[test]
        fn a_digest_changes_with_every_time_and_with_the_order(records in records(), by in 1u64..) {
            let records = records.into_iter().filter(|(_, record)| !record.is_detail());
            let records: Vec<_> = records.collect();
            let digest = digest_of(&records);
            prop_assert_eq!(&digest, &digest_of(&records));
            for place in 0..records.len() {
                let mut later = records.clone();
                later[place].0.0 = later[place].0.0.wrapping_add(by);
                prop_assert_ne!(&digest, &digest_of(&later));
                prop_assert_ne!(&digest, &digest_of(&records[..place]));
            }
            for place in 1..records.len() {
                let mut swapped = records.clone();
                swapped.swap(place - 1, place);
                prop_assert_eq!(swapped == records, digest == digest_of(&swapped));
            }
        }
    }
}
