//! Where the packets of a trace are, and what they say that is no event.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::read::ZlibDecoder;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use prost::{DecodeError, Message};
use warmq_trace::perfetto::messages::{
    Bundle, BundleTimes, FtraceStats, Packet, PacketEvents, Thread,
};
use warmq_units::CpuId;

use crate::damage::Damage;
use crate::input::{CUT, Input, Stream};

/// The field and the length of a packet take no more bytes.
const LONGEST_HEAD: usize = 20;
/// No packet is longer, in bytes; nor is what one has when unpacked.
const LONGEST: u64 = 1 << 28;
/// A trace has no more bytes when unpacked: it might fill the disk.
const MOST_UNPACKED: u64 = 64 << 30;

/// Where a packet with a bundle is, and when its first event was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub first_ns: u64,
    pub offset: u64,
    pub length: u32,
}

impl Place {
    /// The events.
    pub fn bundle(&self, input: &Input) -> Result<Bundle, Damage> {
        let bytes = input.bytes(self.offset, self.length.into())?;
        let packet: PacketEvents = decoded(self.offset, &bytes)?;
        Ok(packet.events.unwrap_or_default())
    }
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
    pub machines: BTreeMap<u32, Machine>,
    /// Where reading ended before the end.
    pub damage: Option<Damage>,
}

/// A trace without compressed packets, and where its packets are.
pub(super) fn of(input: Input) -> Result<(Input, Index), Damage> {
    let (index, compressed) = Index::of(&input);
    if !compressed {
        return Ok((input, index));
    }
    let (input, cut) = unpacked(&input)?;
    let (mut index, _) = Index::of(&input);
    index.damage = index.damage.or(cut);
    Ok((input, index))
}

/// Hands each packet to `see`, with where it is.
fn each_packet(
    input: &Input,
    mut see: impl FnMut(u64, &[u8]) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut stream = input.from(0, u64::MAX);
    while stream.left() > 0 {
        let offset = stream.offset();
        let wrong = |error: DecodeError| Damage::at(offset, error.to_string());
        let mut ahead = stream.peek(LONGEST_HEAD)?;
        let before = ahead.len();
        let (field, kind) = decode_key(&mut ahead).map_err(wrong)?;
        if (field, kind) != (1, WireType::LengthDelimited) {
            let what = format!("a packet should begin here, and there is field {field}");
            return Err(Damage::at(offset, what));
        }
        let length = decode_varint(&mut ahead).map_err(wrong)?;
        let head = before - ahead.len();
        stream.skip(head as u64);
        if length > stream.left() {
            return Err(Damage::at(offset, CUT));
        }
        if length > LONGEST {
            let what = format!("a packet of {length} bytes cannot be");
            return Err(Damage::at(offset, what));
        }
        let begins = stream.offset();
        see(begins, Stream::take(&mut stream, length as usize)?)?;
    }
    Ok(())
}

/// The message at `offset`.
fn decoded<M: Message + Default>(offset: u64, bytes: &[u8]) -> Result<M, Damage> {
    M::decode(bytes).map_err(|error| Damage::at(offset, error.to_string()))
}

impl Index {
    /// Where the packets of a trace are, and whether some are compressed.
    fn of(input: &Input) -> (Index, bool) {
        let (mut index, mut compressed) = (Index::default(), false);
        let whole = each_packet(input, |offset, bytes| {
            let packet: Packet = decoded(offset, bytes)?;
            compressed |= packet.compressed.is_some();
            index.add(packet, offset, bytes.len() as u32);
            Ok(())
        });
        index.damage = whole.err();
        (index, compressed)
    }

    fn add(&mut self, packet: Packet, offset: u64, length: u32) {
        let machine = packet.machine.unwrap_or(0);
        let machine = self.machines.entry(machine).or_default();
        let mut bundle = BundleTimes::default();
        // What is damaged is reported where the events are read.
        let _ = bundle.merge(packet.events.as_deref().unwrap_or_default());
        if let Some(first_ns) = first_of(&bundle) {
            let place = Place {
                first_ns,
                offset,
                length,
            };
            machine.bytes += u64::from(length);
            // The first CPU is left out, as protobuf leaves zeros out.
            let cpu = u16::try_from(bundle.cpu.unwrap_or(0)).unwrap_or(0);
            machine.bundles.entry(CpuId(cpu)).or_default().push(place);
        }
        machine.learn(packet);
    }
}

/// The time of the first event of a bundle, if it has one.
fn first_of(bundle: &BundleTimes) -> Option<u64> {
    let first = bundle.events.first().and_then(|event| event.timestamp);
    let columns = bundle.compact.iter().flat_map(|compact| {
        let switches = compact.switch_timestamp.first();
        switches.into_iter().chain(compact.waking_timestamp.first())
    });
    first.into_iter().chain(columns.copied()).min()
}

/// The same trace, with its compressed packets unpacked, and what is wrong with it.
fn unpacked(input: &Input) -> Result<(Input, Option<Damage>), Damage> {
    let failed = |error: std::io::Error| Damage::refused(0, &error);
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut written = 0;
    let whole = each_packet(input, |offset, bytes| {
        let mut packets = Vec::new();
        match decoded::<Packet>(offset, bytes)?.compressed {
            Some(packed) => {
                let unpacked = ZlibDecoder::new(packed.as_slice())
                    .take(LONGEST)
                    .read_to_end(&mut packets);
                unpacked.map_err(|error| Damage::refused(offset, &error))?;
            }
            None => {
                encode_key(1, WireType::LengthDelimited, &mut packets);
                encode_varint(bytes.len() as u64, &mut packets);
                packets.extend_from_slice(bytes);
            }
        }
        written += packets.len() as u64;
        file.write_all(&packets).map_err(failed)?;
        match written > MOST_UNPACKED {
            true => Err(Damage::at(offset, "there is too much in it, unpacked")),
            false => Ok(()),
        }
    });
    Ok((Input::of(file).map_err(failed)?, whole.err()))
}
