//! Sockets, network cards, and remote peers.

use std::collections::VecDeque;
use std::rc::Rc;

use warmq_units::{Bytes, CpuId, Duration, Instant, TaskId};

use crate::operation::{Listener, Nic, Region, Remote, RemoteOperation, Socket};
use crate::program::{Mailbox, Running};

/// One end of a stream, on this machine.
///
/// Invariant: `filled + reserved <= capacity` for a local peer.
pub(crate) struct Endpoint {
    pub(crate) peer: Peer,
    /// The receive buffer's memory; bytes go around it.
    pub(crate) buffer: Region,
    pub(crate) capacity: u64,
    /// Bytes that wait to be received.
    pub(crate) filled: u64,
    /// Bytes that a sender is copying in, or a receiver out.
    pub(crate) reserved: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) peer_closed: bool,
    pub(crate) closed: bool,
    pub(crate) readers: VecDeque<TaskId>,
    /// Senders that wait for room in this buffer.
    pub(crate) writers: VecDeque<TaskId>,
    /// Bytes on their way to the remote peer.
    pub(crate) in_flight: u64,
    /// Bytes that reached the remote peer and were not received there yet.
    pub(crate) sent_out: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Local(Socket),
    Remote { remote: Remote, nic: Nic },
}

impl Endpoint {
    pub(crate) fn new(peer: Peer, buffer: Region, capacity: Bytes) -> Endpoint {
        Endpoint {
            peer,
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
            in_flight: 0,
            sent_out: 0,
        }
    }

    pub(crate) fn room(&self) -> u64 {
        self.capacity - self.filled - self.reserved
    }
}

#[derive(Default)]
pub(crate) struct Backlog {
    pub(crate) connections: VecDeque<Socket>,
    pub(crate) acceptors: VecDeque<TaskId>,
}

/// What comes in over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packet {
    Connect { listener: Listener, socket: Socket },
    Data { socket: Socket, bytes: Bytes },
    End { socket: Socket },
    Acknowledge,
}

/// A network card: a full-duplex link with a bandwidth and a delay, and a ring of packets.
/// Interrupts of one card go to the CPUs in turn, as the I/O APIC of a P6 machine spreads them.
pub(crate) struct Card {
    ps_per_byte: u64,
    delay: Duration,
    receive_free: Instant,
    send_free: Instant,
    pub(crate) ring: VecDeque<Packet>,
    /// True from the interrupt until the ring is found empty.
    pub(crate) polled: bool,
    next_cpu: u16,
}

/// Ethernet, IP and TCP headers with the gap between frames: 14 + 4 + 20 + 20 + 12 (time stamps)
/// + 20 (preamble and gap).
const FRAME_OVERHEAD: u64 = 90;
/// A full segment on Ethernet with TCP time stamps.
pub(crate) const SEGMENT: u64 = 1_448;

impl Card {
    pub(crate) fn new(bits_per_second: u64, delay: Duration, first_cpu: u16) -> Card {
        Card {
            ps_per_byte: 8_000_000_000_000 / bits_per_second.max(1),
            delay,
            receive_free: Instant::START,
            send_free: Instant::START,
            ring: VecDeque::new(),
            polled: false,
            next_cpu: first_cpu,
        }
    }

    fn occupies(&self, bytes: u64) -> Duration {
        let frames = bytes.div_ceil(SEGMENT).max(1);
        Duration((bytes + frames * FRAME_OVERHEAD) * self.ps_per_byte)
    }

    /// `bytes` leave the other side at `now`: when they are here.
    pub(crate) fn receive(&mut self, bytes: u64, now: Instant) -> Instant {
        self.receive_free = self.receive_free.max(now) + self.occupies(bytes);
        self.receive_free + self.delay
    }

    /// `bytes` leave this machine at `now`: when they are on the other side.
    pub(crate) fn send(&mut self, bytes: u64, now: Instant) -> Instant {
        self.send_free = self.send_free.max(now) + self.occupies(bytes);
        self.send_free + self.delay
    }

    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// The CPU that takes the next interrupt.
    pub(crate) fn interrupt_cpu(&mut self, cpus: u16) -> CpuId {
        let cpu = CpuId(self.next_cpu % cpus);
        self.next_cpu = (self.next_cpu + 1) % cpus;
        cpu
    }
}

/// A remote peer, and what it waits for.
pub(crate) struct RemoteState {
    pub(crate) mailbox: Rc<Mailbox<RemoteOperation>>,
    pub(crate) program: Option<Running>,
    pub(crate) wants: Option<(Socket, u64)>,
    /// Operations since `stepped_at`, the last time at which there were any.
    steps_at_once: u32,
    stepped_at: Instant,
}

impl RemoteState {
    pub(crate) fn new(mailbox: Rc<Mailbox<RemoteOperation>>, program: Running) -> RemoteState {
        RemoteState {
            mailbox,
            program: Some(program),
            wants: None,
            steps_at_once: 0,
            stepped_at: Instant::START,
        }
    }

    /// Counts one more operation at `now`; returns how many there were at this time.
    pub(crate) fn count_step(&mut self, now: Instant) -> u32 {
        if self.stepped_at != now {
            self.stepped_at = now;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        self.steps_at_once
    }
}
