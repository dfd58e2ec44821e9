//! Sockets, network cards, and remote peers.

use std::collections::VecDeque;
use std::rc::Rc;

use warmq_units::{Bytes, CpuId, CpuSet, Duration, Instant, TaskId};

use crate::answer::{Measured, Origin, Sender};
use crate::operation::{Listener, Nic, Region, Remote, RemoteOperation, Socket};
use crate::program::{Mailbox, Running};

/// One end of a stream, on this machine.
///
/// Invariant: `filled + reserved <= capacity` for a local peer.
pub(crate) struct Endpoint {
    pub(crate) peer: Peer,
    /// It is an end of a pipe: no protocol runs in a softirq between a writer and the reader that it wakes.
    pub(crate) pipe: bool,
    /// The memory of the receive buffer, a ring.
    pub(crate) buffer: Region,
    pub(crate) capacity: u64,
    /// Bytes waiting to be received.
    pub(crate) filled: u64,
    /// Bytes that a sender is copying in or a receiver is copying out.
    pub(crate) reserved: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) peer_closed: bool,
    pub(crate) closed: bool,
    pub(crate) readers: VecDeque<TaskId>,
    /// Senders that wait for room in this buffer.
    pub(crate) writers: VecDeque<TaskId>,
    /// Datagrams that wait to be received, oldest first; empty on a stream.
    pub(crate) queued: VecDeque<Datagram>,
    /// The true sizes of all queued datagrams.
    pub(crate) queued_true: u64,
    pub(crate) datagrams: DatagramCounts,
    /// Bytes that a card has written for this socket.
    pub(crate) arrived: u64,
    /// Bytes in transit to the remote peer.
    pub(crate) in_flight: u64,
    /// Bytes that arrived at the remote peer and were not yet received there.
    pub(crate) sent_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A datagram socket has none.
    None,
    Local(Socket),
    Remote {
        remote: Remote,
        nic: Nic,
    },
}

impl Endpoint {
    pub(crate) fn new(peer: Peer, buffer: Region, capacity: Bytes) -> Endpoint {
        Endpoint {
            peer,
            pipe: false,
            buffer,
            capacity: capacity.0,
            filled: 0,
            reserved: 0,
            written: 0,
            read: 0,
            peer_closed: false,
            closed: false,
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            queued: VecDeque::new(),
            queued_true: 0,
            datagrams: DatagramCounts::default(),
            arrived: 0,
            in_flight: 0,
            sent_out: 0,
        }
    }

    /// A datagram socket.
    pub(crate) fn datagram(buffer: Region, capacity: Bytes) -> Endpoint {
        Endpoint::new(Peer::None, buffer, capacity)
    }

    /// Queues a datagram and returns true, unless the queue exceeds the receive buffer already:
    /// then drops it and returns false (`__udp_enqueue_schedule_skb()` compares the limit with the
    /// memory that the queue holds before this datagram).
    pub(crate) fn queue_datagram(&mut self, datagram: Datagram) -> bool {
        let room = self.queued_true <= self.capacity;
        if room {
            self.queued.push_back(datagram);
            self.queued_true += true_size(datagram.bytes);
        } else {
            self.datagrams.dropped += 1;
        }
        room
    }

    /// Takes the oldest datagram.
    pub(crate) fn take_datagram(&mut self) -> Option<Datagram> {
        let datagram = self.queued.pop_front()?;
        self.queued_true -= true_size(datagram.bytes);
        self.datagrams.received += 1;
        Some(datagram)
    }

    pub(crate) fn room(&self) -> u64 {
        self.capacity - self.filled - self.reserved
    }
}

/// A datagram that waits to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Its payload.
    pub(crate) bytes: Bytes,
    pub(crate) from: Sender,
}

/// The datagrams that were sent to a socket, by their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DatagramCounts {
    /// How many were sent to it, from this machine or from others.
    pub sent: u64,
    /// How many were dropped, by a card or because the receive buffer was full.
    pub dropped: u64,
    /// How many programs received.
    pub received: u64,
}

/// The memory that a datagram of `bytes` is charged with while it waits (`skb->truesize`): the
/// `sk_buff` of 256 bytes, and a power of two that holds the payload, 64 bytes of headers and the
/// 320 bytes of `skb_shared_info` (`SKB_TRUESIZE()` of Linux 6 on x86: 768 bytes for a payload of
/// up to 128).
pub(crate) fn true_size(bytes: Bytes) -> u64 {
    const SK_BUFF: u64 = 256;
    const HEADERS_AND_SHARED_INFO: u64 = 64 + 320;
    SK_BUFF + (bytes.0 + HEADERS_AND_SHARED_INFO).next_power_of_two()
}

#[derive(Default)]
pub(crate) struct Backlog {
    pub(crate) connections: VecDeque<Socket>,
    pub(crate) acceptors: VecDeque<TaskId>,
}

/// A packet that arrives over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packet {
    Connect {
        listener: Listener,
        socket: Socket,
    },
    Data {
        socket: Socket,
        bytes: Bytes,
    },
    End {
        socket: Socket,
    },
    Acknowledge,
    Datagram {
        socket: Socket,
        bytes: Bytes,
        from: Origin,
    },
}

impl Packet {
    /// The number of frames.
    pub(crate) fn frames(&self) -> u64 {
        match self {
            Packet::Data { bytes, .. } => bytes.0.div_ceil(SEGMENT).max(1),
            Packet::Connect { .. }
            | Packet::End { .. }
            | Packet::Acknowledge
            | Packet::Datagram { .. } => 1,
        }
    }

    /// How long after a drop its sender retransmits it: the least retransmission timeout
    /// (`TCP_RTO_MIN`), or the initial one for a connection request (3 s up to Linux 3.0, RFC
    /// 1122). `None` for acknowledgements and datagrams, which are not retransmitted.
    pub(crate) fn sent_again_after(&self) -> Option<Duration> {
        match self {
            Packet::Connect { .. } => Some(Duration::from_s(3)),
            Packet::Data { .. } | Packet::End { .. } => Some(Duration::from_ms(200)),
            Packet::Acknowledge | Packet::Datagram { .. } => None,
        }
    }
}

/// The packets sent to a card, by their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Sent by remote peers, retransmissions included.
    pub sent: u64,
    /// Taken off the ring by the receive softirq.
    pub received: u64,
    /// Dropped because the ring was full.
    pub dropped: u64,
    /// On the link, or in the ring.
    pub in_flight: u64,
}

/// The interrupt state of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Napi {
    /// The next packet raises an interrupt.
    Armed,
    /// An interrupt was raised on this CPU and is not yet handled.
    Raised(CpuId),
    /// Interrupts are masked: the card is on a CPU's poll list.
    Polled,
}

/// The default size of a card's receive ring, in packets (as of `e1000`).
pub(crate) const DEFAULT_RING: usize = 256;

/// A network card: a full-duplex link with a bandwidth and a delay, and a ring of packets.
/// Interrupts of one card go to the CPUs in turn, as the I/O APIC of a P6 machine spreads them, or
/// to those of a set (`/proc/irq/N/smp_affinity`).
pub(crate) struct Card {
    ps_per_byte: u64,
    delay: Duration,
    receive_free: Instant,
    send_free: Instant,
    ring: VecDeque<Packet>,
    /// Frames in the ring.
    ring_used: u64,
    ring_size: u64,
    napi: Napi,
    on_link: u64,
    counts: PacketCounts,
    /// The CPUs that take its interrupts; `None`: all.
    steered: Option<Vec<CpuId>>,
    /// Whose turn it is among them.
    turn: usize,
}

/// Ethernet, IP and TCP headers with the gap between frames: 14 + 4 + 20 + 20 + 12 (time stamps)
/// + 20 (preamble and gap).
const FRAME_OVERHEAD: u64 = 90;
/// A full segment on Ethernet with TCP time stamps.
pub(crate) const SEGMENT: u64 = 1_448;

impl Card {
    pub(crate) fn new(bits_per_second: u64, delay: Duration, ring: usize, first_cpu: u16) -> Card {
        Card {
            ps_per_byte: 8_000_000_000_000 / bits_per_second.max(1),
            delay,
            receive_free: Instant::START,
            send_free: Instant::START,
            ring: VecDeque::new(),
            ring_used: 0,
            ring_size: ring.max(1) as u64,
            napi: Napi::Armed,
            on_link: 0,
            counts: PacketCounts::default(),
            steered: None,
            turn: first_cpu.into(),
        }
    }

    fn occupies(&self, bytes: u64) -> Duration {
        let frames = bytes.div_ceil(SEGMENT).max(1);
        Duration((bytes + frames * FRAME_OVERHEAD) * self.ps_per_byte)
    }

    /// The time at which `bytes` that the other side sends at `now` arrive here.
    pub(crate) fn receive(&mut self, bytes: u64, now: Instant) -> Instant {
        self.receive_free = self.receive_free.max(now) + self.occupies(bytes);
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

    /// Whether the card raises an interrupt for the packet that has just arrived.
    pub(crate) fn is_armed(&self) -> bool {
        self.napi == Napi::Armed
    }

    /// It raises an interrupt on `cpu`, and the turn passes on.
    pub(crate) fn raise(&mut self, cpu: CpuId, turn: usize) {
        self.napi = Napi::Raised(cpu);
        self.turn = turn + 1;
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

    /// Takes the next packet off the ring. If there is none, the card's interrupts are unmasked
    /// (`napi_complete()`).
    pub(crate) fn poll(&mut self) -> Option<Packet> {
        let packet = self.ring.pop_front();
        match packet {
            Some(packet) => {
                self.ring_used -= packet.frames();
                self.counts.received += 1;
            }
            None => self.napi = Napi::Armed,
        }
        packet
    }

    pub(crate) fn counts(&self) -> PacketCounts {
        PacketCounts {
            in_flight: self.on_link + self.ring.len() as u64,
            ..self.counts
        }
    }

    /// Has the card interrupt the CPUs in `cpus`, which is not empty, the first of them first. A
    /// CPU that polls the card goes on.
    pub(crate) fn steer(&mut self, cpus: &CpuSet) {
        self.steered = Some(cpus.iter().collect());
        self.turn = 0;
    }

    /// Whose turn it is to take an interrupt on a machine of `cpus` CPUs: the place in the order,
    /// and the CPU. Among CPUs of its own a card skips those that are not `online`, unless all are.
    pub(crate) fn next_turn(&self, cpus: u16, online: impl Fn(CpuId) -> bool) -> (usize, CpuId) {
        let Some(steered) = &self.steered else {
            let turn = self.turn % usize::from(cpus);
            return (turn, CpuId(turn as u16));
        };
        let mut order = (0..steered.len()).map(|later| (self.turn + later) % steered.len());
        let found = order.find(|turn| online(steered[*turn]));
        let turn = found.unwrap_or(self.turn % steered.len());
        (turn, steered[turn])
    }
}

/// A remote peer, and what it waits for.
pub(crate) struct RemoteState {
    pub(crate) mailbox: Rc<Mailbox<RemoteOperation>>,
    pub(crate) program: Option<Running>,
    pub(crate) wants: Option<(Socket, u64)>,
    /// What it measures, if it does.
    pub(crate) measured: Option<Measured>,
    /// Operations begun at `stepped_at`, the time of the latest operation.
    steps_at_once: u32,
    stepped_at: Instant,
}

impl RemoteState {
    pub(crate) fn new(mailbox: Rc<Mailbox<RemoteOperation>>, program: Running) -> RemoteState {
        RemoteState {
            mailbox,
            program: Some(program),
            wants: None,
            measured: None,
            steps_at_once: 0,
            stepped_at: Instant::START,
        }
    }

    /// Counts one more operation at `now`; returns how many there have been at this time.
    pub(crate) fn count_step(&mut self, now: Instant) -> u32 {
        if self.stepped_at != now {
            self.stepped_at = now;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        self.steps_at_once
    }
}
