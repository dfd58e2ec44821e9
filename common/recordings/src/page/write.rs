//! Writes pages as the reader beside it reads them, for events that do not come from tracefs.

use super::{MISSED, MISSED_STORED, TIME_BITS, TIME_EXTEND};

/// The layout of the pages, as `events/header_page` would describe it.
pub const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";
/// The most bytes of entries in a page, and the bytes of a page.
const ROOM: usize = 4080;
const PAGE: usize = 4096;
/// Pages of one piece of memory: pieces are never moved.
const PIECE: usize = 64;
/// The number of lost events stands behind the last entry.
const COUNT: usize = 8;
/// The longest event whose length fits into the first word of its entry.
const SHORT: usize = 28 * 4;
/// The longest event: its page may have a count, an extended time, and a word with its length.
const LONGEST: usize = ROOM - COUNT - 8 - 8;

/// The pages of one CPU, being written.
#[derive(Debug, Default)]
pub struct Pages {
    pieces: Vec<Vec<u8>>,
    /// The entries of the page that is not full yet.
    page: Vec<u8>,
    /// The time of the page's first event, and of the last one.
    first: u64,
    time: u64,
    /// Events that are missing before this page.
    lost: u64,
    written: usize,
}

impl Pages {
    /// An event, whose bytes are a multiple of four and fewer than a page's. One that is older than
    /// the one before it (an interrupt came while it was written) counts as of that one's time.
    pub fn event(&mut self, time: u64, data: &[u8]) {
        assert!(
            data.len().is_multiple_of(4) && (4..=LONGEST).contains(&data.len()),
            "an event of {} bytes",
            data.len()
        );
        let length = if data.len() <= SHORT { 4 } else { 8 };
        let count = if self.lost > 0 { COUNT } else { 0 };
        // Its time may have to be extended, which takes two words.
        if self.page.len() + 8 + length + data.len() + count > ROOM {
            self.end_page();
        }
        if self.page.is_empty() {
            // Not before the last one of the page before.
            self.first = time.max(self.time);
            self.time = self.first;
        }
        let delta = self.pass(time);
        if data.len() <= SHORT {
            self.word((delta << 5) + data.len() as u32 / 4);
        } else {
            self.word(delta << 5);
            self.word(data.len() as u32 + 4);
        }
        self.page.extend_from_slice(data);
    }

    /// Events are missing here.
    pub fn lose(&mut self, events: u64) {
        if events == 0 {
            return;
        }
        self.end_page();
        self.lost = self.lost.saturating_add(events);
    }

    /// How many bytes of whole pages there are.
    pub fn bytes(&self) -> usize {
        self.written
    }

    /// All pages, in pieces, and how many events are missing after the last one.
    pub fn finish(mut self) -> (Vec<Vec<u8>>, u64) {
        self.end_page();
        (self.pieces, self.lost)
    }

    /// Ends a page that has events. What is missing before them stands in it.
    fn end_page(&mut self) {
        if self.page.is_empty() {
            return;
        }
        let mut commit = self.page.len() as u64;
        if self.lost > 0 {
            commit |= MISSED | MISSED_STORED;
            self.page.extend_from_slice(&self.lost.to_le_bytes());
            self.lost = 0;
        }
        self.page.resize(ROOM, 0);
        let full = |piece: &Vec<u8>| piece.len() + PAGE > piece.capacity();
        if self.pieces.last().is_none_or(full) {
            self.pieces.push(Vec::with_capacity(PIECE * PAGE));
        }
        let piece = self.pieces.last_mut().expect("one was just made");
        piece.extend_from_slice(&self.first.to_le_bytes());
        piece.extend_from_slice(&commit.to_le_bytes());
        piece.append(&mut self.page);
        self.written += PAGE;
    }

    /// The time since the last event, as far as it fits beside an entry's length; the rest goes
    /// into an entry of its own.
    fn pass(&mut self, time: u64) -> u32 {
        let delta = time.saturating_sub(self.time);
        self.time += delta;
        let low = (delta & ((1 << TIME_BITS) - 1)) as u32;
        let high = delta >> TIME_BITS;
        if high == 0 {
            return low;
        }
        // 59 bits, which are 18 years.
        self.word((low << 5) + TIME_EXTEND);
        self.word(u32::try_from(high).unwrap_or(u32::MAX));
        0
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Entry, Layout};
    use super::*;
    use crate::order::Order;

    #[derive(Clone, Debug)]
    enum Step {
        Event(i64, Vec<u8>),
        Lose(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let gap = prop_oneof![
            8 => 0_i64..1 << 20,
            2 => 0_i64..1 << 50,
            1 => -1_000_i64..0,
        ];
        let words = prop_oneof![8 => 1_usize..29, 1 => 29_usize..=LONGEST / 4];
        let data = words.prop_flat_map(|words| prop::collection::vec(any::<u8>(), words * 4));
        prop_oneof![
            20 => (gap, data).prop_map(|(gap, data)| Step::Event(gap, data)),
            1 => (0_u64..9).prop_map(Step::Lose),
        ]
    }

    #[test]
    fn the_layout_is_that_of_the_pages() {
        assert_eq!(
            Layout::parse(HEADER_PAGE, Order::Little).unwrap().size,
            PAGE
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(start in 0_u64..1 << 40, steps in prop::collection::vec(step(), 0..300)) {
            let (mut pages, mut expected) = (Pages::default(), Vec::new());
            let (mut time, mut last, mut lost) = (start, 0, 0);
            for step in &steps {
                match step {
                    Step::Event(gap, data) => {
                        time = time.saturating_add_signed(*gap);
                        last = time.max(last);
                        pages.event(time, data);
                        expected.extend((lost > 0).then_some(Entry::Lost(lost)));
                        expected.push(Entry::Event { time: last, data });
                        lost = 0;
                    }
                    Step::Lose(events) => {
                        pages.lose(*events);
                        lost += events;
                    }
                }
            }
            let (pieces, after) = pages.finish();
            prop_assert_eq!(after, lost);
            let layout = Layout::parse(HEADER_PAGE, Order::Little).unwrap();
            prop_assert!(pieces.iter().all(|piece| piece.len() % layout.size == 0));
            let pages = pieces.iter().flat_map(|piece| piece.chunks_exact(layout.size));
            let read: Vec<Entry> = pages.flat_map(|page| layout.entries(page)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
