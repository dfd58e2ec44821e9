//! A message as it goes over the wire.

use std::sync::OnceLock;
use std::time::Instant;

/// The size of sender, number and time of a message.
pub const LEAST_SIZE: usize = 20;

/// What a message says; the rest of its bytes are zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The room that it was sent to.
    pub room: u32,
    /// The user of the room that sent it.
    pub user: u32,
    /// Its number among the messages of that user, from 0 on.
    pub sequence: u32,
    /// When it was sent, in ns of the client's clock.
    pub sent_ns: u64,
}

impl Message {
    /// Writes it into the first bytes of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`LEAST_SIZE`].
    pub fn write(&self, bytes: &mut [u8]) {
        bytes[0..4].copy_from_slice(&self.room.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.user.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.sent_ns.to_le_bytes());
    }

    /// Reads it from the first bytes of `bytes`; `None` where there are too few.
    pub fn read(bytes: &[u8]) -> Option<Message> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        Some(Message {
            room: word(0)?,
            user: word(4)?,
            sequence: word(8)?,
            sent_ns: u64::from_le_bytes(bytes.get(12..20)?.try_into().ok()?),
        })
    }
}

/// The time in ns since this process first asked.
pub(super) fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
