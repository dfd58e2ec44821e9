//! Records that `perf record -z` compressed: one stream of zstd, cut into records.

use ruzstd::decoding::FrameDecoder;

use super::header::split;
use crate::damage::Damage;
use crate::order::Order;

/// Ends a frame: a last block without bytes. perf ends none, and the decoder keeps a window of
/// bytes back until then.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];
/// How much is unpacked at once.
const PIECE: usize = 1 << 18;

/// What was unpacked and is not read yet.
#[derive(Default)]
pub(crate) struct Packed {
    decoder: Option<FrameDecoder>,
    /// Of blocks that are not whole yet.
    packed: Vec<u8>,
    unpacked: Vec<u8>,
    at: usize,
    kept: Vec<u8>,
}

impl Packed {
    /// Unpacks the next bytes of the stream, which a record at `offset` has.
    ///
    /// # Errors
    /// They are none of zstd.
    pub fn add(&mut self, bytes: &[u8], offset: u64) -> Result<(), Damage> {
        self.packed.extend_from_slice(bytes);
        self.unpack(offset)
    }

    /// Unpacks what the decoder kept back.
    pub fn end(&mut self) -> Result<(), Damage> {
        if self
            .decoder
            .as_ref()
            .is_some_and(|decoder| !decoder.is_finished())
        {
            self.packed.extend_from_slice(&LAST_BLOCK);
            self.unpack(0)?;
        }
        Ok(())
    }

    fn unpack(&mut self, offset: u64) -> Result<(), Damage> {
        self.unpacked.drain(..self.at);
        self.at = 0;
        let decoder = self.decoder.get_or_insert_with(FrameDecoder::new);
        loop {
            let before = self.unpacked.len();
            self.unpacked.resize(before + PIECE, 0);
            let done = decoder.decode_from_to(&self.packed, &mut self.unpacked[before..]);
            let (read, written) = done.map_err(|error| {
                let what = format!("a compressed record cannot be unpacked: {error}");
                Damage::at(offset, what)
            })?;
            self.unpacked.truncate(before + written);
            self.packed.drain(..read);
            if read == 0 && written == 0 {
                if !decoder.is_finished() || self.packed.is_empty() {
                    return Ok(());
                }
                // Another frame begins.
                *decoder = FrameDecoder::new();
            }
        }
    }

    /// The kind and the bytes of the next record that is whole.
    ///
    /// # Errors
    /// One is shorter than its header.
    pub fn record(&mut self, order: Order, offset: u64) -> Result<Option<(u32, Vec<u8>)>, Damage> {
        let ahead = &self.unpacked[self.at..];
        let Some(head) = ahead.first_chunk() else {
            return Ok(None);
        };
        let (kind, _, length) = split(*head, order);
        let length = usize::from(length);
        if length < head.len() {
            return Err(Damage::at(
                offset,
                "a compressed record is shorter than its header",
            ));
        }
        let Some(body) = ahead.get(head.len()..length) else {
            return Ok(None);
        };
        let mut bytes = std::mem::take(&mut self.kept);
        bytes.clear();
        bytes.extend_from_slice(body);
        self.at += length;
        Ok(Some((kind, bytes)))
    }

    /// Takes back the memory of a record.
    pub fn keep(&mut self, bytes: Vec<u8>) {
        self.kept = bytes;
    }
}
