//! Sections of version 7: each with its kind, flags and length, compressed or not.

use super::options::Options;
use crate::damage::Damage;
use crate::input::{Input, Stream};
use crate::order::Order;
use crate::tracing_data::TracingData;
use crate::unpack::unpack;

/// Kind (2), flags (2), name (4), length (8).
const HEADER: u64 = 16;
/// The flag of a section that is compressed.
const PACKED: u16 = 1;
/// No section but that of events is longer, in bytes.
const LONGEST: u64 = 1 << 30;
/// More sections of options than these point to each other.
const MOST: usize = 1024;

/// All that is in a file, but its events.
pub(super) fn read(input: &Input, begun: TracingData) -> Result<(TracingData, Options), Damage> {
    let mut tracing = begun;
    let order = tracing.order;
    let mut stream = input.from(0, u64::MAX);
    TracingData::begin(&mut stream)?;
    let packed_by = stream.text(1 << 12)?;
    stream.text(1 << 12)?;
    let mut options = Options::default();
    options.packed_by = packed_by;
    options.next = stream.long(order)?;
    for _ in 0..MOST {
        let offset = std::mem::take(&mut options.next);
        if offset == 0 {
            break;
        }
        let mut section = section(input, offset, &options.packed_by, order)?;
        options.read(&mut section, order)?;
    }
    let packed_by = options.packed_by.clone();
    let at = |offset: Option<u64>, what: &str| {
        let offset = offset.ok_or_else(|| Damage::at(0, format!("it has no {what}")))?;
        section(input, offset, &packed_by, order)
    };
    tracing.read_pages(&mut at(options.pages, "layout of pages")?)?;
    tracing.read_systems(&mut at(options.formats, "formats of events")?)?;
    for buffer in &mut options.buffers {
        let mut stream = input.from(buffer.section, u64::MAX);
        stream.half(order)?;
        buffer.packed = stream.half(order)? & PACKED != 0;
    }
    Ok((tracing, options))
}

/// What is in the section at `offset`, unpacked.
fn section(input: &Input, offset: u64, packed_by: &str, order: Order) -> Result<Stream, Damage> {
    let mut stream = input.from(offset, u64::MAX);
    stream.half(order)?;
    let flags = stream.half(order)?;
    stream.word(order)?;
    let length = stream.long(order)?;
    if length > LONGEST {
        return Err(Damage::at(
            offset,
            format!("a section of {length} bytes cannot be"),
        ));
    }
    let begins = offset + HEADER;
    if flags & PACKED == 0 {
        return Ok(input.from(begins, begins.saturating_add(length)));
    }
    let (packed, unpacked) = (stream.word(order)?, stream.word(order)?);
    let bytes = input.bytes(stream.offset(), packed.into())?;
    let bytes = unpack(&bytes, packed_by, unpacked as usize);
    let bytes = bytes.map_err(|why| Damage::at(offset, why))?;
    Ok(Input::of_bytes(bytes).from(0, u64::MAX))
}
