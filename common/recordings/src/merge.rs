//! The events of all CPUs in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use warmq_units::CpuId;

use crate::decode::Decoders;
use crate::event::{Item, Said};
use crate::page::{Entry, Layout};

/// How pages are read.
#[derive(Debug)]
pub struct Way {
    /// What pages are like.
    pub layout: Layout,
    /// What events are like.
    pub decoders: Decoders,
}

/// What one CPU says, in pieces: those of a page, or of whatever a format has.
pub trait Pieces {
    /// What is needed to read a piece.
    type Way;

    /// Adds what the next piece says to `said`, in order, with times. False if there is none.
    fn next(&mut self, way: &Self::Way, said: &mut VecDeque<(u64, Item)>) -> bool;
}

/// Pages of the kernel, which are read one after the other. Events that are missing are missing
/// from the time of the event before them.
pub struct Paged<P> {
    pages: P,
    time: u64,
}

impl<P> Paged<P> {
    /// These pages.
    pub fn of(pages: P) -> Paged<P> {
        Paged { pages, time: 0 }
    }
}

impl<P: Iterator<Item: AsRef<[u8]>>> Pieces for Paged<P> {
    type Way = Way;

    fn next(&mut self, way: &Way, said: &mut VecDeque<(u64, Item)>) -> bool {
        let Some(page) = self.pages.next() else {
            return false;
        };
        for entry in way.layout.entries(page.as_ref()) {
            let item = match entry {
                Entry::Lost(events) => Some(Item::Lost(events)),
                Entry::Event { time, data } => {
                    self.time = self.time.max(time);
                    way.decoders.read(data).map(Item::Event)
                }
            };
            said.extend(item.map(|item| (self.time, item)));
        }
        true
    }
}

/// What one CPU says, in order, each with its time.
struct Stream<P> {
    cpu: CpuId,
    pieces: P,
    /// What the piece says that was read last.
    piece: VecDeque<(u64, Item)>,
    /// What was read ahead.
    ahead: Option<(u64, Item)>,
    /// The thread that runs after the last event, if known, and the time of that.
    runs: Option<(u64, u32)>,
}

impl<P: Pieces> Stream<P> {
    fn new(cpu: CpuId, pieces: P) -> Stream<P> {
        Stream {
            cpu,
            pieces,
            piece: VecDeque::new(),
            ahead: None,
            runs: None,
        }
    }

    fn entry(&mut self, way: &P::Way) -> Option<(u64, Item)> {
        while self.piece.is_empty() {
            if !self.pieces.next(way, &mut self.piece) {
                return None;
            }
        }
        self.piece.pop_front()
    }

    /// The next entry. If it is of another thread than the one that ran here, a switch is missing
    /// before it, and that comes first, with the time of the entry before.
    fn next(&mut self, way: &P::Way) -> Option<(u64, Item)> {
        let (time, item) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.entry(way)?,
        };
        let Item::Event(event) = item else {
            self.runs = None;
            return Some((time, item));
        };
        match (self.runs, event.tid) {
            (Some((since, runs)), Some(tid)) if runs != tid => {
                self.runs = None;
                self.ahead = Some((time, item));
                Some((since, Item::Runs(tid)))
            }
            _ => {
                self.runs = event.runs_after().map(|tid| (time, tid));
                Some((time, item))
            }
        }
    }
}

/// What all CPUs say, the earliest first; what one CPU says in its order, and what is said at one
/// time in the order of CPUs.
pub struct Merged<P> {
    streams: Vec<Stream<P>>,
    // The next entry of each stream that has one.
    heads: Vec<Option<Item>>,
    first: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<P: Pieces> Merged<P> {
    /// Of the pieces of each CPU.
    pub fn new(way: &P::Way, cpus: impl Iterator<Item = (CpuId, P)>) -> Merged<P> {
        let streams = cpus.map(|(cpu, pieces)| Stream::new(cpu, pieces));
        let mut merged = Merged {
            streams: streams.collect(),
            heads: Vec::new(),
            first: BinaryHeap::new(),
        };
        merged.heads.resize(merged.streams.len(), None);
        (0..merged.streams.len()).for_each(|index| merged.read(way, index));
        merged
    }

    fn read(&mut self, way: &P::Way, index: usize) {
        if let Some((time, item)) = self.streams[index].next(way) {
            self.heads[index] = Some(item);
            self.first.push(Reverse((time, index)));
        }
    }

    /// What is said next.
    pub fn next(&mut self, way: &P::Way) -> Option<Said> {
        let Reverse((ns, index)) = self.first.pop()?;
        let item = self.heads[index].take()?;
        let cpu = self.streams[index].cpu;
        self.read(way, index);
        Some(Said { ns, cpu, item })
    }
}
