//! A record as a kind and up to four 64-bit words, the same on every machine: what the digest
//! folds and what the file stores. Kinds and the order of words never change; new ones are added.

use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::{Comm, Interrupt, Record};

/// The most words that any record has.
pub(crate) const MOST: usize = 4;

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

/// How many words each kind has; entry 0 stands for no record.
pub(crate) const WORDS_OF: [u8; 14] = [0, 4, 2, 3, 4, 3, 2, 2, 2, 4, 1, 3, 2, 2];

const FORK: u8 = 1;
const EXIT: u8 = 2;
const WAKEUP: u8 = 3;
const SWITCH: u8 = 4;
const MIGRATE: u8 = 5;
const INTERRUPT_ENTER: u8 = 6;
const INTERRUPT_EXIT: u8 = 7;
const RESCHEDULE_SENT: u8 = 8;
const LOCK: u8 = 9;
const RECALCULATE: u8 = 10;
const AFFINITY: u8 = 11;
const HOTPLUG: u8 = 12;
const LOCK_BUSY: u8 = 13;

impl Words {
    /// The words of `record`.
    #[inline]
    pub fn of(record: &Record) -> Words {
        let cpu = |cpu: CpuId| u64::from(cpu.0);
        let task = |task: TaskId| u64::from(task.0);
        let (kind, words) = match *record {
            Record::Fork {
                parent,
                child,
                comm,
            } => {
                let [head, tail] = comm.to_words();
                (FORK, [optional(parent), task(child), head, tail])
            }
            Record::Exit {
                cpu: at,
                task: gone,
            } => (EXIT, [cpu(at), task(gone), 0, 0]),
            Record::Wakeup {
                waker,
                task: woken,
                target,
            } => (WAKEUP, [cpu(waker), task(woken), cpu(target), 0]),
            Record::Switch {
                cpu: at,
                prev,
                prev_runnable,
                next,
            } => (
                SWITCH,
                [
                    cpu(at),
                    optional(prev),
                    u64::from(prev_runnable),
                    optional(next),
                ],
            ),
            Record::Migrate {
                task: moved,
                from,
                to,
            } => (MIGRATE, [task(moved), cpu(from), cpu(to), 0]),
            Record::InterruptEnter { cpu: at, interrupt } => {
                (INTERRUPT_ENTER, [cpu(at), number_of(interrupt), 0, 0])
            }
            Record::InterruptExit { cpu: at, interrupt } => {
                (INTERRUPT_EXIT, [cpu(at), number_of(interrupt), 0, 0])
            }
            Record::RescheduleSent { from, to } => (RESCHEDULE_SENT, [cpu(from), cpu(to), 0, 0]),
            Record::Lock {
                cpu: at,
                lock,
                waited,
                held,
            } => (LOCK, [cpu(at), u64::from(lock.0), waited.0, held.0]),
            Record::LockBusy { cpu: at, lock } => (LOCK_BUSY, [cpu(at), u64::from(lock.0), 0, 0]),
            Record::Recalculate { cpu: at } => (RECALCULATE, [cpu(at), 0, 0, 0]),
            Record::Affinity {
                task: whose,
                from,
                cpus,
            } => (AFFINITY, [task(whose), cpu(from), cpus, 0]),
            Record::Hotplug { cpu: at, online } => (HOTPLUG, [cpu(at), u64::from(online), 0, 0]),
        };
        Words {
            kind,
            used: WORDS_OF[usize::from(kind)],
            words,
        }
    }

    /// The record of these words, or `None` if a word is out of its range.
    pub fn to_record(self) -> Option<Record> {
        let [a, b, c, d] = self.words;
        Some(match self.kind {
            FORK => {
                let comm = Comm::from_words([c, d])?;
                Record::Fork {
                    parent: to_optional(a)?,
                    child: to_task(b)?,
                    comm,
                }
            }
            EXIT => Record::Exit {
                cpu: to_cpu(a)?,
                task: to_task(b)?,
            },
            WAKEUP => Record::Wakeup {
                waker: to_cpu(a)?,
                task: to_task(b)?,
                target: to_cpu(c)?,
            },
            SWITCH => Record::Switch {
                cpu: to_cpu(a)?,
                prev: to_optional(b)?,
                prev_runnable: to_bool(c)?,
                next: to_optional(d)?,
            },
            MIGRATE => Record::Migrate {
                task: to_task(a)?,
                from: to_cpu(b)?,
                to: to_cpu(c)?,
            },
            INTERRUPT_ENTER => Record::InterruptEnter {
                cpu: to_cpu(a)?,
                interrupt: to_interrupt(b)?,
            },
            INTERRUPT_EXIT => Record::InterruptExit {
                cpu: to_cpu(a)?,
                interrupt: to_interrupt(b)?,
            },
            RESCHEDULE_SENT => Record::RescheduleSent {
                from: to_cpu(a)?,
                to: to_cpu(b)?,
            },
            LOCK => Record::Lock {
                cpu: to_cpu(a)?,
                lock: LockId(u16::try_from(b).ok()?),
                waited: Duration(c),
                held: Duration(d),
            },
            LOCK_BUSY => Record::LockBusy {
                cpu: to_cpu(a)?,
                lock: LockId(u16::try_from(b).ok()?),
            },
            RECALCULATE => Record::Recalculate { cpu: to_cpu(a)? },
            AFFINITY => Record::Affinity {
                task: to_task(a)?,
                from: to_cpu(b)?,
                cpus: c,
            },
            HOTPLUG => Record::Hotplug {
                cpu: to_cpu(a)?,
                online: to_bool(b)?,
            },
            _ => return None,
        })
    }
}

/// None is 0, task n is n + 1.
fn optional(task: Option<TaskId>) -> u64 {
    task.map_or(0, |task| u64::from(task.0) + 1)
}

fn to_optional(word: u64) -> Option<Option<TaskId>> {
    match word.checked_sub(1) {
        None => Some(None),
        Some(task) => to_task(task).map(Some),
    }
}

fn to_task(word: u64) -> Option<TaskId> {
    u32::try_from(word).ok().map(TaskId)
}

fn to_cpu(word: u64) -> Option<CpuId> {
    u16::try_from(word).ok().map(CpuId)
}

fn to_bool(word: u64) -> Option<bool> {
    (word < 2).then_some(word == 1)
}

fn number_of(interrupt: Interrupt) -> u64 {
    match interrupt {
        Interrupt::Timer => 0,
        Interrupt::Reschedule => 1,
        Interrupt::Network => 2,
        Interrupt::NetworkSoftirq => 3,
        Interrupt::SchedSoftirq => 4,
    }
}

fn to_interrupt(word: u64) -> Option<Interrupt> {
    Some(match word {
        0 => Interrupt::Timer,
        1 => Interrupt::Reschedule,
        2 => Interrupt::Network,
        3 => Interrupt::NetworkSoftirq,
        4 => Interrupt::SchedSoftirq,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary::record;

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
