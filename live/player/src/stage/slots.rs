//! A slot for each task: who it is, where its thread is, what it has counted and logged.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::sys::memory::{Shared, shared};
use crate::sys::sched::Attributes;

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum TaskState {
    /// It has no thread yet.
    NotStarted = 0,
    /// Its thread is there.
    Started = 1,
    /// It has ended.
    Ended = 2,
}

/// A task. Only its own thread writes, except where said. Zero bytes are a slot that is free.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Slot {
    /// Opened by the controller: a futex.
    pub gate: AtomicU32,
    state: AtomicU32,
    /// The thread's id.
    pub tid: AtomicI32,
    /// The process's id.
    pub pid: AtomicI32,
    /// The table of tasks; written by who starts it.
    pub table: AtomicU32,
    /// Which of the table; written by who starts it.
    pub number: AtomicU64,
    /// CPU time before the run began, in nanoseconds.
    pub base_ns: AtomicU64,
    /// CPU time from then until it ended, in nanoseconds.
    pub ran_ns: AtomicU64,
    /// The op that it is at: see [`Slot::enter`].
    at: AtomicU32,
    /// Fragments that the controller asked for so far.
    pub fragment_turn: AtomicU32,
    /// The last of them: 0 for none, else 1 + its number; written by the controller.
    pub fragment: AtomicU64,
    /// The slice that it was given, in nanoseconds; 0 for the kernel's own, from which the kernel
    /// does not tell it. Also written by the controller.
    pub slice_ns: AtomicU64,
    logged: AtomicU32,
    lost: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl Shared for Slot {}

/// Added to the number of an op of the setup, so that it differs from those of the body.
pub const SETUP: u32 = 1 << 31;

impl Slot {
    /// How far it is.
    pub fn state(&self) -> TaskState {
        match self.state.load(Ordering::Acquire) {
            0 => TaskState::NotStarted,
            1 => TaskState::Started,
            _ => TaskState::Ended,
        }
    }

    /// It is that far now.
    pub fn set_state(&self, state: TaskState) {
        self.state.store(state as u32, Ordering::Release);
    }

    /// Changes how its thread `tid` (0: this one) is scheduled, keeping the rest.
    pub fn change_attributes(&self, tid: i32, to: impl FnOnce(&mut Attributes)) -> io::Result<()> {
        let mut now = Attributes::of(tid)?;
        now.slice_ns = self.slice_ns.load(Ordering::Relaxed);
        to(&mut now);
        now.apply(tid)
    }

    /// The task begins op number `op`.
    #[inline]
    pub fn enter(&self, op: u32) {
        self.at.store(op, Ordering::Relaxed);
    }

    /// The op that it is at.
    pub fn at(&self) -> u32 {
        self.at.load(Ordering::Relaxed)
    }
}

/// Something that a task logged.
#[repr(C)]
#[derive(Default)]
pub struct Entry {
    time_ns: AtomicU64,
    /// The kind in the low 8 bits, an id of 32 bits above.
    what: AtomicU64,
    number: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Entry {}

/// What a task logs, as a small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A span (id) of a number began.
    SpanBegin = 1,
    /// It ended.
    SpanEnd = 2,
    /// The task may sleep from here on: the cause (id), and 1 + the object or 0.
    Waits = 3,
    /// It goes on.
    GoesOn = 4,
    /// It starts the task in the slot (id).
    Starts = 5,
    /// It ends, on the CPU (id).
    Ends = 6,
    /// Its nice value is now the number, as a signed one.
    Nice = 7,
    /// It names the fragment: 1 + its number, or 0 for none.
    Fragment = 8,
    /// Of the 64 CPUs of word (id), it may now use those of the number.
    Affinity = 9,
    /// Its policy is now (id), with the number as priority.
    Policy = 10,
    /// Its slice is now the number of nanoseconds.
    Slice = 11,
    /// It is now in the group (id).
    Group = 12,
    /// The span that begins next began when the number says, on the monotonic clock.
    Due = 13,
}

impl Mark {
    fn of(number: u8) -> Option<Mark> {
        use Mark::{Affinity, Due, Group, Policy, Slice};
        use Mark::{Ends, Fragment, GoesOn, Nice, SpanBegin, SpanEnd, Starts, Waits};
        let all = [
            SpanBegin, SpanEnd, Waits, GoesOn, Starts, Ends, Nice, Fragment, Affinity, Policy,
            Slice, Group, Due,
        ];
        all.into_iter().find(|mark| *mark as u8 == number)
    }
}

/// An entry that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// What.
    pub mark: Mark,
    /// An id; what it is of depends on the mark.
    pub id: u32,
    /// A number; what it is depends on the mark.
    pub number: u64,
}

/// Counters of a task, in cache lines of their own.
#[repr(C, align(64))]
#[derive(Default)]
struct Line([AtomicU64; 8]);

// SAFETY: atomics only.
unsafe impl Shared for Line {}

/// How much room there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Tasks that start by themselves: the entries of the log of each.
    pub first: Vec<u32>,
    /// Tasks that steps can start.
    pub more: u32,
    /// Counters of a task.
    pub counters: usize,
    /// Entries of the log of a task that a step starts.
    pub entries_of_more: u32,
}

/// The slots of all tasks.
pub struct Slots {
    slots: &'static [Slot],
    lines: &'static [Line],
    lines_of_task: usize,
    entries: &'static [Entry],
    /// Where the log of each of the first tasks begins, and where that of the last ends.
    starts: Vec<usize>,
    entries_of_more: usize,
}

impl Slots {
    /// Slots for as many tasks as `room` says.
    ///
    /// # Errors
    /// There is not as much address space.
    pub fn new(room: Room) -> io::Result<Slots> {
        let all = room.first.len() + room.more as usize;
        let lines_of_task = room.counters.div_ceil(8).max(1);
        let mut starts = vec![0];
        for entries in &room.first {
            starts.push(starts[starts.len() - 1] + *entries as usize);
        }
        let entries_of_more = room.entries_of_more as usize;
        let entries = starts[starts.len() - 1] + room.more as usize * entries_of_more;
        Ok(Slots {
            slots: shared(all)?,
            lines: shared(all * lines_of_task)?,
            lines_of_task,
            entries: shared(entries)?,
            starts,
            entries_of_more,
        })
    }

    /// How many tasks there is room for.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of task `index`.
    pub fn of(&self, index: u32) -> &'static Slot {
        &self.slots[index as usize]
    }

    fn log_range(&self, index: u32) -> std::ops::Range<usize> {
        let (index, first) = (index as usize, self.starts.len() - 1);
        match index.checked_sub(first) {
            None => self.starts[index]..self.starts[index + 1],
            Some(more) => {
                let start = self.starts[first] + more * self.entries_of_more;
                start..start + self.entries_of_more
            }
        }
    }

    /// The log of task `index`, to write.
    pub fn log(&self, index: u32) -> Log {
        Log {
            slot: self.of(index),
            entries: &self.entries[self.log_range(index)],
        }
    }

    /// Everything that task `index` logged, and how much it lost.
    pub fn logged(&self, index: u32) -> (Vec<Logged>, u64) {
        let slot = self.of(index);
        let entries = &self.entries[self.log_range(index)];
        let used = slot.logged.load(Ordering::Acquire) as usize;
        let read = |entry: &Entry| {
            let what = entry.what.load(Ordering::Relaxed);
            Some(Logged {
                time_ns: entry.time_ns.load(Ordering::Relaxed),
                mark: Mark::of(what as u8)?,
                id: (what >> 8) as u32,
                number: entry.number.load(Ordering::Relaxed),
            })
        };
        let all = entries.iter().take(used).filter_map(read).collect();
        (all, slot.lost.load(Ordering::Relaxed).into())
    }

    /// Adds `by` to counter `counter` of task `index`; only that task may.
    #[inline]
    pub fn count(&self, index: u32, counter: usize, by: u64) {
        let line = index as usize * self.lines_of_task + counter / 8;
        let count = &self.lines[line].0[counter % 8];
        // One writer: no locked instruction is needed.
        let total = count.load(Ordering::Relaxed).wrapping_add(by);
        count.store(total, Ordering::Relaxed);
    }

    /// What the first `used` tasks have counted of `counter`.
    pub fn total(&self, used: u32, counter: usize) -> u64 {
        let of = |index: usize| {
            let line = index * self.lines_of_task + counter / 8;
            self.lines[line].0[counter % 8].load(Ordering::Relaxed)
        };
        (0..used as usize).map(of).fold(0, u64::wrapping_add)
    }
}

/// The log of one task.
pub struct Log {
    slot: &'static Slot,
    /// All of its room.
    pub entries: &'static [Entry],
}

impl Log {
    /// Logs something; counts it as lost if there is no room.
    #[inline]
    pub fn put(&self, entry: Logged) {
        let used = self.slot.logged.load(Ordering::Relaxed);
        let Some(free) = self.entries.get(used as usize) else {
            let lost = self.slot.lost.load(Ordering::Relaxed);
            self.slot
                .lost
                .store(lost.saturating_add(1), Ordering::Relaxed);
            return;
        };
        free.time_ns.store(entry.time_ns, Ordering::Relaxed);
        let what = u64::from(entry.mark as u8) | u64::from(entry.id) << 8;
        free.what.store(what, Ordering::Relaxed);
        free.number.store(entry.number, Ordering::Relaxed);
        self.slot.logged.store(used + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        Room {
            first: vec![3, 2],
            more: 2,
            counters: 9,
            entries_of_more: 1,
        }
    }

    fn entry(number: u64) -> Logged {
        Logged {
            time_ns: number,
            mark: Mark::SpanEnd,
            id: u32::MAX,
            number,
        }
    }

    #[test]
    fn a_full_log_keeps_what_it_has_and_counts_the_rest() {
        let slots = Slots::new(room()).expect("memory");
        for task in 0..4 {
            let log = slots.log(task);
            (0..5).for_each(|number| log.put(entry(number + 10 * u64::from(task))));
        }
        for (task, kept) in [(0, 3), (1, 2), (2, 1), (3, 1)] {
            let (all, lost) = slots.logged(task);
            let wanted: Vec<_> = (0..kept)
                .map(|number| entry(number + 10 * u64::from(task)))
                .collect();
            assert_eq!((all, lost), (wanted, 5 - kept));
        }
    }

    #[test]
    fn counters_of_tasks_are_summed_apart() {
        let slots = Slots::new(room()).expect("memory");
        for task in 0..3 {
            slots.count(task, 8, 1 << task);
            slots.count(task, 0, 100);
        }
        assert_eq!((slots.total(3, 8), slots.total(2, 8)), (7, 3));
        assert_eq!((slots.total(3, 0), slots.total(3, 1)), (300, 0));
    }
}
