//! A record as a kind and up to five 64-bit words, the same on every machine: what the digest
//! folds and what the file stores. Kinds and the order of words never change; new ones are added.

use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::{Cause, Comm, Context, Interrupt, Policy, Record, State};

/// The most words that any record has.
pub(crate) const MOST: usize = 5;

/// The kind of a record, from 1 up; 0 marks the end of a file.
///
/// Invariant: `words[used..]` are zero, and `used` depends on `kind` only, so that a sequence of
/// words can be split into records in only one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub kind: u8,
    pub used: u8,
    pub words: [u64; MOST],
}

/// For each kind of record: its number, how many words it has, whether it is one in detail, and its
/// fields in their order.
macro_rules! kinds {
    (is detail) => { true };
    (is) => { false };
    ($($kind:literal $used:literal $variant:ident $($detail:ident)? { $($field:ident),* },)*) => {
        /// How many words each kind has; entry 0 stands for no record.
        pub(crate) const WORDS_OF: &[u8] = &[0, $($used),*];

        impl Words {
            /// The words of `record`.
            #[inline]
            pub fn of(record: &Record) -> Words {
                match *record {
                    $(Record::$variant { $($field),* } => {
                        let mut words = Words { kind: $kind, used: 0, words: [0; MOST] };
                        $($field.put(&mut words);)*
                        words
                    })*
                }
            }

            /// The record of these words, or `None` if a word is out of its range.
            pub fn to_record(self) -> Option<Record> {
                let mut words = self.words.into_iter();
                let words = &mut words;
                Some(match self.kind {
                    $($kind => Record::$variant { $($field: Field::take(words)?),* },)*
                    _ => return None,
                })
            }
        }

        impl Record {
            /// True of records in detail: why tasks sleep, who wakes them, what they are like,
            /// packets, idling. A simulator makes them only for observers that want them, and the
            /// digest of a run does not depend on them.
            #[inline]
            pub fn is_detail(&self) -> bool {
                match self {
                    $(Record::$variant { .. } => kinds!(is $($detail)?),)*
                }
            }
        }
    };
}

kinds! {
    1 4 Fork { parent, child, comm },
    2 2 Exit { cpu, task },
    3 3 Wakeup { waker, task, target },
    4 4 Switch { cpu, prev, prev_runnable, next },
    5 3 Migrate { task, from, to },
    6 2 InterruptEnter { cpu, interrupt },
    7 2 InterruptExit { cpu, interrupt },
    8 2 RescheduleSent { from, to },
    9 4 Lock { cpu, lock, waited, held },
    10 1 Recalculate { cpu },
    11 3 Affinity { task, from, cpus },
    12 2 Hotplug { cpu, online },
    13 2 LockBusy { cpu, lock },
    14 5 Block detail { cpu, task, cause, state, object },
    15 5 Waking detail { cpu, waker, task, context, synchronous },
    16 3 Ids detail { task, tid, tgid },
    17 3 Renamed detail { task, comm },
    18 2 Nice detail { task, nice },
    19 3 Policy detail { task, policy, priority },
    20 2 Slice detail { task, slice },
    21 2 Group detail { task, group },
    22 3 Fragment detail { task, fragment },
    23 2 Packet detail { cpu, bytes },
    24 2 Drop detail { cpu, reason },
    25 3 Poll detail { cpu, packets, budget },
    26 2 Idle detail { cpu, state },
    27 2 Steal detail { cpu, span },
    28 2 Lost detail { cpu, events },
    29 3 Role { task, table, number },
    30 3 SpanBegin { task, span, number },
    31 3 SpanEnd { task, span, number },
    32 2 Count { counter, total },
    33 1 Phase { phase },
    34 2 Ran { task, total },
    35 5 Cgroup detail { group, parent, weight, name },
    36 2 Throttled detail { group, span },
    37 1 KernelThread detail { task },
    38 5 Owed detail { cpu, group, weight, vruntime, lag },
    39 4 Quota detail { group, periods, throttled, span },
    40 3 Limit detail { group, quota, period },
    41 4 SpanBegan { task, span, number, ago },
}

impl Words {
    #[inline]
    fn push(&mut self, word: u64) {
        self.words[usize::from(self.used)] = word;
        self.used += 1;
    }
}

/// A field of a record as words.
trait Field: Sized {
    fn put(self, words: &mut Words);
    /// `None` where the words stand for no such field.
    fn take(words: &mut impl Iterator<Item = u64>) -> Option<Self>;
}

/// Fields of one word: how it is made, and what it stands for.
macro_rules! of_one_word {
    ($($field:ty: $put:expr, $take:expr;)*) => {
        $(impl Field for $field {
            #[inline]
            fn put(self, words: &mut Words) {
                let put: fn($field) -> u64 = $put;
                words.push(put(self));
            }

            #[inline]
            fn take(words: &mut impl Iterator<Item = u64>) -> Option<$field> {
                let take: fn(u64) -> Option<$field> = $take;
                take(words.next()?)
            }
        })*
    };
}

of_one_word! {
    u64: |word| word, Some;
    i64: i64::cast_unsigned, |word| Some(word.cast_signed());
    u32: u64::from, |word| word.try_into().ok();
    u16: u64::from, |word| word.try_into().ok();
    u8: u64::from, |word| word.try_into().ok();
    i8: |value| value.cast_unsigned().into(), |word| u8::try_from(word).ok().map(u8::cast_signed);
    bool: u64::from, |word| (word < 2).then_some(word == 1);
    CpuId: |id| id.0.into(), |word| word.try_into().ok().map(CpuId);
    TaskId: |id| id.0.into(), |word| word.try_into().ok().map(TaskId);
    LockId: |id| id.0.into(), |word| word.try_into().ok().map(LockId);
    Duration: |value| value.0, |word| Some(Duration(word));
    Interrupt: number_of, to_interrupt;
    Cause: Cause::word, Cause::of_word;
    Context: Context::word, Context::of_word;
    State: State::word, State::of_word;
    Policy: Policy::word, Policy::of_word;
    Option<TaskId>: |id| none_or(id.map(|task| task.0)), |word| Some(to_none_or(word)?.map(TaskId));
    Option<u32>: none_or, to_none_or;
    Option<u8>: |value| none_or(value.map(u32::from)), |word| match to_none_or(word)? {
        None => Some(None),
        Some(number) => u8::try_from(number).ok().map(Some),
    };
}

impl Field for Comm {
    #[inline]
    fn put(self, words: &mut Words) {
        self.to_words()
            .into_iter()
            .for_each(|word| words.push(word));
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Option<Comm> {
        Comm::from_words([words.next()?, words.next()?])
    }
}

/// An application and a number.
impl Field for Option<(u32, u32)> {
    fn put(self, words: &mut Words) {
        words.push(none_or(self.map(|(app, _)| app)));
        words.push(self.map_or(0, |(_, number)| number.into()));
    }

    fn take(words: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let app = to_none_or(words.next()?)?;
        let number = u32::try_from(words.next()?).ok()?;
        match app {
            Some(app) => Some(Some((app, number))),
            None => (number == 0).then_some(None),
        }
    }
}

/// None is 0, n is n + 1.
fn none_or(number: Option<u32>) -> u64 {
    number.map_or(0, |number| u64::from(number) + 1)
}

fn to_none_or(word: u64) -> Option<Option<u32>> {
    match word.checked_sub(1) {
        None => Some(None),
        Some(number) => u32::try_from(number).ok().map(Some),
    }
}

/// Numbered softirqs and interrupts are words above these.
const SOFTIRQS: u64 = 1 << 16;
const LINES: u64 = 1 << 17;

fn number_of(interrupt: Interrupt) -> u64 {
    match interrupt {
        Interrupt::Timer => 0,
        Interrupt::Reschedule => 1,
        Interrupt::Network => 2,
        Interrupt::NetworkSoftirq => 3,
        Interrupt::SchedSoftirq => 4,
        Interrupt::Softirq(vector) => SOFTIRQS | u64::from(vector),
        Interrupt::Line(number) => LINES | u64::from(number),
    }
}

fn to_interrupt(word: u64) -> Option<Interrupt> {
    Some(match word {
        0 => Interrupt::Timer,
        1 => Interrupt::Reschedule,
        2 => Interrupt::Network,
        3 => Interrupt::NetworkSoftirq,
        4 => Interrupt::SchedSoftirq,
        _ if word & !0xffff == LINES => Interrupt::Line((word & 0xffff) as u16),
        _ if word & !0xff == SOFTIRQS => match Interrupt::softirq((word & 0xff) as u8) {
            other @ Interrupt::Softirq(_) => other,
            // A softirq with a name of its own has a word of its own.
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary::record;

    #[test]
    fn every_kind_has_its_place_in_the_table() {
        for (kind, used) in (0..).zip(WORDS_OF).skip(1) {
            let words = Words {
                kind,
                used: *used,
                words: [0; MOST],
            };
            let record = words.to_record().expect("zeros stand for something");
            assert_eq!(Words::of(&record), words);
        }
    }

    proptest! {
        #[test]
        fn every_record_comes_back_from_its_words(record in record()) {
            let words = Words::of(&record);
            prop_assert!(words.words[usize::from(words.used)..].iter().all(|word| *word == 0));
            prop_assert_eq!(words.to_record(), Some(record));
        }

        #[test]
        fn words_that_no_record_has_are_refused(kind in any::<u8>(), words in any::<[u64; MOST]>()) {
            let used = WORDS_OF.get(usize::from(kind)).copied().unwrap_or(0);
            let mut kept = words;
            kept[usize::from(used)..].fill(0);
            let made = Words { kind, used, words: kept };
            if let Some(record) = made.to_record() {
                prop_assert_eq!(Words::of(&record), made);
            }
        }
    }
}
