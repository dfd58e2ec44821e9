//! Traffic between this machine and its remote peers.

use warmq_units::CpuId;

use crate::core::Event;
use crate::cpu::PendingInterrupt;
use crate::cpu_loop::{Flow, STEPS_AT_ONCE};
use crate::ending::{Ending, Stall};
use crate::engine::Engine;
use crate::network::{Endpoint, Packet, Peer, SEGMENT};
use crate::operation::{Nic, Remote, RemoteOperation, Socket};
use crate::program::resume;
use crate::step::{Mode, Step, wake};

/// Bytes of a packet that carries no data; the link adds the headers.
const EMPTY: u64 = 0;

impl Engine {
    /// Lets a remote peer go on with `answer`, up to the next operation that takes time.
    pub(crate) fn resume_remote(&mut self, remote: Remote, answer: u64) {
        self.core.remotes[remote.index()].mailbox.answer(answer);
        loop {
            let now = self.core.now();
            let here = &mut self.core.remotes[remote.index()];
            if here.count_step(now) > STEPS_AT_ONCE {
                return self.no_progress_remote(remote);
            }
            let Some(program) = &mut here.program else {
                return;
            };
            if resume(program) {
                here.program = None;
                return;
            }
            let Some(operation) = here.mailbox.take() else {
                return;
            };
            if !self.operate_remote(remote, operation) {
                return;
            }
        }
    }

    fn no_progress_remote(&mut self, remote: Remote) {
        let (at, comm) = (self.core.now(), format!("client {}", remote.index()));
        let stall = Stall::NoProgress {
            task: None,
            comm,
            at,
        };
        self.core.ending = Some(Ending::Stalled(stall));
    }

    /// True when the operation is over at once.
    fn operate_remote(&mut self, remote: Remote, operation: RemoteOperation) -> bool {
        let now = self.core.now();
        match operation {
            RemoteOperation::Pause(span) => {
                self.core.schedule(now + span, Event::Remote(remote));
                false
            }
            RemoteOperation::Connect { listener, nic } => {
                let Some(socket) = self.connection(Peer::Remote { remote, nic }) else {
                    return false;
                };
                self.inbound(nic, Packet::Connect { listener, socket }, EMPTY);
                self.core.remotes[remote.index()]
                    .mailbox
                    .answer(socket.0.into());
                true
            }
            RemoteOperation::Send { socket, bytes } => {
                if let Peer::Remote { nic, .. } = self.core.endpoints[socket.index()].peer {
                    self.inbound(nic, Packet::Data { socket, bytes }, bytes.0);
                }
                true
            }
            RemoteOperation::Receive { socket, bytes } => {
                let endpoint = &mut self.core.endpoints[socket.index()];
                if endpoint.sent_out >= bytes.0 {
                    endpoint.sent_out -= bytes.0;
                    return true;
                }
                self.core.remotes[remote.index()].wants = Some((socket, bytes.0));
                false
            }
            RemoteOperation::Close(socket) => {
                if let Peer::Remote { nic, .. } = self.core.endpoints[socket.index()].peer {
                    self.inbound(nic, Packet::End { socket }, EMPTY);
                }
                true
            }
        }
    }

    fn inbound(&mut self, nic: Nic, packet: Packet, bytes: u64) {
        let now = self.core.now();
        let at = self.core.cards[nic.index()].receive(bytes, now);
        self.core.schedule(at, Event::Packet(nic, packet));
    }

    /// A socket for a connection from a remote peer; `None`, and the run's end, where memory is full.
    fn connection(&mut self, peer: Peer) -> Option<Socket> {
        let capacity = self.core.settings.socket_buffer;
        if let Some(socket) = self.core.free_endpoints.pop() {
            let buffer = self.core.endpoints[socket.index()].buffer;
            self.core.endpoints[socket.index()] = Endpoint::new(peer, buffer, capacity);
            return Some(socket);
        }
        let Ok(buffer) = self.core.memory.region(capacity) else {
            self.core.ending = Some(Ending::MemoryFull {
                at: self.core.now(),
            });
            return None;
        };
        self.core
            .endpoints
            .push(Endpoint::new(peer, buffer, capacity));
        Some(Socket(self.core.endpoints.len() as u32 - 1))
    }

    /// Gives the socket to the next connection when both ends closed it and nothing that it sent
    /// is on its way any more. Called whenever one of the three becomes true.
    pub(crate) fn reuse_if_closed(&mut self, socket: Socket) {
        let endpoint = &self.core.endpoints[socket.index()];
        if endpoint.closed && endpoint.peer_closed && endpoint.in_flight == 0 {
            self.core.free_endpoints.push(socket);
        }
    }

    /// The card got a packet; if its ring was quiet, it interrupts.
    pub(crate) fn packet_arrived(&mut self, nic: Nic, packet: Packet) {
        let cpus = self.core.cpus.len() as u16;
        let card = &mut self.core.cards[nic.index()];
        card.ring.push_back(packet);
        if card.polled {
            return;
        }
        card.polled = true;
        let cpu = card.interrupt_cpu(cpus);
        self.interrupt(cpu, PendingInterrupt::Network(nic));
    }

    /// One packet of the ring goes up the protocol stack; then the next, until it is empty.
    pub(crate) fn poll_card(&mut self, cpu: CpuId, nic: Nic) -> Flow {
        let Some(packet) = self.core.cards[nic.index()].ring.pop_front() else {
            self.core.cards[nic.index()].polled = false;
            return Flow::Next;
        };
        self.core.cpu(cpu).stack.push(Step::Poll(nic));
        let packets = match packet {
            Packet::Data { bytes, .. } => bytes.0.div_ceil(SEGMENT).max(1),
            Packet::Connect { .. } | Packet::End { .. } | Packet::Acknowledge => 1,
        };
        if let Some(woken) = self.accept_packet(packet) {
            self.core.cpu(cpu).stack.push(wake(woken));
        }
        Flow::Takes(self.core.times.network_packet * packets, Mode::Interrupt)
    }

    /// What the packet does to its socket, and whom it wakes.
    fn accept_packet(&mut self, packet: Packet) -> Option<warmq_units::TaskId> {
        match packet {
            Packet::Connect { listener, socket } => {
                let backlog = &mut self.core.backlogs[listener.index()];
                backlog.connections.push_back(socket);
                backlog.acceptors.pop_front()
            }
            Packet::Data { socket, bytes } => {
                let endpoint = &mut self.core.endpoints[socket.index()];
                endpoint.filled += bytes.0;
                endpoint.readers.pop_front()
            }
            Packet::End { socket } => {
                let endpoint = &mut self.core.endpoints[socket.index()];
                if std::mem::replace(&mut endpoint.peer_closed, true) {
                    return None;
                }
                let reader = endpoint.readers.pop_front();
                self.reuse_if_closed(socket);
                reader
            }
            Packet::Acknowledge => None,
        }
    }

    /// `bytes` go out over the card's link. Every second segment is acknowledged.
    pub(crate) fn transmit(&mut self, remote: Remote, nic: Nic, socket: Socket, bytes: u64) {
        let now = self.core.now();
        let at = self.core.cards[nic.index()].send(bytes, now);
        self.core.endpoints[socket.index()].in_flight += bytes;
        self.core.schedule(
            at,
            Event::Delivered {
                remote,
                socket,
                bytes,
            },
        );
        for _ in 0..bytes.div_ceil(SEGMENT) / 2 {
            let back = at + self.core.cards[nic.index()].delay();
            self.core
                .schedule(back, Event::Packet(nic, Packet::Acknowledge));
        }
    }

    /// Bytes reached the other side.
    pub(crate) fn delivered(&mut self, remote: Remote, socket: Socket, bytes: u64) {
        let endpoint = &mut self.core.endpoints[socket.index()];
        endpoint.in_flight -= bytes;
        endpoint.sent_out += bytes;
        let wants = &mut self.core.remotes[remote.index()].wants;
        if let Some((wanted, want)) = *wants
            && wanted == socket
            && endpoint.sent_out >= want
        {
            endpoint.sent_out -= want;
            *wants = None;
            self.resume_remote(remote, 0);
        }
        self.reuse_if_closed(socket);
    }
}
