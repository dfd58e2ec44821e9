//! A network card: link, ring, and when it interrupts.
//!
//! Purpose: passive hardware. A card without a model interrupts for the first packet and is polled
//! until its ring is empty; each of its packets arrives as an event. One with a model looks at its
//! link only when somebody asks what has arrived by then ([`Card::advance`]), so that packets cost
//! no events while its interrupts are masked.

use std::collections::{BTreeMap, VecDeque};

use warmq_machine::{CardModel, LastOfPoll, Moderation, on_ethernet};
use warmq_units::{Bytes, CpuId, CpuSet, Duration, Instant};

use crate::core::net::Packet;
use crate::words::{LastPoll, SEGMENT};

/// The packets sent to a card, by their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Sent by remote peers, retransmissions included.
    pub sent: u64,
    /// Taken off the ring, or off a backlog, by the receive softirq.
    pub received: u64,
    /// Dropped because the ring or a backlog was full.
    pub dropped: u64,
    /// On the link, in the ring, or on a backlog.
    pub in_flight: u64,
}

/// The interrupt state of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Napi {
    /// The next packet that is reported raises an interrupt.
    #[default]
    Armed,
    /// An interrupt was raised on this CPU and is not yet handled.
    Raised(CpuId),
    /// Interrupts are masked: the card is on a CPU's poll list.
    Polled,
}

/// The default size of a card's receive ring, in packets (as of `e1000`).
pub(crate) const DEFAULT_RING: usize = 256;

/// What a card with a model knows of packets that it has not reported.
#[derive(Default)]
struct Unreported {
    /// On the link, by arrival.
    coming: BTreeMap<(Instant, u64), Packet>,
    /// How many packets were put on the link.
    sent: u64,
    /// In the ring, in frames.
    frames: u64,
    /// When those in the ring are reported at the latest; `None`: there are none.
    deadline: Option<Instant>,
    /// How many packets of the ring the driver can see.
    shown: usize,
    /// When an event looks at the card next.
    look: Option<Instant>,
}

/// What became of a packet that arrived.
pub(crate) enum Arrived {
    InRing(Packet),
    Dropped(Packet),
}

/// A network card: a full-duplex link with a bandwidth and a delay, and a ring of packets.
/// Interrupts of one card go to the CPUs in turn, or to those of a set
/// (`/proc/irq/N/smp_affinity`): see `Settings::interrupts_move`. Of a card with several queues,
/// each is a card here; the first has the link.
#[derive(Default)]
pub(crate) struct Card {
    model: Option<CardModel>,
    /// How many cards from here on are queues of this one.
    queues: u16,
    ps_per_byte: u64,
    delay: Duration,
    receive_free: Instant,
    send_free: Instant,
    ring: VecDeque<Packet>,
    /// Frames in the ring.
    ring_used: u64,
    ring_size: u64,
    napi: Napi,
    unreported: Unreported,
    on_link: u64,
    /// Packets on backlogs.
    on_backlog: u64,
    counts: PacketCounts,
    /// The CPUs that take its interrupts; `None`: all.
    steered: Option<Vec<CpuId>>,
    /// Whose turn it is among them.
    turn: usize,
}

/// Ethernet, IP and TCP headers with the gap between frames: 14 + 4 + 20 + 20 + 12 (time stamps)
/// + 20 (preamble and gap).
const FRAME_OVERHEAD: u64 = 90;

impl Card {
    pub(crate) fn new(bits_per_second: u64, delay: Duration, ring: usize, first_cpu: u16) -> Card {
        Card {
            queues: 1,
            ps_per_byte: 8_000_000_000_000 / bits_per_second.max(1),
            delay,
            ring_size: ring.max(1) as u64,
            turn: first_cpu.into(),
            ..Card::default()
        }
    }

    /// The first of so many queues of a card of `model`, or another one.
    pub(crate) fn of_model(
        model: &CardModel,
        delay: Duration,
        first_cpu: u16,
        queues: u16,
    ) -> Card {
        Card {
            model: Some(*model),
            queues,
            ..Card::new(model.bits_per_second, delay, model.ring, first_cpu)
        }
    }

    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some()
    }

    pub(crate) fn queues(&self) -> u16 {
        self.queues
    }

    /// Packets of a poll, if the card says so.
    pub(crate) fn weight(&self) -> Option<u32> {
        self.model?.weight
    }

    fn last(&self) -> LastOfPoll {
        self.model
            .map_or(LastOfPoll::BelowWeight, |model| model.last)
    }

    /// Whether its packets go to a CPU's backlog.
    pub(crate) fn has_backlog(&self) -> bool {
        self.last() == LastOfPoll::PerPacket
    }

    /// Whether its driver looks at the ring after a poll that took all that it may.
    pub(crate) fn looks_after_polls(&self) -> bool {
        self.last() == LastOfPoll::RingEmpty
    }

    /// Whether a poll that found no more after `taken` packets is the last.
    pub(crate) fn is_last_poll(&self, taken: u32, e100: LastPoll) -> bool {
        self.last() != LastOfPoll::E100 || taken == 0 || e100 == LastPoll::BelowWeight
    }

    /// What a kernel of 2.6 charges for a datagram; `None` without a model.
    pub(crate) fn true_size(&self, payload: Bytes, sk_buff: Bytes) -> Option<u64> {
        Some(self.model.as_ref()?.true_size(payload, sk_buff))
    }

    fn occupies(&self, bytes: u64) -> Duration {
        let frames = bytes.div_ceil(SEGMENT).max(1);
        Duration((bytes + frames * FRAME_OVERHEAD) * self.ps_per_byte)
    }

    /// The time at which `bytes` that the other side sends at `now` as `packet` arrive here.
    pub(crate) fn receive(&mut self, packet: &Packet, bytes: u64, now: Instant) -> Instant {
        let occupies = match packet {
            Packet::Datagram { .. } if self.has_model() => {
                Duration(on_ethernet(bytes) * self.ps_per_byte)
            }
            _ => self.occupies(bytes),
        };
        self.receive_free = self.receive_free.max(now) + occupies;
        self.receive_free + self.delay
    }

    /// The time at which `bytes` that this machine sends at `now` arrive at the other side.
    pub(crate) fn send(&mut self, bytes: u64, now: Instant) -> Instant {
        self.send_free = self.send_free.max(now) + self.occupies(bytes);
        self.send_free + self.delay
    }

    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// Counts a packet that was sent to this card.
    pub(crate) fn sent(&mut self) {
        self.counts.sent += 1;
        self.on_link += 1;
    }

    /// Puts a packet that arrived over the link into the ring, or drops it if the ring is full. A
    /// packet of more frames than the ring holds is accepted when the ring is empty.
    pub(crate) fn arrived(&mut self, packet: Packet) -> bool {
        self.on_link -= 1;
        let frames = packet.frames();
        let room = self.ring_used + frames <= self.ring_size || self.ring.is_empty();
        if room {
            self.ring.push_back(packet);
            self.ring_used += frames;
        } else {
            self.counts.dropped += 1;
        }
        room
    }

    /// Whether the card raises an interrupt for a packet that is reported now.
    pub(crate) fn is_armed(&self) -> bool {
        self.napi == Napi::Armed
    }

    /// It raises an interrupt on `cpu`, and it is the turn of `next`.
    pub(crate) fn raise(&mut self, cpu: CpuId, next: usize) {
        self.napi = Napi::Raised(cpu);
        self.turn = next;
    }

    /// The interrupt handler on `cpu` masks the card's interrupts; true if the card had raised one
    /// there.
    pub(crate) fn begins_polling(&mut self, cpu: CpuId) -> bool {
        let raised = self.napi == Napi::Raised(cpu);
        if raised {
            self.napi = Napi::Polled;
        }
        raised
    }

    /// Takes the next packet off the ring that the driver can see.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let packet = self.take_uncounted()?;
        self.counts.received += 1;
        Some(packet)
    }

    fn take_uncounted(&mut self) -> Option<Packet> {
        if self.has_model() {
            self.unreported.shown = self.unreported.shown.checked_sub(1)?;
        }
        let packet = self.ring.pop_front()?;
        self.ring_used -= packet.frames();
        Some(packet)
    }

    /// Takes the next packet off the ring, to put it on a backlog.
    pub(crate) fn take_to_backlog(&mut self) -> Option<Packet> {
        let packet = self.take_uncounted()?;
        self.on_backlog += 1;
        Some(packet)
    }

    /// A packet that was to go on a backlog found it full.
    pub(crate) fn dropped_at_backlog(&mut self) {
        self.on_backlog -= 1;
        self.counts.dropped += 1;
    }

    /// The softirq took a packet off a backlog.
    pub(crate) fn left_backlog(&mut self) {
        self.on_backlog -= 1;
        self.counts.received += 1;
    }

    /// The card's interrupts are unmasked (`napi_complete()`).
    pub(crate) fn unmask(&mut self) {
        self.napi = Napi::Armed;
    }

    /// Whether the driver sees no packet.
    pub(crate) fn shows_nothing(&self) -> bool {
        self.unreported.shown == 0
    }

    // What a card with a model knows.

    /// A packet will arrive `at` that time.
    pub(crate) fn on_its_way(&mut self, packet: Packet, at: Instant) {
        let order = self.unreported.sent;
        self.unreported.sent += 1;
        self.unreported.coming.insert((at, order), packet);
    }

    /// Lets everything happen that happens on the card up to `now`. Says what became of the packets
    /// that arrived.
    pub(crate) fn advance(&mut self, now: Instant) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        while let Some(((at, _), _)) = self.unreported.coming.first_key_value()
            && *at <= now
        {
            let at = *at;
            self.report_by(at);
            let Some((_, packet)) = self.unreported.coming.pop_first() else {
                break;
            };
            let in_ring = self.arrived(packet);
            if in_ring {
                self.count_unreported(packet.frames(), at);
            }
            arrived.push(match in_ring {
                true => Arrived::InRing(packet),
                false => Arrived::Dropped(packet),
            });
        }
        self.report_by(now);
        arrived
    }

    fn moderation(&self) -> Moderation {
        let at_once = Moderation {
            after: Duration::ZERO,
            packets: 1,
        };
        self.model.map_or(at_once, |model| model.moderation)
    }

    fn count_unreported(&mut self, frames: u64, at: Instant) {
        let moderation = self.moderation();
        let here = &mut self.unreported;
        here.deadline.get_or_insert(at + moderation.after);
        here.frames += frames;
        if here.frames >= moderation.packets {
            self.report();
        }
    }

    /// Reports what is in the ring if it is due by `at`.
    fn report_by(&mut self, at: Instant) {
        if self.unreported.deadline.is_some_and(|due| due <= at) {
            self.report();
        }
    }

    fn report(&mut self) {
        self.unreported.shown = self.ring.len();
        self.unreported.frames = 0;
        self.unreported.deadline = None;
    }

    /// When the card would report packets next, as far as those on the link show: not later than it
    /// does, and never earlier than `now`. `None` if there are none.
    fn reports_next(&self, now: Instant) -> Option<Instant> {
        let here = &self.unreported;
        if here.shown > 0 {
            return Some(now);
        }
        let moderation = self.moderation();
        let (mut frames, mut due) = (here.frames, here.deadline);
        for (&(at, _), packet) in &here.coming {
            if due.is_some_and(|due| at >= due) {
                break;
            }
            frames += packet.frames();
            if frames >= moderation.packets {
                return Some(at.max(now));
            }
            due.get_or_insert(at + moderation.after);
        }
        Some(due?.max(now))
    }

    /// When an event has to look at the card, if none does so early enough; notes it.
    pub(crate) fn needs_look(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_armed() {
            return None;
        }
        let next = self.reports_next(now)?;
        let enough = self.unreported.look.is_some_and(|look| look <= next);
        if enough {
            return None;
        }
        self.unreported.look = Some(next);
        Some(next)
    }

    /// Whether an event at `now` is the one that looks at the card, and no earlier one was set for.
    pub(crate) fn looks(&mut self, now: Instant) -> bool {
        self.unreported.look.take_if(|look| *look == now).is_some()
    }

    pub(crate) fn counts(&self) -> PacketCounts {
        PacketCounts {
            in_flight: self.on_link + self.ring.len() as u64 + self.on_backlog,
            ..self.counts
        }
    }

    /// Has the card interrupt the CPUs in `cpus`, which is not empty, the first of them first. A
    /// CPU that polls the card goes on.
    pub(crate) fn steer(&mut self, cpus: &CpuSet) {
        self.steered = Some(cpus.iter().collect());
        self.turn = 0;
    }

    /// Whose turn it is to take an interrupt on a machine of `cpus` CPUs, and whose it is then.
    /// `moved`: how often the interrupt was moved to the next CPU, where it stays otherwise; none:
    /// each interrupt goes to the next one. Among CPUs of its own a card skips those that are not
    /// `online`, unless all are.
    pub(crate) fn next_turn(
        &self,
        cpus: u16,
        moved: Option<u64>,
        online: impl Fn(CpuId) -> bool,
    ) -> (usize, CpuId) {
        let turn = self.turn + moved.unwrap_or(0) as usize;
        let then = |turn: usize| moved.map_or(turn + 1, |_| self.turn);
        let Some(steered) = &self.steered else {
            let turn = turn % usize::from(cpus);
            return (then(turn), CpuId(turn as u16));
        };
        let mut order = (0..steered.len()).map(|later| (turn + later) % steered.len());
        let found = order.find(|turn| online(steered[*turn]));
        let turn = found.unwrap_or(turn % steered.len());
        (then(turn), steered[turn])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it was moved, the CPU that takes this interrupt, and whose turn it is then.
    #[test]
    fn an_interrupt_goes_to_each_cpu_in_turn_or_stays_until_it_is_moved() {
        let mut card = Card::new(1_000_000_000, Duration::ZERO, 1, 0);
        let all = |_| true;
        for (moved, cpu, next) in [
            (None, 0, 1),
            (Some(0), 0, 0),
            (Some(1), 1, 0),
            (Some(4), 1, 0),
        ] {
            assert_eq!(
                card.next_turn(3, moved, all),
                (next, CpuId(cpu)),
                "{moved:?}"
            );
        }
        card.raise(CpuId(0), 1);
        assert_eq!(card.next_turn(3, None, all), (2, CpuId(1)));

        card.steer(&CpuSet::from_iter([CpuId(0), CpuId(2)]));
        let without_0 = |cpu| cpu != CpuId(0);
        assert_eq!(card.next_turn(3, Some(1), all), (0, CpuId(2)));
        assert_eq!(card.next_turn(3, Some(2), without_0), (0, CpuId(2)));
        assert_eq!(card.next_turn(3, None, without_0), (2, CpuId(2)));
    }
}
