//! A trace as a file: a [`Writer`] that observes a run, and a [`Reader`] that plays it again.
//!
//! ```text
//!     file    := header record* end
//!     header  := 0x89 "WarmQ" CR LF  version  about              version := one byte, now 2
//!     about   := count  (text text)*  checksum                   a key and its value, as [`Header`](crate::Header)
//!     record  := kind  time  word*                               kind    := one byte, 1 to 37
//!     end     := 0x00  count  digest                             digest  := 8 bytes, low byte first
//!
//!     time    := varint of the zigzag of the difference to the time before (0 at first), in ps
//!     word    := varint; how many there are depends on the kind alone (see [`Digest`](crate::Digest))
//!     count   := varint: how many records there are
//!     text    := varint of its bytes, UTF-8
//!     checksum := xxh3_64 of the bytes of `about` before it, low byte first
//!     varint  := 7 bits a byte, lowest first; the top bit says that more follow
//!     zigzag  := 0, -1, 1, -2, 2... become 0, 1, 2, 3, 4...
//! ```
//!
//! The header detects a transfer that treats the file as text (as PNG's does), the end mark detects
//! truncation, and the digest all other damage. Kinds are added, never changed; a change of
//! anything else makes a new version. Format 1 has no `about`, and is read as well.

mod reader;
mod writer;

pub use reader::{Damage, ReadError, Reader};
pub use writer::Writer;

const MAGIC: [u8; 8] = *b"\x89WarmQ\r\n";
/// Whether a file that begins with `head` is a trace.
pub fn is_trace(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Files of this format are still read.
const FIRST_VERSION: u8 = 1;
const VERSION: u8 = 2;
const END: u8 = 0;

#[cfg(test)]
mod tests;
