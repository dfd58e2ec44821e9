//! What was recorded: pages of the kernel, and how to read them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use prost::{DecodeError, Message};
use thiserror::Error;
use warmq_trace::Record;
use warmq_units::{CpuId, Duration, Instant};

use crate::Tasks;
use crate::convert::{Known, Replay};
use crate::decode::Decoders;
use crate::event::Said;
use crate::merge::{Merged, Paged, Way};
use crate::order::Order;
use crate::page::Layout;

/// The first bytes of a recording in a file.
const MAGIC: &[u8; 16] = b"warmq-recording\x02";

/// What a kernel said while it was recorded: its pages as they are, and the formats that they are
/// written in.
pub struct Recording {
    raw: Raw,
    cpus: Vec<CpuPages>,
    way: Way,
    missing: Vec<String>,
    memory: Memory,
}

/// The memory of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The most bytes of events that may be kept; 0: not known.
    pub most: usize,
    /// Whether no more could be read while the recording ran.
    pub full: bool,
}

/// What a recording is kept as, beside the pages.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Raw {
    /// `events/header_page`.
    #[prost(string, tag = "1")]
    pub header_page: String,
    /// The format of each event, by its name (`SYSTEM/NAME`).
    #[prost(btree_map = "string, string", tag = "2")]
    pub formats: BTreeMap<String, String>,
    /// What was wanted and could not be had.
    #[prost(string, repeated, tag = "3")]
    pub missing: Vec<String>,
    /// The trace clock.
    #[prost(string, tag = "4")]
    pub clock: String,
    /// How far the trace clock is ahead of the monotonic one, in ns.
    #[prost(sint64, tag = "5")]
    pub ahead_ns: i64,
    /// When it ended, by the monotonic clock, in ns.
    #[prost(uint64, tag = "6")]
    pub end_ns: u64,
    /// Threads and their processes.
    #[prost(btree_map = "uint32, uint32", tag = "7")]
    pub processes: BTreeMap<u32, u32>,
    /// The interrupt lines of network cards.
    #[prost(uint32, repeated, tag = "8")]
    pub network_lines: Vec<u32>,
    /// For how long each CPU was stolen, in ns.
    #[prost(btree_map = "uint32, uint64", tag = "9")]
    pub steal: BTreeMap<u32, u64>,
}

/// What stands before the pages of a CPU: how many bytes they have.
#[derive(Clone, PartialEq, Message)]
struct CpuHead {
    #[prost(uint32, tag = "1")]
    cpu: u32,
    #[prost(uint64, tag = "2")]
    dropped: u64,
    #[prost(uint64, tag = "3")]
    bytes: u64,
}

/// Bytes that are no recording.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("byte {at}: {why}; record it again")]
pub struct Damaged {
    /// Where reading failed.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

/// The pages of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuPages {
    /// The CPU.
    pub cpu: u16,
    /// Events that the kernel had to drop at the end or whose place it does not report.
    pub dropped: u64,
    /// Pages one after the other, in pieces of whole pages.
    pub pieces: Vec<Vec<u8>>,
}

impl Recording {
    /// # Errors
    /// When the pages or events cannot be read, `at` being where they are described.
    pub fn new(raw: Raw, cpus: Vec<CpuPages>, at: usize) -> Result<Recording, Damaged> {
        let damaged = |why: &str| Damaged {
            at,
            why: why.to_owned(),
        };
        let layout = Layout::parse(&raw.header_page, Order::Little)
            .ok_or_else(|| damaged("the layout of pages is not understood"))?;
        let formats = raw.formats.iter();
        let formats = formats.map(|(name, text)| (name.as_str(), text.as_str()));
        let (decoders, unreadable) = Decoders::of(formats, Order::Little);
        let mut missing = raw.missing.clone();
        let unread = |name: &str| format!("{name}: its format is not understood");
        missing.extend(unreadable.into_iter().map(unread));
        let decoders = decoders.ok_or_else(|| damaged("no event has a format"))?;
        Ok(Recording {
            way: Way { layout, decoders },
            missing,
            raw,
            cpus,
            memory: Memory::default(),
        })
    }

    /// The same, which took this memory.
    pub fn in_memory(self, memory: Memory) -> Recording {
        Recording { memory, ..self }
    }

    /// What was wanted and is not in the recording, with the reason.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// How many bytes of events it holds.
    pub fn size(&self) -> usize {
        let pieces = self.cpus.iter().flat_map(|cpu| &cpu.pieces);
        pieces.map(Vec::len).sum()
    }

    /// How many bytes of events the recorder could have kept at most; 0 for a recording that was
    /// read from bytes.
    pub fn most_size(&self) -> usize {
        self.memory.most
    }

    /// Whether the recorder had to stop reading because it may keep no more. From then on the
    /// kernel kept the latest events only, and all others are lost, whatever the size of its
    /// buffers.
    pub fn was_full(&self) -> bool {
        self.memory.full
    }

    /// Hands the records to `out`, in the order of time; time 0 is `start_ns` of CLOCK_MONOTONIC.
    ///
    /// What happened before is not handed out, but the state that it led to: first come a switch
    /// to the running task of each CPU, a wakeup of each task that waits for a CPU, and the
    /// interrupts that are being served, as far as known, all at time 0.
    ///
    /// A task that is not known to `tasks` gets the next free id, and is introduced by `Ids` when
    /// it is first met and `Renamed` as soon as its name is known, or by `Fork` and `Ids` if it is
    /// forked here.
    ///
    /// - `Block` has no cause and no object.
    /// - `Wakeup` is only of tasks that slept; a task that was about to sleep when it was woken
    ///   has a `Waking` only. Its waker is the CPU that began to wake it.
    /// - `Waking` is never marked as synchronous: no tracepoint says it.
    /// - `Exit` is when the task leaves its CPU for the last time.
    /// - `Packet` counts the bytes from the IP header on: 28 more than the payload of a datagram.
    /// - `Steal` is once for each CPU, at the end, for the whole recording (also before the
    ///   start), in steps of 10 ms.
    /// - `Lost` is at the time of the last event before the gap.
    ///
    /// In some virtual machines the kernel does not report what some tasks do, the idle tasks among
    /// them: their switches away from a CPU and the wakeups that they cause. What must have
    /// happened is handed out all the same, each time after a `Lost` of one event:
    ///
    /// - a switch, where the next event of a CPU is of another task than the one that ran there; at
    ///   the time of the event before, or of the task's wakeup if that is later. The task that left
    ///   counts as runnable, as nobody knows.
    /// - a wakeup, where a task runs that slept; at the time of the switch.
    pub fn records(&self, tasks: &mut Tasks, start_ns: u64, out: &mut dyn FnMut(Instant, Record)) {
        let known = Known {
            processes: self.raw.processes.clone(),
            network_lines: self.raw.network_lines.clone(),
            events_only: false,
        };
        let mut replay = Replay::new(known, std::mem::take(tasks), start_ns);
        let mut hand_out = |replay: &mut Replay| {
            let records = replay.records().drain(..);
            records.for_each(|(at, record)| out(at, record));
        };
        let mut last = self.raw.end_ns;
        let pages = self.cpus.iter().map(|cpu| {
            let pages = cpu.pieces.iter();
            let pages = pages.flat_map(|piece| piece.chunks_exact(self.way.layout.size));
            (CpuId(cpu.cpu), Paged::of(pages))
        });
        let mut merged = Merged::new(&self.way, pages);
        while let Some(said) = merged.next(&self.way) {
            let ns = said
                .ns
                .saturating_add_signed(self.raw.ahead_ns.saturating_neg());
            last = last.max(ns);
            replay.take(&Said { ns, ..said });
            hand_out(&mut replay);
        }
        self.ending(last, &mut replay);
        hand_out(&mut replay);
        *tasks = replay.into_tasks();
    }

    fn ending(&self, ns: u64, replay: &mut Replay) {
        for cpu in self.cpus.iter().filter(|cpu| cpu.dropped > 0) {
            replay.lost(ns, CpuId(cpu.cpu), cpu.dropped);
        }
        for (cpu, steal) in &self.raw.steal {
            let (cpu, span) = (CpuId(*cpu as u16), Duration(steal.saturating_mul(1_000)));
            replay.add(ns, Record::Steal { cpu, span });
        }
    }

    /// The recording as bytes, from which [`Recording::from_bytes`] makes it again.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).expect("memory takes all bytes");
        bytes
    }

    /// Writes what [`Recording::to_bytes`] gives, without a second copy in memory.
    ///
    /// # Errors
    /// What `out` refuses.
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(MAGIC)?;
        out.write_all(&self.raw.encode_length_delimited_to_vec())?;
        for cpu in &self.cpus {
            let head = CpuHead {
                cpu: cpu.cpu.into(),
                dropped: cpu.dropped,
                bytes: cpu.pieces.iter().map(Vec::len).sum::<usize>() as u64,
            };
            out.write_all(&head.encode_length_delimited_to_vec())?;
            for piece in &cpu.pieces {
                out.write_all(piece)?;
            }
        }
        Ok(())
    }

    /// The recording that [`Recording::to_bytes`] made bytes of.
    ///
    /// # Errors
    /// [`Damaged`] when they are no recording.
    pub fn from_bytes(bytes: &[u8]) -> Result<Recording, Damaged> {
        let damaged = |left: &[u8], why: &str| Damaged {
            at: bytes.len() - left.len(),
            why: why.to_owned(),
        };
        let early = "the recording ends too early";
        let begins = bytes.split_at_checked(MAGIC.len());
        let (magic, mut left) = begins.ok_or_else(|| damaged(bytes, early))?;
        if magic != MAGIC {
            return Err(damaged(bytes, "this is no recording of this version"));
        }
        let described = left;
        let wrong = |at| move |error: DecodeError| damaged(at, &error.to_string());
        let raw = Raw::decode_length_delimited(&mut left).map_err(wrong(described))?;
        let mut cpus = Vec::new();
        while !left.is_empty() {
            let head = CpuHead::decode_length_delimited(&mut left).map_err(wrong(left))?;
            let pages = usize::try_from(head.bytes).ok();
            let pages = pages.and_then(|bytes| left.split_at_checked(bytes));
            let (pages, rest) = pages.ok_or_else(|| damaged(left, early))?;
            left = rest;
            cpus.push(CpuPages {
                cpu: u16::try_from(head.cpu).map_err(|_| damaged(left, "there is no such CPU"))?,
                dropped: head.dropped,
                pieces: vec![pages.to_vec()],
            });
        }
        Recording::new(raw, cpus, MAGIC.len())
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recording")
            .field("clock", &self.raw.clock)
            .field("missing", &self.missing)
            .field("cpus", &self.cpus.len())
            .field("bytes", &self.size())
            .finish()
    }
}

#[cfg(test)]
mod tests;
