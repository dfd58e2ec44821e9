//! Where packets are written: a file that keeps its first error.

use std::io::{self, Write};

use prost::Message;

use super::protos::{STATE_CLEARED, TracePacket};

/// Writes packets to a file.
#[derive(Debug)]
pub(super) struct Sink<W: Write> {
    // Invariant: once `failed` is set, nothing more is written to `to`.
    to: W,
    failed: Option<io::Error>,
    // The bytes of the packet being written; kept to reuse its allocation.
    packet: Vec<u8>,
    begun: bool,
}

impl<W: Write> Sink<W> {
    pub fn new(to: W) -> Sink<W> {
        Sink {
            to,
            failed: None,
            packet: Vec::new(),
            begun: false,
        }
    }

    /// Flushes, and returns the first write error of the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.to.flush().map(|()| self.to),
        }
    }
}

/// Anything that packets can be written to.
pub(super) trait Packets {
    fn write(&mut self, packet: TracePacket);
}

impl<W: Write> Packets for Sink<W> {
    fn write(&mut self, mut packet: TracePacket) {
        if self.failed.is_some() {
            return;
        }
        packet.trusted_packet_sequence_id = Some(1);
        packet.sequence_flags = (!self.begun).then_some(STATE_CLEARED);
        self.begun = true;
        self.packet.clear();
        // A file is the message `Trace`: packets under tag 1, each with its length.
        self.packet.push(1 << 3 | 2);
        let encoded = packet.encode_length_delimited(&mut self.packet);
        encoded.expect("a vector takes every packet");
        self.failed = self.to.write_all(&self.packet).err();
    }
}
