//! The events of all CPUs in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warmq_units::CpuId;

use crate::page::{Entries, Entry, Layout};

/// The entries of one CPU, in order, each with its time.
struct Stream<'a> {
    cpu: CpuId,
    layout: &'a Layout,
    pages: Box<dyn Iterator<Item = &'a [u8]> + 'a>,
    page: Option<Entries<'a>>,
    time: u64,
}

impl<'a> Iterator for Stream<'a> {
    type Item = (u64, Entry<'a>);

    /// Events that are missing are missing from the time of the event before them.
    fn next(&mut self) -> Option<(u64, Entry<'a>)> {
        loop {
            if let Some(entry) = self.page.as_mut().and_then(Iterator::next) {
                if let Entry::Event { time, .. } = entry {
                    self.time = self.time.max(time);
                }
                return Some((self.time, entry));
            }
            self.page = Some(self.layout.entries(self.pages.next()?));
        }
    }
}

/// Hands the entries of all CPUs to `see`, the earliest first; those of one CPU in their order, and
/// those of one time in the order of CPUs.
pub(crate) fn merge<'a, P>(
    layout: &'a Layout,
    cpus: impl Iterator<Item = (CpuId, P)>,
    see: &mut dyn FnMut(u64, CpuId, Entry<'a>),
) where
    P: Iterator<Item = &'a [u8]> + 'a,
{
    let mut streams: Vec<Stream> = cpus
        .map(|(cpu, pages)| Stream {
            cpu,
            layout,
            pages: Box::new(pages),
            page: None,
            time: 0,
        })
        .collect();
    let mut heads: Vec<Option<Entry>> = Vec::new();
    let mut first = BinaryHeap::new();
    for (index, stream) in streams.iter_mut().enumerate() {
        let head = stream.next();
        first.extend(head.map(|(time, _)| Reverse((time, index))));
        heads.push(head.map(|(_, entry)| entry));
    }
    while let Some(Reverse((time, index))) = first.pop() {
        let stream = &mut streams[index];
        if let Some(entry) = heads[index].take() {
            see(time, stream.cpu, entry);
        }
        if let Some((time, entry)) = stream.next() {
            heads[index] = Some(entry);
            first.push(Reverse((time, index)));
        }
    }
}
