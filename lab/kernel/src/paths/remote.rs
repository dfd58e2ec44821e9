//! Traffic between this machine and its remote peers.

use warmq_units::{CpuId, TaskId};

use crate::core::{Datagram, Endpoint, Event, Packet, Peer, Vector};
use crate::paths::{STEPS_AT_ONCE, System};
use crate::words::{Nic, Origin, Remote, RemoteOperation, SEGMENT, Sender, Socket, resume};

/// Bytes of a packet that carries no data; the link adds the headers.
const EMPTY: u64 = 0;

impl System {
    /// Resumes a remote peer with `answer` and runs it up to its next operation that takes time.
    pub(crate) fn resume_remote(&mut self, remote: Remote, answer: u64) {
        self.core.net.remotes[remote].mailbox.answer(answer);
        loop {
            let now = self.core.now();
            let here = &mut self.core.net.remotes[remote];
            if here.count_step(now) > STEPS_AT_ONCE {
                let comm = format!("client {}", remote.0);
                return self.core.no_progress(None, comm);
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

    /// Begins an operation of a remote peer. True if it takes no time.
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
                self.core.net.remotes[remote]
                    .mailbox
                    .answer(socket.0.into());
                true
            }
            RemoteOperation::Send { socket, bytes } => {
                if let Peer::Remote { nic, .. } = self.core.net.endpoints[socket].peer {
                    self.inbound(nic, Packet::Data { socket, bytes }, bytes.0);
                }
                true
            }
            RemoteOperation::SendDatagram {
                socket,
                nic,
                bytes,
                number,
            } => {
                self.core.net.endpoints[socket].datagrams.sent += 1;
                if let Some(number) = number {
                    self.core.begin_round_trip(remote, number);
                }
                let from = Origin {
                    remote,
                    nic,
                    number: number.unwrap_or(0),
                };
                let packet = Packet::Datagram {
                    socket,
                    bytes,
                    from,
                };
                self.inbound(nic, packet, bytes.0);
                true
            }
            RemoteOperation::Steer { nic, cpus } => {
                self.core.steer(nic, &cpus);
                true
            }
            RemoteOperation::Receive { socket, bytes } => {
                let endpoint = &mut self.core.net.endpoints[socket];
                if endpoint.sent_out >= bytes.0 {
                    endpoint.sent_out -= bytes.0;
                    return true;
                }
                self.core.net.remotes[remote].wants = Some((socket, bytes.0));
                false
            }
            RemoteOperation::Close(socket) => {
                if let Peer::Remote { nic, .. } = self.core.net.endpoints[socket].peer {
                    self.inbound(nic, Packet::End { socket }, EMPTY);
                }
                true
            }
        }
    }

    fn inbound(&mut self, nic: Nic, packet: Packet, bytes: u64) {
        let now = self.core.now();
        let card = &mut self.core.net.cards[nic];
        let at = card.receive(&packet, bytes, now);
        let queue = self.core.queue_of(nic, &packet);
        self.core.net.cards[queue].sent();
        self.core.on_its_way(queue, packet, at);
    }

    /// Creates a socket for a connection from a remote peer. If memory is full, ends the run and
    /// returns `None`.
    fn connection(&mut self, peer: Peer) -> Option<Socket> {
        let capacity = self.core.settings.stream_buffer;
        if let Some(socket) = self.core.net.take_free() {
            let buffer = self.core.net.endpoints[socket].buffer;
            self.core.net.endpoints[socket] = Endpoint::new(peer, buffer, capacity);
            return Some(socket);
        }
        let Ok(buffer) = self.core.memory.region(capacity) else {
            self.core.run_out_of_memory();
            return None;
        };
        let endpoint = Endpoint::new(peer, buffer, capacity);
        Some(self.core.net.endpoints.add(endpoint))
    }

    /// A packet arrived over the link of a card.
    pub(crate) fn packet_arrived(&mut self, nic: Nic, packet: Packet) {
        if !self.core.net.cards[nic].arrived(packet) {
            // No CPU sees it: it is recorded of the one that would have been interrupted next.
            let (_, cpu) = self.core.next_turn(nic);
            self.core.record_drop(cpu);
            return self.core.packet_dropped(nic, packet);
        }
        self.core.receive_by_dma(packet);
        if self.core.net.cards[nic].is_armed() {
            let (next, cpu) = self.core.next_turn(nic);
            let cpu = self.core.online_or_first(cpu);
            self.core.net.cards[nic].raise(cpu, next);
            self.interrupt(cpu, Vector::Network(nic));
        }
    }

    /// Delivers a packet to its socket. Returns the task that it wakes, if any.
    pub(crate) fn accept_packet(&mut self, cpu: CpuId, packet: Packet) -> Option<TaskId> {
        match packet {
            Packet::Connect { listener, socket } => {
                let backlog = &mut self.core.net.backlogs[listener];
                backlog.connections.push_back(socket);
                backlog.acceptors.pop_front()
            }
            Packet::Data { socket, bytes } => {
                self.core.record_packet(cpu, bytes.0);
                let endpoint = &mut self.core.net.endpoints[socket];
                endpoint.filled += bytes.0;
                endpoint.readers.pop_front()
            }
            Packet::End { socket } => {
                let endpoint = &mut self.core.net.endpoints[socket];
                if std::mem::replace(&mut endpoint.peer_closed, true) {
                    return None;
                }
                let reader = endpoint.readers.pop_front();
                self.core.net.reuse_if_closed(socket);
                reader
            }
            Packet::Acknowledge => None,
            Packet::Datagram {
                socket,
                bytes,
                from,
            } => {
                self.core.record_packet(cpu, bytes.0);
                let true_size = self.core.true_size(Some(from.nic), bytes);
                let from = Sender(Some(from));
                let queued = self.core.queue_datagram(
                    cpu,
                    socket,
                    Datagram {
                        bytes,
                        from,
                        true_size,
                    },
                );
                let endpoint = &mut self.core.net.endpoints[socket];
                queued.then(|| endpoint.readers.pop_front()).flatten()
            }
        }
    }

    /// Sends `bytes` over the card's link. Every second segment is acknowledged.
    pub(crate) fn transmit(&mut self, remote: Remote, nic: Nic, socket: Socket, bytes: u64) {
        let now = self.core.now();
        let at = self.core.net.cards[nic].send(bytes, now);
        self.core.net.endpoints[socket].in_flight += bytes;
        self.core.schedule(
            at,
            Event::Delivered {
                remote,
                socket,
                bytes,
            },
        );
        for _ in 0..bytes.div_ceil(SEGMENT) / 2 {
            let card = &mut self.core.net.cards[nic];
            card.sent();
            let back = at + card.delay();
            self.core.on_its_way(nic, Packet::Acknowledge, back);
        }
    }

    /// Bytes arrived at the other side.
    pub(crate) fn delivered(&mut self, remote: Remote, socket: Socket, bytes: u64) {
        let endpoint = &mut self.core.net.endpoints[socket];
        endpoint.in_flight -= bytes;
        endpoint.sent_out += bytes;
        let wants = &mut self.core.net.remotes[remote].wants;
        if let Some((wanted, want)) = *wants
            && wanted == socket
            && endpoint.sent_out >= want
        {
            endpoint.sent_out -= want;
            *wants = None;
            self.resume_remote(remote, 0);
        }
        self.core.net.reuse_if_closed(socket);
    }
}
