//! Samples: one for each event, with the fields that were asked for (`perf_event_open(2)`).

use warmq_units::CpuId;

use super::header::{long, word};
use crate::order::Order;

/// Bits of `sample_type`, in the order of their values.
mod bit {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    /// A stack of branches, registers, a stack: what has a varying length, and stands between the
    /// raw data and the physical address.
    pub const VARYING: u64 = 0x7 << 11 | 1 << 18;
    /// What has eight bytes there: a weight of either kind, the source of data, a transaction.
    pub const LONG: [u64; 4] = [1 << 14, 1 << 24, 1 << 15, 1 << 17];
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const CGROUP: u64 = 1 << 21;
}

/// Bits of `read_format`.
mod read {
    pub const ENABLED: u64 = 1 << 0;
    pub const RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// Which fields the samples of an event have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// `sample_type`.
    has: u64,
    /// `read_format`.
    read: u64,
    /// Whether what is no sample has some of them at its end.
    all: bool,
}

/// The fields that what is no sample has at its end, in their order: eight bytes each.
const ASIDE: [u64; 6] = [
    bit::TID,
    bit::TIME,
    bit::ID,
    bit::STREAM_ID,
    bit::CPU,
    bit::IDENTIFIER,
];

impl Fields {
    /// Of these types; `all`: also of what is no sample.
    pub fn of(has: u64, read: u64, all: bool) -> Fields {
        Fields { has, read, all }
    }

    #[inline]
    fn has(&self, bit: u64) -> bool {
        self.has & bit != 0
    }

    /// Where the id is in a sample.
    pub fn id_offset(&self) -> Option<usize> {
        if self.has(bit::IDENTIFIER) {
            return Some(0);
        }
        let before = [bit::IP, bit::TID, bit::TIME, bit::ADDR];
        let before = before.iter().filter(|bit| self.has(**bit)).count();
        self.has(bit::ID).then_some(8 * before)
    }

    /// How many bytes what is no sample has at its end.
    pub fn aside_bytes(&self) -> usize {
        let fields = ASIDE.iter().filter(|bit| self.has(**bit)).count();
        if self.all { 8 * fields } else { 0 }
    }
}

/// An address of data that a sample has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The process that touched it, if samples say so.
    pub process: Option<u32>,
    /// Its address there.
    pub address: u64,
    /// Its physical address, if that was asked for and found.
    pub physical: Option<u64>,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// When, in ns, and where; `None` where samples do not say so.
    pub at: Option<(u64, CpuId)>,
    /// Who ran.
    pub tid: Option<u32>,
    /// Which data it is of.
    pub touched: Option<Touched>,
    /// The id of the group in which it is.
    pub cgroup: Option<u64>,
    /// The bytes of the tracepoint.
    pub raw: Option<&'a [u8]>,
}

impl<'a> Sample<'a> {
    /// Reads it; `None` if it is too short.
    #[inline]
    pub fn read(body: &'a [u8], fields: &Fields, order: Order) -> Option<Sample<'a>> {
        let mut at = 0;
        let mut next = |bit: u64| {
            let here = fields.has(bit).then_some(at);
            at += if here.is_some() { 8 } else { 0 };
            here
        };
        next(bit::IDENTIFIER);
        next(bit::IP);
        let tid = next(bit::TID);
        let ns = next(bit::TIME);
        let address = next(bit::ADDR);
        next(bit::ID);
        next(bit::STREAM_ID);
        let cpu = next(bit::CPU);
        next(bit::PERIOD);
        if fields.has(bit::READ) {
            at += read_bytes(body, at, fields.read, order)?;
        }
        if fields.has(bit::CALLCHAIN) {
            at = after_list(at, long(body, at, order)?, 8)?;
        }
        let mut raw = None;
        if fields.has(bit::RAW) {
            let bytes = word(body, at, order)? as usize;
            raw = Some(body.get(at + 4..)?.get(..bytes)?);
            at += (4 + bytes).next_multiple_of(8);
        }
        at += 8 * bit::LONG.iter().filter(|bit| fields.has(**bit)).count();
        let mut after = |bit: u64| {
            let here = fields.has(bit) && !fields.has(bit::VARYING);
            let found = here.then(|| long(body, at, order)).flatten();
            at += if here { 8 } else { 0 };
            found
        };
        let physical = after(bit::PHYS_ADDR).filter(|physical| *physical != 0);
        let cgroup = after(bit::CGROUP);
        let place = |(ns, cpu)| {
            let cpu = u16::try_from(word(body, cpu, order)?).ok()?;
            Some((long(body, ns, order)?, CpuId(cpu)))
        };
        let touched = |address| Touched {
            process: tid.and_then(|pid| word(body, pid, order)),
            address,
            physical,
        };
        Some(Sample {
            at: ns.zip(cpu).and_then(place),
            tid: tid.and_then(|tid| word(body, tid + 4, order)),
            touched: address
                .and_then(|at| long(body, at, order))
                .filter(|address| *address != 0)
                .map(touched),
            cgroup,
            raw,
        })
    }
}

/// Where a list of `count` items of `size` bytes ends, whose count stands at `at`.
fn after_list(at: usize, count: u64, size: usize) -> Option<usize> {
    let bytes = usize::try_from(count).ok()?.checked_mul(size)?;
    at.checked_add(8)?.checked_add(bytes)
}

/// How many bytes the values of counters have.
fn read_bytes(body: &[u8], at: usize, format: u64, order: Order) -> Option<usize> {
    let has = |bit: u64| usize::from(format & bit != 0);
    let times = has(read::ENABLED) + has(read::RUNNING);
    let each = 1 + has(read::ID) + has(read::LOST);
    match format & read::GROUP != 0 {
        false => Some(8 * (times + each)),
        true => {
            let counters = long(body, at, order)?;
            let end = after_list(8 * times, counters, 8 * each)?;
            (end <= body.len()).then_some(end)
        }
    }
}

/// Time and CPU of what is no sample.
pub(crate) fn aside(body: &[u8], fields: &Fields, order: Order) -> Option<(u64, CpuId)> {
    let from = body.len().checked_sub(fields.aside_bytes())?;
    let place = |bit: u64| {
        let index = ASIDE.iter().position(|one| *one == bit)?;
        let before = ASIDE[..index].iter().filter(|bit| fields.has(**bit));
        (fields.all && fields.has(bit)).then_some(from + 8 * before.count())
    };
    let ns = long(body, place(bit::TIME)?, order)?;
    let cpu = place(bit::CPU).and_then(|at| word(body, at, order));
    // What was made up while a recording began has no CPU.
    let cpu = cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(0);
    Some((ns, CpuId(cpu)))
}
