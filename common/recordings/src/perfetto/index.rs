//! Where the packets of a trace are, and what they say that is no event.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::read::ZlibDecoder;
use prost::Message;
use warmq_trace::perfetto::messages::{FtraceStats, Packet, Thread};
use warmq_units::CpuId;

use crate::damage::Damage;
use crate::input::{Input, Stream};

/// Tags of fields of a packet, and of a bundle.
mod tag {
    pub const EVENTS: u64 = 1;
    pub const COMPRESSED: u64 = 50;
    pub const MACHINE: u64 = 98;
    pub const CPU: u64 = 1;
    pub const EVENT: u64 = 2;
    pub const COMPACT: u64 = 4;
    pub const TIME: u64 = 1;
    pub const WAKING_TIME: u64 = 7;
}

/// No packet is longer, in bytes; nor is what one has when unpacked.
const LONGEST: u64 = 1 << 28;
/// A trace has no more bytes when unpacked: it might fill the disk.
const MOST_UNPACKED: u64 = 64 << 30;

/// Where a bundle is, and when its first event was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub first_ns: u64,
    pub offset: u64,
    pub length: u32,
}

/// A machine of a trace, which may have several.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    /// The bundles of each CPU.
    pub bundles: BTreeMap<CpuId, Vec<Place>>,
    pub bytes: u64,
    pub threads: Vec<Thread>,
    /// Processes: their first threads have their ids.
    pub processes: Vec<u32>,
    pub release: String,
    /// Events that the kernel wrote over before they were read, at the beginning and at the end.
    overrun: (u64, u64),
}

impl Machine {
    /// Events that were written over while it was recorded.
    pub fn overrun(&self) -> u64 {
        self.overrun.1.saturating_sub(self.overrun.0)
    }

    fn learn(&mut self, packet: Packet) {
        if let Some(tree) = packet.process_tree {
            let pids = tree.processes.iter().filter_map(|process| process.pid);
            self.processes.extend(pids.map(i32::cast_unsigned));
            self.threads.extend(tree.threads);
        }
        let utsname = packet.system_info.and_then(|info| info.utsname);
        if let Some(release) = utsname.and_then(|utsname| utsname.release) {
            self.release = release;
        }
        if let Some(stats) = packet.ftrace_stats {
            let all = |stats: &FtraceStats| stats.cpus.iter().filter_map(|cpu| cpu.overrun).sum();
            match stats.phase {
                Some(1) => self.overrun.0 = all(&stats),
                _ => self.overrun.1 = all(&stats),
            }
        }
    }
}

/// Everything in a trace but its events.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Machines by their ids; 0 is the one that recorded.
    pub machines: BTreeMap<u64, Machine>,
    /// Where reading ended before the end.
    pub damage: Option<Damage>,
}

/// A trace without compressed packets, and where its packets are.
pub(super) fn of(input: Input) -> Result<(Input, Index), Damage> {
    let mut index = Index::default();
    let mut compressed = false;
    let whole = each_packet(&input, &mut |stream, length| {
        compressed |= index.add(stream, length)?;
        Ok(())
    });
    index.damage = whole.err();
    if !compressed {
        return Ok((input, index));
    }
    let (input, cut) = unpacked(&input)?;
    let mut index = Index::default();
    let whole = each_packet(&input, &mut |stream, length| {
        index.add(stream, length).map(drop)
    });
    index.damage = whole.err().or(cut);
    Ok((input, index))
}

/// Hands each packet to `see`, at its beginning, with its length.
fn each_packet(
    input: &Input,
    see: &mut dyn FnMut(&mut Stream, u64) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut stream = input.from(0, u64::MAX);
    while stream.left() > 0 {
        let offset = stream.offset();
        let (field, kind) = field(&mut stream)?;
        if (field, kind) != (1, 2) {
            let what = format!("a packet should begin here, and there is field {field}");
            return Err(Damage::at(offset, what));
        }
        let length = varint(&mut stream)?;
        if length > stream.left() {
            return Err(Damage::at(offset, "the file ends here: it is cut off"));
        }
        if length > LONGEST {
            return Err(Damage::at(
                offset,
                format!("a packet of {length} bytes cannot be"),
            ));
        }
        let end = stream.offset() + length;
        see(&mut stream, length)?;
        stream.skip(end.saturating_sub(stream.offset()));
    }
    Ok(())
}

impl Index {
    /// Adds the packet at `stream`. True if it has compressed packets.
    fn add(&mut self, stream: &mut Stream, length: u64) -> Result<bool, Damage> {
        let end = stream.offset() + length;
        let (mut machine, mut bundle, mut compressed) = (0, None, false);
        let mut other = Vec::new();
        while stream.offset() < end {
            let offset = stream.offset();
            let (tag, kind) = field(stream)?;
            match (tag, kind) {
                (tag::EVENTS, 2) => {
                    let length = within(varint(stream)?, stream, end)?;
                    let place = (stream.offset(), length as u32);
                    bundle = Some(place);
                    stream.skip(length);
                }
                (tag::MACHINE, 0) => machine = varint(stream)?,
                (tag::COMPRESSED, 2) => {
                    compressed = true;
                    pass(stream, kind, end)?;
                }
                (2 | 34 | 45, 2) => {
                    pass(stream, kind, end)?;
                    other.push((offset, stream.offset() - offset));
                }
                _ => pass(stream, kind, end)?,
            }
        }
        let machine = self.machines.entry(machine).or_default();
        let input = stream.input();
        for (offset, length) in other {
            let bytes = input.bytes(offset, length)?;
            let packet = Packet::decode(bytes.as_slice());
            machine.learn(packet.map_err(|error| Damage::at(offset, error.to_string()))?);
        }
        if let Some((offset, length)) = bundle {
            let mut inside = input.from(offset, offset + u64::from(length));
            if let Some((cpu, first_ns)) = first_of(&mut inside)? {
                let place = Place {
                    first_ns,
                    offset,
                    length,
                };
                machine.bytes += u64::from(length);
                machine.bundles.entry(cpu).or_default().push(place);
            }
        }
        Ok(compressed)
    }
}

/// The CPU of a bundle, and the time of its first event; `None` if it has neither.
fn first_of(stream: &mut Stream) -> Result<Option<(CpuId, u64)>, Damage> {
    let end = stream.offset() + stream.left();
    let (mut cpu, mut first) = (None, None::<u64>);
    while stream.left() > 0 {
        match field(stream)? {
            (tag::CPU, 0) => cpu = u16::try_from(varint(stream)?).ok(),
            (tag::EVENT, 2) if first.is_none() => {
                let length = within(varint(stream)?, stream, end)?;
                let end = stream.offset() + length;
                while stream.offset() < end {
                    match field(stream)? {
                        (tag::TIME, 0) => first = Some(varint(stream)?),
                        (_, kind) => pass(stream, kind, end)?,
                    }
                }
            }
            (tag::COMPACT, 2) => {
                let length = within(varint(stream)?, stream, end)?;
                let end = stream.offset() + length;
                while stream.offset() < end {
                    match field(stream)? {
                        (tag::TIME | tag::WAKING_TIME, 2) => {
                            let length = within(varint(stream)?, stream, end)?;
                            let after = stream.offset() + length;
                            if length > 0 {
                                let time = varint(stream)?;
                                first = Some(first.map_or(time, |first| first.min(time)));
                            }
                            stream.skip(after.saturating_sub(stream.offset()));
                        }
                        (_, kind) => pass(stream, kind, end)?,
                    }
                }
            }
            (_, kind) => pass(stream, kind, end)?,
        }
    }
    // The first CPU is left out, as protobuf leaves zeros out.
    let cpu = CpuId(cpu.unwrap_or(0));
    Ok(first.map(|first| (cpu, first)))
}

/// A length, if so much follows before `end`.
fn within(length: u64, stream: &Stream, end: u64) -> Result<u64, Damage> {
    match stream
        .offset()
        .checked_add(length)
        .is_some_and(|after| after <= end)
    {
        true => Ok(length),
        false => Err(Damage::at(
            stream.offset(),
            "a field is longer than its message",
        )),
    }
}

/// The number and the kind of the next field.
fn field(stream: &mut Stream) -> Result<(u64, u64), Damage> {
    let tag = varint(stream)?;
    Ok((tag >> 3, tag & 7))
}

/// Passes over the value of a field.
fn pass(stream: &mut Stream, kind: u64, end: u64) -> Result<(), Damage> {
    let length = match kind {
        0 => return varint(stream).map(drop),
        1 => 8,
        2 => varint(stream)?,
        5 => 4,
        _ => {
            let what = format!("a field of kind {kind} cannot be");
            return Err(Damage::at(stream.offset(), what));
        }
    };
    let length = within(length, stream, end)?;
    stream.skip(length);
    Ok(())
}

fn varint(stream: &mut Stream) -> Result<u64, Damage> {
    let offset = stream.offset();
    let ahead = stream.peek(10)?;
    let mut value = 0;
    for (place, byte) in ahead.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            stream.skip(place as u64 + 1);
            return Ok(value);
        }
    }
    Err(Damage::at(offset, "a number has no end here"))
}

/// The same trace, with its compressed packets unpacked, and what is wrong with it.
fn unpacked(input: &Input) -> Result<(Input, Option<Damage>), Damage> {
    let failed = |error: std::io::Error| Damage::refused(0, &error);
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut written = 0;
    let whole = each_packet(input, &mut |stream, length| {
        let begins = stream.offset();
        let end = begins + length;
        let mut found = false;
        while stream.offset() < end {
            let (tag, kind) = field(stream)?;
            if (tag, kind) != (tag::COMPRESSED, 2) {
                pass(stream, kind, end)?;
                continue;
            }
            found = true;
            let length = within(varint(stream)?, stream, end)?;
            let offset = stream.offset();
            let bytes = stream.take(length as usize)?;
            let mut packets = Vec::new();
            let unpacked = ZlibDecoder::new(bytes)
                .take(LONGEST)
                .read_to_end(&mut packets);
            unpacked.map_err(|error| Damage::refused(offset, &error))?;
            written += packets.len() as u64;
            file.write_all(&packets).map_err(failed)?;
        }
        if !found {
            let bytes = stream.input().bytes(begins, length)?;
            let mut head = Vec::new();
            prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut head);
            prost::encoding::encode_varint(length, &mut head);
            written += head.len() as u64 + length;
            let all = file.write_all(&head).and_then(|()| file.write_all(&bytes));
            all.map_err(failed)?;
        }
        match written > MOST_UNPACKED {
            true => Err(Damage::at(begins, "there is too much in it, unpacked")),
            false => Ok(()),
        }
    });
    Ok((Input::of(file).map_err(failed)?, whole.err()))
}
