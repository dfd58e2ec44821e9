//! Pages of the kernel's ring buffer in binary form, as `per_cpu/cpuN/trace_pipe_raw` gives them.
//!
//! A page has a header (the time of its first event, and how many bytes of events follow), whose
//! layout `events/header_page` describes, and entries of four bytes and more. The first word of an
//! entry has its kind or length in the lower 5 bits, and the time since the entry before in the
//! upper 27 (`events/header_event`; the kernel's `include/linux/ring_buffer.h`), where machines
//! write the low byte first; those that write the high byte first have the kind in the upper 5:
//!
//! ```text
//!     1..=28  an event of 4 n bytes follows
//!     0       a word with the event's bytes + 4, then the event
//!     29      padding: the rest of the page if the time is 0, or else a word with its bytes
//!     30      a word that extends the time by its value << 27
//!     31      a time of 59 bits instead of a difference: the word << 27, and these 27
//! ```

use crate::format::{Field, field};
use crate::order::Order;

pub mod write;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const TIME_BITS: u32 = 27;
/// An absolute time has this many bits; those above are the ones of the time before.
const STAMP_BITS: u32 = 59;
/// Flags in the number of committed bytes: events are missing before this page, and their number
/// stands behind the last entry.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// No kernel has larger pages than this here (a ring buffer's are at most 64 KiB).
const MOST_BYTES: usize = 1 << 20;

/// The layout of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    time: Field,
    commit: Field,
    /// Where the entries begin.
    data: usize,
    /// The size of a page.
    pub size: usize,
    order: Order,
}

impl Layout {
    /// Reads `events/header_page` of a machine with this order of bytes; `None` if it describes no
    /// page.
    pub fn parse(text: &str, order: Order) -> Option<Layout> {
        let lines = text.lines().map(str::trim);
        let fields: Vec<_> = lines.filter_map(|line| field(line, order)).collect();
        let named = |name| fields.iter().find(|(known, _)| known == name);
        let (time, commit) = (named("timestamp")?.1, named("commit")?.1);
        let (data, bytes) = named("data")?.1.place();
        let size = data.checked_add(bytes)?;
        let inside = |field: Field| {
            let (offset, bytes) = field.place();
            offset.checked_add(bytes).is_some_and(|end| end <= data)
        };
        let sane = inside(time) && inside(commit) && bytes > 0 && size <= MOST_BYTES;
        sane.then_some(Layout {
            time,
            commit,
            data,
            size,
            order,
        })
    }

    /// The entries of a page; none if it has no header.
    pub fn entries<'a>(&self, page: &'a [u8]) -> Entries<'a> {
        let header = || Some((self.time.number(page)?, self.commit.number(page)?));
        let (time, commit) = header().unwrap_or_default();
        let data = page.get(self.data..).unwrap_or_default();
        let bytes = usize::try_from(commit & (MISSED_STORED - 1)).unwrap_or(usize::MAX);
        let (data, rest) = data.split_at_checked(bytes).unwrap_or((data, &[]));
        let stored = commit & MISSED_STORED != 0;
        let missed = rest.first_chunk().filter(|_| stored);
        let order = self.order;
        let missed = missed.map_or(0, |count| order.long(*count));
        Entries {
            time,
            lost: (commit & MISSED != 0).then_some(missed),
            data,
            order,
        }
    }
}

/// What is in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Events are missing here: how many, or 0 if unknown.
    Lost(u64),
    /// An event.
    Event {
        /// When, by the recording's clock, in ns.
        time: u64,
        /// It, as its format says.
        data: &'a [u8],
    },
}

/// The entries of a page. Damaged ones end the page.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    time: u64,
    lost: Option<u64>,
    data: &'a [u8],
    order: Order,
}

impl<'a> Entries<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.data.split_first_chunk()?;
        self.data = rest;
        Some(self.order.word(*word))
    }

    fn bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.data.split_at_checked(bytes)?;
        self.data = rest;
        Some(bytes)
    }

    /// The bytes behind a word that counts them and itself.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let bytes = usize::try_from(self.word()?).ok()?.checked_sub(4)?;
        let data = self.bytes(bytes)?;
        // The next entry is aligned.
        self.bytes(bytes.next_multiple_of(4) - bytes)?;
        Some(data)
    }

    fn passes(&mut self, delta: u64) {
        self.time = self.time.saturating_add(delta);
    }

    /// The next entry; `Some(None)` is one that only moves the time.
    fn step(&mut self) -> Option<Option<Entry<'a>>> {
        let head = self.word()?;
        let (kind, delta) = match self.order {
            Order::Little => (head & 0x1f, u64::from(head >> 5)),
            Order::Big => (head >> TIME_BITS, u64::from(head & ((1 << TIME_BITS) - 1))),
        };
        let data = match kind {
            PADDING if delta == 0 => return None,
            PADDING => {
                self.counted()?;
                // The kernel writes 1 where a discarded event had 0: a padding needs some time.
                self.passes(if delta == 1 { 0 } else { delta });
                return Some(None);
            }
            TIME_EXTEND => {
                let high = u64::from(self.word()?) << TIME_BITS;
                self.passes(high + delta);
                return Some(None);
            }
            TIME_STAMP => {
                let stamp = (u64::from(self.word()?) << TIME_BITS) + delta;
                self.time = absolute(stamp, self.time);
                return Some(None);
            }
            0 => self.counted()?,
            words => self.bytes(words as usize * 4)?,
        };
        self.passes(delta);
        let time = self.time;
        Some(Some(Entry::Event { time, data }))
    }
}

/// The time whose lower 59 bits are `stamp`, not long after `before`.
fn absolute(stamp: u64, before: u64) -> u64 {
    let high = before >> STAMP_BITS;
    if high == 0 {
        return stamp;
    }
    let time = high << STAMP_BITS | stamp & ((1 << STAMP_BITS) - 1);
    match time < before {
        true => time.saturating_add(1 << STAMP_BITS),
        false => time,
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if let Some(events) = self.lost.take() {
            return Some(Entry::Lost(events));
        }
        loop {
            match self.step() {
                Some(Some(entry)) => return Some(entry),
                Some(None) => {}
                None => {
                    self.data = &[];
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
