//! Ring buffers. Nobody reads them here: what is written stays, and one that is full takes nothing
//! more (kernel/bpf/ringbuf.c).

use warmq_bpf::MapKind;

use crate::ending::Ending;
use crate::guest::Guest;
use crate::maps::error;

/// `BPF_RINGBUF_HDR_SZ`, before each record.
const HEADER: u64 = 8;
const EAGAIN: i64 = 11;

/// Bytes that a record takes.
fn room(size: u64) -> u64 {
    size.saturating_add(HEADER)
        .checked_next_multiple_of(8)
        .unwrap_or(u64::MAX)
}

impl Guest {
    /// A ring buffer by its handle: its index, its size, and what of that is taken.
    fn ring(&self, handle: u64, call: &'static str) -> Result<(usize, u64, u64), Ending> {
        let (at, map) = self.map(handle, call)?;
        let size = match map.kind {
            MapKind::RingBuffer => map.max_entries.into(),
            _ => 0,
        };
        Ok((at, size, self.maps[at].taken))
    }

    /// `bpf_ringbuf_reserve(ring, size, flags)`: where a record is to be written, or 0.
    pub(crate) fn ring_reserve(&mut self, handle: u64, size: u64) -> Result<u64, Ending> {
        let (at, most, taken) = self.ring(handle, "bpf_ringbuf_reserve")?;
        let all = taken.saturating_add(room(size));
        if all > most {
            return Ok(0);
        }
        self.maps[at].taken = all;
        Ok(self.maps[at].base + taken + HEADER)
    }

    /// `bpf_ringbuf_output(ring, data, size, flags)`: 0 or a negative errno.
    pub(crate) fn ring_output(&mut self, handle: u64, data: u64, size: u64) -> Result<u64, Ending> {
        let bytes = self.memory.bytes(data, size).map(<[u8]>::to_vec);
        let to = self.ring_reserve(handle, size)?;
        if to == 0 {
            return Ok(error(EAGAIN));
        }
        if let Some((record, bytes)) = self.memory.bytes_mut(to, size).zip(bytes) {
            record.copy_from_slice(&bytes);
        }
        Ok(0)
    }

    /// `bpf_ringbuf_query(ring, what)`: bytes to be read, of the ring, read so far, written so far.
    pub(crate) fn ring_query(&self, handle: u64, what: u64) -> Result<u64, Ending> {
        let (_, most, taken) = self.ring(handle, "bpf_ringbuf_query")?;
        Ok(match what {
            0 | 3 => taken,
            1 => most,
            _ => 0,
        })
    }
}
