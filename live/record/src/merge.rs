//! The events of all CPUs in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warmq_units::CpuId;

use crate::decode::{Decoders, Event, What};
use crate::page::{Entries, Entry, Layout};

/// What a CPU says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// Events are missing here: how many, or 0 if unknown.
    Lost(u64),
    /// The next event is of this thread, which does not run here so far: its switch is missing.
    Runs(u32),
}

/// What one CPU says, in order, each with its time.
struct Stream<'a, P> {
    cpu: CpuId,
    layout: &'a Layout,
    decoders: &'a Decoders,
    pages: P,
    page: Option<Entries<'a>>,
    time: u64,
    /// What was read ahead.
    ahead: Option<(u64, Item<'a>)>,
    /// The thread that runs after the last event, if known, and the time of that.
    runs: Option<(u64, u32)>,
}

impl<'a, P: Iterator<Item = &'a [u8]>> Stream<'a, P> {
    /// The next entry of the pages. Events that are missing are missing from the time of the event
    /// before them.
    fn entry(&mut self) -> Option<(u64, Item<'a>)> {
        loop {
            match self.page.as_mut().and_then(Iterator::next) {
                Some(Entry::Lost(events)) => return Some((self.time, Item::Lost(events))),
                Some(Entry::Event { time, data }) => {
                    self.time = self.time.max(time);
                    if let Some(event) = self.decoders.read(data) {
                        return Some((self.time, Item::Event(event)));
                    }
                }
                None => self.page = Some(self.layout.entries(self.pages.next()?)),
            }
        }
    }
}

impl<'a, P: Iterator<Item = &'a [u8]>> Iterator for Stream<'a, P> {
    type Item = (u64, Item<'a>);

    /// The next entry. If it is of another thread than the one that ran here, a switch is missing
    /// before it, and that comes first, with the time of the entry before.
    fn next(&mut self) -> Option<(u64, Item<'a>)> {
        let (time, item) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.entry()?,
        };
        let Item::Event(event) = item else {
            self.runs = None;
            return Some((time, item));
        };
        match self.runs {
            Some((since, tid)) if tid != event.tid => {
                self.runs = None;
                self.ahead = Some((time, item));
                Some((since, Item::Runs(event.tid)))
            }
            _ => {
                self.runs = Some((time, runs_after(&event)));
                Some((time, item))
            }
        }
    }
}

/// The thread that runs on a CPU after an event there.
fn runs_after(event: &Event<'_>) -> u32 {
    match event.what {
        What::Switch { next, .. } => next.tid,
        What::Exec { tid, .. } => tid,
        _ => event.tid,
    }
}

/// Hands what all CPUs say to `see`, the earliest first; what one CPU says in its order, and what
/// is said at one time in the order of CPUs.
pub(crate) fn merge<'a, P>(
    layout: &'a Layout,
    decoders: &'a Decoders,
    cpus: impl Iterator<Item = (CpuId, P)>,
    see: &mut dyn FnMut(u64, CpuId, Item<'a>),
) where
    P: Iterator<Item = &'a [u8]>,
{
    let mut streams: Vec<Stream<P>> = cpus
        .map(|(cpu, pages)| Stream {
            cpu,
            layout,
            decoders,
            pages,
            page: None,
            time: 0,
            ahead: None,
            runs: None,
        })
        .collect();
    let mut heads: Vec<Option<Item>> = Vec::new();
    let mut first = BinaryHeap::new();
    for (index, stream) in streams.iter_mut().enumerate() {
        let head = stream.next();
        first.extend(head.map(|(time, _)| Reverse((time, index))));
        heads.push(head.map(|(_, item)| item));
    }
    while let Some(Reverse((time, index))) = first.pop() {
        let stream = &mut streams[index];
        if let Some(item) = heads[index].take() {
            see(time, stream.cpu, item);
        }
        if let Some((time, item)) = stream.next() {
            heads[index] = Some(item);
            first.push(Reverse((time, index)));
        }
    }
}
