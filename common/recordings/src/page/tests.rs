use proptest::prelude::*;

use super::*;

pub(crate) const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

/// Writes pages as the kernel does (`kernel/trace/ring_buffer.c`).
#[derive(Default)]
pub(crate) struct Pages {
    pub bytes: Vec<u8>,
    page: Vec<u8>,
    first: u64,
    time: u64,
    lost: Option<u64>,
}

/// The most bytes of entries in a page.
const ROOM: usize = 4080;

impl Pages {
    /// An event; its bytes are a multiple of four.
    pub fn event(&mut self, time: u64, data: &[u8]) {
        let small = data.len() <= 28 * 4 && !data.is_empty();
        let size = data.len() + if small { 4 } else { 8 };
        self.room(time, size + 8);
        let delta = self.pass(time);
        match small {
            true => self.word((delta << 5) + data.len() as u32 / 4),
            false => {
                self.word(delta << 5);
                self.word(data.len() as u32 + 4);
            }
        }
        self.page.extend_from_slice(data);
    }

    /// An event that was discarded after it was written, of `words` words.
    pub fn discarded(&mut self, time: u64, words: u32) {
        self.room(time, 16 + words as usize * 4);
        let delta = self.pass(time);
        self.word(delta.max(1) << 5 | PADDING);
        self.word(words * 4 + 4);
        (0..words).for_each(|_| self.word(0xdead_beef));
        // A discarded event of time 0 looks like one of time 1.
        if delta == 1 {
            self.time -= 1;
        }
    }

    /// An absolute time, as the kernel writes it after nested events.
    pub fn stamp(&mut self, time: u64) {
        self.room(time, 8);
        let low = time & ((1 << STAMP_BITS) - 1);
        self.word(((low & 0x7ff_ffff) as u32) << 5 | TIME_STAMP);
        self.word((low >> TIME_BITS) as u32);
        self.time = time;
    }

    /// The page ends, and `events` are lost before the next.
    pub fn lose(&mut self, events: u64) {
        self.end();
        self.lost = Some(events);
    }

    /// Ends the page.
    pub fn end(&mut self) {
        if self.page.is_empty() && self.lost.is_none() {
            return;
        }
        let mut commit = self.page.len() as u64;
        if let Some(lost) = self.lost.take() {
            commit |= MISSED;
            if lost > 0 && self.page.len() + 8 <= ROOM {
                commit |= MISSED_STORED;
                self.page.extend_from_slice(&lost.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(&self.first.to_le_bytes());
        self.bytes.extend_from_slice(&commit.to_le_bytes());
        self.page.resize(ROOM, 0);
        self.bytes.append(&mut self.page);
    }

    fn room(&mut self, time: u64, bytes: usize) {
        if self.page.len() + bytes > ROOM {
            if self.page.len() + 4 <= ROOM {
                let committed = self.page.len();
                // What is behind the padding that ends a page says nothing.
                self.word(PADDING);
                self.page.resize((committed + 12).min(ROOM), 0xff);
            }
            self.end();
        }
        if self.page.is_empty() {
            (self.first, self.time) = (time, time);
        }
    }

    fn pass(&mut self, time: u64) -> u32 {
        let delta = time - self.time;
        self.time = time;
        if delta >> TIME_BITS == 0 {
            return delta as u32;
        }
        self.word(((delta & 0x7ff_ffff) as u32) << 5 | TIME_EXTEND);
        self.word((delta >> TIME_BITS) as u32);
        0
    }

    fn word(&mut self, word: u32) {
        self.page.extend_from_slice(&word.to_le_bytes());
    }
}

/// What is written, one after the other.
#[derive(Clone, Debug)]
enum Step {
    Event(u64, Vec<u8>),
    Discarded(u64, u32),
    Stamp(u64),
    Lose(u64),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    // Below 2^59 all together: the kernel's clock counts ns since boot.
    let gap = prop_oneof![0_u64..4, 0_u64..1 << 20, 0_u64..1 << 50];
    let data = prop_oneof![
        8 => (1_usize..29).prop_map(|words| words * 4),
        1 => (29_usize..900).prop_map(|words| words * 4),
    ];
    let data = data.prop_flat_map(|bytes| prop::collection::vec(any::<u8>(), bytes));
    prop_oneof![
        20 => (gap.clone(), data).prop_map(|(gap, data)| Step::Event(gap, data)),
        2 => (gap.clone(), 1_u32..30).prop_map(|(gap, words)| Step::Discarded(gap, words)),
        2 => gap.prop_map(Step::Stamp),
        1 => (0_u64..9).prop_map(Step::Lose),
        1 => Just(Step::End),
    ]
}

fn layout() -> Layout {
    Layout::parse(HEADER_PAGE, Order::Little).unwrap()
}

fn entries(bytes: &[u8]) -> Vec<Entry<'_>> {
    let layout = layout();
    let pages = bytes.chunks_exact(layout.size);
    pages.flat_map(|page| layout.entries(page)).collect()
}

#[test]
fn the_layout_of_pages_is_read() {
    let layout = layout();
    assert_eq!((layout.data, layout.size), (16, 4096));
    for (from, to) in [
        ("timestamp", "time"),
        ("commit", "x"),
        ("data", "x"),
        ("size:4080", "size:0"),
        ("size:4080", "size:99999999999"),
        ("offset:16", "offset:12"),
    ] {
        assert_eq!(
            Layout::parse(&HEADER_PAGE.replace(from, to), Order::Little),
            None,
            "{to}"
        );
    }
}

#[test]
fn times_above_59_bits_are_continued() {
    let high = 1 << STAMP_BITS;
    assert_eq!(absolute(7, 5), 7);
    assert_eq!(absolute(7, high + 5), high + 7);
    assert_eq!(
        absolute(7, 2 * high - 5),
        2 * high + 7,
        "they overflowed in between"
    );
}

proptest! {
    #[test]
    fn events_come_back_from_pages(start in 0_u64..1 << 40, steps in prop::collection::vec(step(), 0..200)) {
        let (mut pages, mut expected, mut time) = (Pages::default(), Vec::new(), start);
        let mut lost = None;
        for step in &steps {
            match step {
                Step::Event(gap, data) => {
                    time += gap;
                    pages.event(time, data);
                    expected.extend(lost.take().map(Entry::Lost));
                    expected.push(Entry::Event { time, data });
                }
                Step::Discarded(gap, words) => {
                    time += gap;
                    pages.discarded(time, *words);
                    expected.extend(lost.take().map(Entry::Lost));
                }
                Step::Stamp(gap) => {
                    time += gap;
                    pages.stamp(time);
                    expected.extend(lost.take().map(Entry::Lost));
                }
                // Two gaps without a page between them are one.
                Step::Lose(_) if lost.is_some() => {}
                Step::Lose(events) => {
                    pages.lose(*events);
                    lost = Some(*events);
                }
                Step::End if lost.is_some() => {}
                Step::End => pages.end(),
            }
        }
        pages.end();
        expected.extend(lost.map(Entry::Lost));
        let read = entries(&pages.bytes);
        prop_assert_eq!(read.len(), expected.len());
        for (read, expected) in read.into_iter().zip(expected) {
            match (read, expected) {
                // A page that is full has no room for the count.
                (Entry::Lost(read), Entry::Lost(expected)) => prop_assert!(read == expected || read == 0),
                (read, expected) => prop_assert_eq!(read, expected),
            }
        }
    }

    #[test]
    fn a_page_of_anything_is_read_to_its_end(page in prop::collection::vec(any::<u8>(), 0..5_000)) {
        // Every entry takes a word of the page at least.
        prop_assert!(layout().entries(&page).count() <= page.len() / 4 + 1);
    }

    #[test]
    fn entries_of_anything_are_read_to_the_end(commit in any::<u32>(), words in prop::collection::vec(prop_oneof![any::<u32>(), 0_u32..32, (0_u32..64).prop_map(|delta| delta << 5 | 29)], 0..1_020)) {
        let mut page = vec![0; 16];
        page[8..12].copy_from_slice(&commit.to_le_bytes());
        words.iter().for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
        prop_assert!(layout().entries(&page).count() <= words.len() + 1);
    }
}
