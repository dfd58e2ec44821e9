//! Models of network cards with their drivers, by name. They answer what a card does with packets;
//! they know no CPU that takes its interrupts.

use warmq_units::{Bytes, Duration};

/// When a card reports packets: by an interrupt, if it is not masked, and to a driver that polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moderation {
    /// So long after the first unreported packet. A packet that arrives at that very time is not
    /// reported yet.
    pub after: Duration,
    /// As soon as so many are unreported; at least 1.
    pub packets: u64,
}

/// Which poll is the last, after which the driver unmasks the card's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastOfPoll {
    /// One after which the ring shows no more (`tg3_has_work()`).
    RingEmpty,
    /// One that took less than its weight.
    BelowWeight,
    /// As the kernel says: up to 2.6.23 one that found nothing, then one that took less than its
    /// weight.
    E100,
    /// None: the card is not polled. Its interrupts are never masked; the handler puts packets on
    /// the CPU's backlog, and drops what exceeds 1000 (`netif_rx()`, `netdev_max_backlog`). What
    /// the driver costs is charged in the softirq.
    PerPacket,
}

/// A network card with its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardModel {
    /// Its name in machine files and scenarios.
    pub name: &'static str,
    /// What it is, and where its numbers come from.
    pub what: &'static str,
    /// The link, in bits per second.
    pub bits_per_second: u64,
    /// Receive buffers of each queue, in frames.
    pub ring: usize,
    /// Packets of a poll; `None`: as many as the kernel says (`dev_rx_weight`).
    pub weight: Option<u32>,
    /// When it reports packets.
    pub moderation: Moderation,
    /// Which poll is the last.
    pub last: LastOfPoll,
    /// Frames up to this size are copied to a buffer of their size, and longer ones keep theirs.
    pub copied: Bytes,
    /// The size of a receive buffer.
    pub buffer: Bytes,
    /// Whether each CPU has a queue with an interrupt of its own. Flows are spread by their socket.
    pub queue_per_cpu: bool,
}

/// Each packet is reported when it arrives.
const AT_ONCE: Moderation = Moderation {
    after: Duration::ZERO,
    packets: 1,
};

/// The card of the starvation paper.
const BCM5752: CardModel = CardModel {
    name: "bcm5752",
    what: "Broadcom BCM5752, driver tg3 of Linux 2.6.16: 200 buffers (TG3_DEF_RX_RING_PENDING), weight \
           64, reports 20 us after the first packet or at 5 (LOW_RXCOL_TICKS, LOW_RXMAX_FRAMES; that \
           the time begins at the packet is said of a later chip), copies frames up to 256 bytes",
    bits_per_second: 1_000_000_000,
    ring: 200,
    weight: Some(64),
    moderation: Moderation {
        after: Duration::from_us(20),
        packets: 5,
    },
    last: LastOfPoll::RingEmpty,
    copied: Bytes(256),
    // RX_PKT_BUF_SZ: 1536, an offset of 2, and 64.
    buffer: Bytes(1_602),
    queue_per_cpu: false,
};

/// The second card of the starvation paper, of an unknown revision.
const INTEL_E100: CardModel = CardModel {
    name: "intel-e100",
    what: "Intel 82557/8/9, driver e100 of Linux 2.6.16 (2.6.24: another last poll): 256 buffers, \
           weight 16 (E100_NAPI_WEIGHT), an interrupt for each packet, as revisions before the 82559 \
           have it, and buffers that are handed on",
    bits_per_second: 100_000_000,
    ring: 256,
    weight: Some(16),
    moderation: AT_ONCE,
    last: LastOfPoll::E100,
    copied: Bytes(0),
    // A descriptor of 16 bytes, a frame with VLAN header of 1518, and an offset of 2.
    buffer: Bytes(1_536),
    queue_per_cpu: false,
};

/// What servers have today.
const MULTI_QUEUE: CardModel = CardModel {
    name: "multi-queue",
    what: "a present-day card: a queue with an interrupt for each CPU, 1024 buffers each, reports 16 us \
           after the first packet or at 32 (estimate, of the order of mlx5's defaults); that drivers adapt this to the load is not modelled",
    bits_per_second: 10_000_000_000,
    ring: 1_024,
    weight: None,
    moderation: Moderation {
        after: Duration::from_us(16),
        packets: 32,
    },
    last: LastOfPoll::BelowWeight,
    copied: Bytes(256),
    buffer: Bytes(2_048),
    queue_per_cpu: true,
};

/// A card whose driver does not poll.
const PER_PACKET: CardModel = CardModel {
    name: "per-packet",
    what: "a card of 1 Gbit/s without NAPI: an interrupt for each packet, also under load, and a \
           backlog of 1000 packets (net/core/dev.c of 2.6.16)",
    bits_per_second: 1_000_000_000,
    ring: 256,
    weight: None,
    moderation: AT_ONCE,
    last: LastOfPoll::PerPacket,
    copied: Bytes(0),
    buffer: Bytes(1_602),
    queue_per_cpu: false,
};

/// What stands for no model where a card can be chosen.
pub const PLAIN: &str = "plain";

/// Every model.
pub const CARD_MODELS: &[CardModel] = &[BCM5752, INTEL_E100, MULTI_QUEUE, PER_PACKET];

impl CardModel {
    /// The model called `name`.
    pub fn named(name: &str) -> Option<&'static CardModel> {
        CARD_MODELS.iter().find(|model| model.name == name)
    }

    /// What a kernel of 2.6 charges a socket for a UDP datagram with so much payload that came
    /// through this card: its buffer and a `struct sk_buff` of `sk_buff` bytes.
    ///
    /// `dev_alloc_skb()` adds 16 bytes (`NET_SKB_PAD`), and `alloc_skb()` rounds up to a cache line
    /// of 128 bytes, as kernels for any i686 have it; a copy begins at an offset of 2.
    pub fn true_size(&self, payload: Bytes, sk_buff: Bytes) -> u64 {
        const PAD: u64 = 16;
        const LINE: u64 = 128;
        let frame = payload.0.saturating_add(HEADERS);
        let data = match frame <= self.copied.0 {
            true => frame + 2,
            false => self.buffer.0.max(frame),
        };
        data.saturating_add(PAD).next_multiple_of(LINE) + sk_buff.0
    }
}

/// Ethernet, IP and UDP headers: 14 + 20 + 8.
const HEADERS: u64 = 42;

/// The bytes that a UDP datagram occupies on Ethernet: with its headers, at least 60 bytes, the
/// check sum of 4, and the preamble and gap of 20.
pub fn on_ethernet(payload: u64) -> u64 {
    (payload + HEADERS).max(60) + 4 + 20
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 16 of the starvation paper.
    #[test]
    fn a_default_receive_buffer_holds_368_copied_packets_or_58_whole_buffers() {
        let (rcvbuf, sk_buff) = (107_520, Bytes(164));
        for (name, size, held) in [("bcm5752", 292, 368), ("intel-e100", 1_828, 58)] {
            let model = CardModel::named(name).expect("a model");
            let each = model.true_size(Bytes(64), sk_buff);
            assert_eq!(each, size, "{name}");
            let queued = (0..).take_while(|queued| queued * each + each < rcvbuf);
            assert_eq!(queued.count(), held, "{name}");
        }
    }

    /// 1040 bits each: at most 96.2 Kpps at 100 Mbit/s.
    #[test]
    fn a_packet_of_the_paper_takes_130_bytes_on_the_wire() {
        assert_eq!(on_ethernet(64), 130);
        assert_eq!(on_ethernet(0), 84);
    }

    #[test]
    fn names_are_unique_and_numbers_sound() {
        for (index, model) in CARD_MODELS.iter().enumerate() {
            assert_eq!(CardModel::named(model.name), Some(&CARD_MODELS[index]));
            assert!(model.moderation.packets > 0 && model.ring > 0);
            assert_ne!(model.name, PLAIN);
        }
        assert_eq!(CardModel::named("ne2000"), None);
    }
}
