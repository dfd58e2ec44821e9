//! Pairs of Unix stream sockets: what is sent waits as the messages that calls made of it, and each
//! is charged to the sender's buffer until all of it is received (`unix_stream_sendmsg()`,
//! `unix_stream_read_generic()`).

use warmq_units::Bytes;

use crate::core::net::{Datagram, Endpoint};

/// A page of x86, of which messages have whole ones.
pub(crate) const PAGE: u64 = 4_096;
/// `SKB_MAX_HEAD(0)`: the bytes of a message that are in one piece with its `skb_shared_info`.
const HEAD: u64 = PAGE - SHARED_INFO;
/// `struct skb_shared_info` in whole lines.
pub(crate) const SHARED_INFO: u64 = 320;
/// `struct sk_buff` in whole lines.
pub(crate) const SK_BUFF: u64 = 256;
/// The longest message: one head, and `UNIX_SKB_FRAGS_SZ` in pages. Seen under 6.18, where a send
/// of 64 KB is two.
const LONGEST: u64 = HEAD + 32_768;

/// The memory that a message of `bytes` is charged with (`skb->truesize`). Pages have all of it
/// that no head has room for; then a head has what is left over.
///
/// How many messages fit into a buffer of 212,992 bytes under 6.18.44, by their size: 278 of 1 to
/// 192 bytes, 167 of 256 to 700, 93 of 1,000, 44 of 4,096, 24 of 8,192.
fn message_true_size(bytes: Bytes) -> u64 {
    let beyond = bytes.0.saturating_sub(HEAD).next_multiple_of(PAGE);
    let pages = beyond.min(bytes.0);
    let head = (bytes.0 - pages).next_multiple_of(64) + SHARED_INFO;
    SK_BUFF + head.next_power_of_two() + pages.next_multiple_of(PAGE)
}

impl Endpoint {
    /// How much of `left` bytes the next message to here has, and what it is charged with; `None`:
    /// the sender's buffer is full.
    pub(crate) fn next_message(&self, left: u64) -> Option<(u64, u64)> {
        let half = (self.capacity / 2).saturating_sub(64).max(1);
        let bytes = left.min(half).min(LONGEST);
        let has_room = self.queued_true < self.capacity;
        has_room.then(|| (bytes, message_true_size(Bytes(bytes))))
    }

    /// A message of `bytes` that was charged before can be received.
    pub(crate) fn queue_message(&mut self, bytes: Bytes) {
        self.filled += bytes.0;
        let message = Datagram::local(bytes, message_true_size(bytes));
        self.queued.push_back(message);
    }

    /// A receiver begins to take `bytes` of those that wait. Messages of which nothing is left are
    /// charged no more. Returns of how many messages they are.
    pub(crate) fn take_messages(&mut self, bytes: u64) -> u64 {
        self.filled -= bytes;
        self.reserved += bytes;
        self.read += self.queued_true;
        let messages = self.pop(bytes);
        self.read -= self.queued_true;
        messages
    }

    /// The oldest `bytes` leave the messages, or the pages of a pipe, that have them. Returns how
    /// many those are.
    pub(crate) fn pop(&mut self, bytes: u64) -> u64 {
        let (mut left, mut messages) = (bytes, 0);
        while let Some(first) = self.queued.front_mut().filter(|_| left > 0) {
            let taken = left.min(first.bytes.0);
            left -= taken;
            messages += 1;
            first.bytes.0 -= taken;
            if first.bytes.0 == 0 {
                self.queued_true -= first.true_size;
                self.queued.pop_front();
            }
        }
        messages
    }

    /// Whether senders that wait for room are woken: three quarters of the buffer are free
    /// (`unix_writable()`).
    pub(crate) fn is_writable(&self) -> bool {
        self.queued_true * 4 <= self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::net::{Link, Peer};
    use crate::words::Region;

    const SEND_BUFFER: u64 = 212_992;

    fn end() -> Endpoint {
        Endpoint {
            link: Link::Unix,
            ..Endpoint::new(Peer::None, Region::default(), Bytes(SEND_BUFFER))
        }
    }

    /// Sends messages until the buffer is full; returns how many.
    fn fill(end: &mut Endpoint, each: u64) -> u64 {
        let mut sent = 0;
        while let Some((bytes, charged)) = end.next_message(each) {
            end.queued_true += charged;
            end.queue_message(Bytes(bytes));
            sent += 1;
        }
        sent
    }

    #[test]
    fn as_many_messages_fit_as_under_a_kernel() {
        let table = [
            (1, 278),
            (128, 278),
            (129, 278),
            (256, 167),
            (700, 167),
            (1_000, 93),
            (2_000, 49),
            (4_096, 44),
            (8_192, 24),
            (16_384, 13),
            (32_768, 7),
        ];
        for (bytes, messages) in table {
            assert_eq!(fill(&mut end(), bytes), messages, "{bytes}");
        }
        let of_64_kb = end().next_message(65_536);
        assert_eq!(of_64_kb.map(|(bytes, _)| bytes), Some(36_544));
    }

    #[test]
    fn a_message_is_charged_until_its_last_byte_is_taken() {
        let mut end = end();
        fill(&mut end, 100);
        let full = end.queued_true;
        assert_eq!(end.take_messages(99), 1);
        assert_eq!(end.queued_true, full);
        assert_eq!(end.take_messages(2), 2);
        assert_eq!(end.queued_true, full - 768);
        assert!(end.next_message(1).is_some() && !end.is_writable());
        assert_eq!(end.take_messages(277 * 100 - 1), 277);
        assert!(end.is_writable() && end.queued_true == 0 && end.filled == 0);
    }
}
