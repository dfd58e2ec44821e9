//! Sockets, packets, and remote peers.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use warmq_units::{Address, Bytes, Duration, Instant, LockId, TaskId};

use crate::words::{
    Listener, Mailbox, Nic, Origin, ReceiveCharge, Region, Remote, RemoteOperation, Running,
    SEGMENT, SHORT, Sender, Socket,
};

/// One end of a stream, on this machine.
///
/// Invariants, for a local peer: `waiting() <= capacity + send_buffer`; the sender's end keeps
/// something (`unsent`) only while something waits here (`filled`).
#[derive(Default)]
pub(crate) struct Endpoint {
    pub(crate) peer: Peer,
    pub(crate) link: Link,
    /// What the protocols keep of it: `Settings::socket_lines` cache lines, `Settings::pipe_lines`
    /// of a pipe and of a Unix socket; none: not modelled.
    pub(crate) state: Option<Address>,
    /// The mutex of a pipe from which this end reads; none: not modelled.
    pub(crate) mutex: Option<LockId>,
    /// The memory of what waits, a ring: as much as has waited at once, as what was received is
    /// used again.
    pub(crate) buffer: Region,
    /// What the receive buffer holds.
    pub(crate) capacity: u64,
    /// What the sender's end keeps when the receive buffer is full
    /// ([`Loopback::send_buffer`](crate::Loopback)).
    pub(crate) send_buffer: u64,
    /// The sender's end keeps what is sent while a short segment is not acknowledged: it has no
    /// `TCP_NODELAY`.
    pub(crate) nagle: bool,
    /// Short segments that came here and are not acknowledged: some of them are still in the
    /// buffer.
    pub(crate) unacknowledged: u64,
    /// How many of them there may be: what is sent then stays with the sender's end.
    pub(crate) congestion_window: u64,
    /// How many more are acknowledged at once.
    pub(crate) quick_acknowledgements: u64,
    /// When they are acknowledged even if they were not read, if there are any.
    pub(crate) acknowledged_at: Option<Instant>,
    /// An event for that, or for an earlier time, is in the timeline.
    pub(crate) delays_acknowledgement: bool,
    /// What waits here as segments; none: not modelled.
    pub(crate) segments: Option<Segments>,
    /// Bytes waiting to be received.
    pub(crate) filled: u64,
    /// Bytes that the sender's end keeps until the receive buffer is empty.
    pub(crate) unsent: u64,
    /// Bytes that a sender is copying in or a receiver is copying out.
    pub(crate) reserved: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) peer_closed: bool,
    pub(crate) closed: bool,
    /// A send or a receive of a task owns it ([`Loopback::owned`](crate::Loopback)).
    pub(crate) owned: bool,
    /// Tasks that wait to own it.
    pub(crate) callers: VecDeque<TaskId>,
    pub(crate) readers: VecDeque<TaskId>,
    /// Senders that wait for room in this buffer.
    pub(crate) writers: VecDeque<TaskId>,
    /// Datagrams that wait to be received, oldest first, messages of a Unix socket, segments of a
    /// stream where these are modelled, and the pages of a pipe with a mutex (the true size of one
    /// is what was written to it).
    pub(crate) queued: VecDeque<Datagram>,
    /// The true sizes of all queued datagrams; of messages also of those that are being copied in.
    pub(crate) queued_true: u64,
    pub(crate) datagrams: DatagramCounts,
    /// Bytes that a card has written for this socket.
    pub(crate) arrived: u64,
    /// Bytes in transit to the remote peer.
    pub(crate) in_flight: u64,
    /// Bytes that arrived at the remote peer and were not yet received there.
    pub(crate) sent_out: u64,
}

/// The segments that arrive at an end of a stream; each has memory of its own, a part of a ring.
#[derive(Clone, Copy)]
pub(crate) struct Segments {
    pub(crate) memory: Region,
    /// The most bytes that one has.
    pub(crate) longest: u64,
    /// How many came.
    pub(crate) came: u64,
    /// How many of them were taken.
    pub(crate) taken: u64,
}

/// What is between the two ends of a connection on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// The loopback device: protocols run in a softirq between a sender and the receiver that it
    /// wakes.
    #[default]
    Loopback,
    /// A pipe.
    Pipe,
    /// A pair of Unix sockets.
    Unix,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A datagram socket has none.
    #[default]
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
            buffer,
            capacity: capacity.0,
            congestion_window: u64::MAX,
            ..Endpoint::default()
        }
    }

    /// A datagram socket.
    pub(crate) fn datagram(buffer: Region, capacity: Bytes) -> Endpoint {
        Endpoint::new(Peer::None, buffer, capacity)
    }

    /// Queues a datagram and returns true, unless the receive buffer is full by the kernel's rule:
    /// then drops it and returns false.
    pub(crate) fn queue_datagram(&mut self, datagram: Datagram, rule: ReceiveCharge) -> bool {
        let room = match rule {
            ReceiveCharge::Before => self.queued_true <= self.capacity,
            ReceiveCharge::With { .. } => self.queued_true + datagram.true_size < self.capacity,
        };
        if room {
            self.queued.push_back(datagram);
            self.queued_true += datagram.true_size;
        } else {
            self.datagrams.dropped += 1;
        }
        room
    }

    /// Takes the oldest datagram.
    pub(crate) fn take_datagram(&mut self) -> Option<Datagram> {
        let datagram = self.queued.pop_front()?;
        self.queued_true -= datagram.true_size;
        self.datagrams.received += 1;
        Some(datagram)
    }

    /// Whether it is an end of a stream over loopback.
    pub(crate) fn is_loopback(&self) -> bool {
        matches!(self.peer, Peer::Local(_)) && self.link == Link::Loopback
    }

    /// Whether calls own it ([`Loopback::owned`](crate::Loopback)): of a Unix socket only receives
    /// ask (`unix_sock::iolock`).
    pub(crate) fn may_be_owned(&self) -> bool {
        matches!(self.peer, Peer::Local(_)) && self.link != Link::Pipe
    }

    /// Bytes that were sent and not received yet, those among them that are being copied.
    pub(crate) fn waiting(&self) -> u64 {
        self.filled + self.unsent + self.reserved
    }

    pub(crate) fn room(&self) -> u64 {
        self.capacity + self.send_buffer - self.waiting()
    }

    /// How many of `bytes` that are sent now come here at once, as the receive buffer has room for
    /// them; what is being copied out of it needs none. The others stay with the sender's end.
    pub(crate) fn passes(&self, bytes: u64) -> u64 {
        let window = if self.nagle {
            1
        } else {
            self.congestion_window
        };
        match self.unsent {
            0 if self.unacknowledged < window => {
                bytes.min(self.capacity.saturating_sub(self.filled))
            }
            _ => 0,
        }
    }

    /// Bytes that were sent come here, or stay with the sender's end. Returns how many come here.
    pub(crate) fn deliver(&mut self, bytes: u64) -> u64 {
        if self.link == Link::Unix {
            self.queue_message(Bytes(bytes));
            return bytes;
        }
        let passed = self.passes(bytes);
        self.filled += passed;
        self.unsent += bytes - passed;
        self.comes(passed);
        passed
    }

    /// A receiver begins to take `bytes`. What the sender's end kept comes when all that was here
    /// is taken, and not before (unless it is [acknowledged](Endpoint::acknowledge_unread) unread):
    /// two segments fill the window, and as their memory is more than their bytes, reading one of
    /// them frees less than a segment needs (seen in a guest of 6.18 with a receive buffer of 1 KB,
    /// `__tcp_select_window()`; from 2 KB on half is enough, which is not modelled).
    pub(crate) fn receive(&mut self, bytes: u64) -> Received {
        self.read += bytes;
        self.filled -= bytes;
        self.reserved += bytes;
        let taken = self.take_segments(bytes);
        if self.filled > 0 {
            return Received {
                taken,
                ..Received::default()
            };
        }
        self.acknowledge();
        let next = self.next_segments(self.unsent.min(self.capacity));
        Received {
            emptied: true,
            taken,
            came: self.sender_sends(),
            next,
        }
    }

    /// The numbers of the segments as which `bytes` come; none, if these are not modelled.
    pub(crate) fn next_segments(&self, bytes: u64) -> Range<u64> {
        match self.segments {
            None => 0..0,
            Some(Segments { came, longest, .. }) => came..came + bytes.div_ceil(longest),
        }
    }

    /// Returns the numbers of the segments that have the oldest `bytes`; of the last one some may
    /// be left.
    fn take_segments(&mut self, bytes: u64) -> Range<u64> {
        let Some(Segments { taken: first, .. }) = self.segments else {
            return 0..0;
        };
        let waited = self.queued.len();
        let count = self.pop(bytes);
        let gone = (waited - self.queued.len()) as u64;
        self.segments.iter_mut().for_each(|all| all.taken += gone);
        first..first + count
    }

    /// What stayed with the sender's end comes, as much as there is room for. Returns how much
    /// comes.
    fn sender_sends(&mut self) -> u64 {
        let came = self.unsent.min(self.capacity.saturating_sub(self.filled));
        self.filled += came;
        self.unsent -= came;
        self.comes(came);
        came
    }

    /// What came is acknowledged although it was not read. What stayed with the sender's end comes
    /// if the window is open for all of it, or for half of what it may be.
    pub(crate) fn acknowledge_unread(&mut self) {
        self.acknowledge();
        let room = self.capacity.saturating_sub(self.filled);
        if room >= self.unsent.min(self.capacity / 2) {
            self.sender_sends();
        }
    }

    /// A segment of `bytes` comes. A short one is acknowledged only when it was read, for which the
    /// sender's end waits.
    fn comes(&mut self, bytes: u64) {
        let next = self.next_segments(bytes);
        if let Some(segments) = &mut self.segments {
            segments.came = next.end;
            let longest = segments.longest;
            let parts = (0..bytes).step_by(longest as usize);
            let parts = parts.map(|first| Bytes(longest.min(bytes - first)));
            self.queued
                .extend(parts.map(|part| Datagram::local(part, 0)));
        }
        if self.is_acknowledged_quickly(bytes) {
            self.quick_acknowledgements -= 1;
            return self.acknowledge();
        }
        match bytes {
            0 => {}
            1..=SHORT => self.unacknowledged += 1,
            _ => self.acknowledge(),
        }
    }

    /// Whether a short segment of `bytes` that comes now is acknowledged at once
    /// (`tcp_in_quickack_mode()`).
    pub(crate) fn is_acknowledged_quickly(&self, bytes: u64) -> bool {
        self.quick_acknowledgements > 0 && (1..=SHORT).contains(&bytes)
    }

    /// All that came is acknowledged. If it was as much as the congestion window allowed, that
    /// grows by as much (`tcp_slow_start()`).
    fn acknowledge(&mut self) {
        if self.unacknowledged >= self.congestion_window {
            self.congestion_window += self.unacknowledged;
        }
        self.unacknowledged = 0;
        self.acknowledged_at = None;
    }

    /// Whether there is so much room that a sender that waits for it is woken, after bytes were
    /// `taken` or came: any, and if there is a send buffer a third of that
    /// (`sk_stream_is_writeable()`).
    pub(crate) fn wakes_sender(&mut self, taken: Option<u64>) -> bool {
        match self.link {
            Link::Unix => self.is_writable(),
            Link::Pipe if self.mutex.is_some() => taken.is_some_and(|bytes| self.frees_page(bytes)),
            _ => self.room() > self.send_buffer / 3,
        }
    }
}

/// What a receive does besides taking what it takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// It took all that was in the receive buffer.
    pub(crate) emptied: bool,
    /// The numbers of the segments from which it took something.
    pub(crate) taken: Range<u64>,
    /// Bytes that then came from the sender's end, and the numbers of their segments.
    pub(crate) came: u64,
    pub(crate) next: Range<u64>,
}

/// A datagram that waits to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Its payload.
    pub(crate) bytes: Bytes,
    pub(crate) from: Sender,
    /// What it is charged with while it waits.
    pub(crate) true_size: u64,
}

impl Datagram {
    /// One from this machine.
    pub(crate) fn local(bytes: Bytes, true_size: u64) -> Datagram {
        Datagram {
            bytes,
            from: Sender::default(),
            true_size,
        }
    }
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

    /// The socket that it is for, if it is for one.
    pub(crate) fn socket(&self) -> Option<Socket> {
        match self {
            Packet::Connect { socket, .. }
            | Packet::Data { socket, .. }
            | Packet::End { socket }
            | Packet::Datagram { socket, .. } => Some(*socket),
            Packet::Acknowledge => None,
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

/// A remote peer, and what it waits for.
#[derive(Default)]
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
            ..RemoteState::default()
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

/// What a remote peer measures: from each datagram that it numbers to the first answer.
pub(crate) struct Measured {
    /// The name of its spans, by number in the trace's header.
    span: u32,
    /// Its datagrams without an answer.
    open: BTreeSet<u64>,
}

impl Measured {
    pub(crate) fn new(span: u32) -> Measured {
        Measured {
            span,
            open: BTreeSet::new(),
        }
    }

    /// The peer sends its datagram `number`; returns the name of the span that begins.
    pub(crate) fn begin(&mut self, number: u64) -> u32 {
        self.open.insert(number);
        self.span
    }

    /// An answer to datagram `number` is back; returns the name of the span that ends, if one does.
    pub(crate) fn end(&mut self, number: u64) -> Option<u32> {
        self.open.remove(&number).then_some(self.span)
    }
}
