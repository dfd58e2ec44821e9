//! Packets on their way to a card and into its ring.

use warmq_units::{Bytes, CpuId, CpuSet, Instant};

use crate::core::net::{Arrived, Packet, PacketCounts, true_size};
use crate::core::{Core, Event};
use crate::words::{Nic, ReceiveCharge};

/// Packets that a CPU's backlog holds (`netdev_max_backlog`; 300 up to 2.6.4).
const BACKLOG: usize = 1_000;

impl Core {
    /// The packets of `nic`, in all its queues.
    pub(crate) fn packets(&self, nic: Nic) -> PacketCounts {
        let queues = self.net.cards[nic].queues();
        let mut sum = PacketCounts::default();
        for queue in 0..queues {
            let counts = self.net.cards[Nic(nic.0 + u32::from(queue))].counts();
            sum.sent += counts.sent;
            sum.received += counts.received;
            sum.dropped += counts.dropped;
            sum.in_flight += counts.in_flight;
        }
        sum
    }

    /// The queue of `nic` into which `packet` goes: the packets of a socket go into one, by a hash
    /// of their addresses.
    pub(crate) fn queue_of(&self, nic: Nic, packet: &Packet) -> Nic {
        /// The golden ratio as a fraction of 2^32, which spreads consecutive numbers.
        const SPREAD: u32 = 0x9e37_79b9;
        let queues = u32::from(self.net.cards[nic].queues());
        let hash = match packet.socket() {
            Some(socket) if queues > 1 => socket.0.wrapping_mul(SPREAD) >> 16,
            _ => 0,
        };
        Nic(nic.0 + hash % queues.max(1))
    }

    /// A packet that was counted as sent reaches the ring of `queue` at `at`.
    pub(crate) fn on_its_way(&mut self, queue: Nic, packet: Packet, at: Instant) {
        if self.net.cards[queue].has_model() {
            self.net.cards[queue].on_its_way(packet, at);
            self.look_in_time(queue);
        } else {
            self.schedule(at, Event::Packet(queue, packet));
        }
    }

    /// Has an event look at a card with a model when it may report packets next.
    pub(crate) fn look_in_time(&mut self, nic: Nic) {
        let now = self.now();
        if let Some(at) = self.net.cards[nic].needs_look(now) {
            self.schedule(at, Event::Card(nic));
        }
    }

    /// Takes in what has reached a card with a model by now. Packets that found the ring full are
    /// recorded now and not when they arrived.
    pub(crate) fn absorb(&mut self, nic: Nic) {
        if !self.net.cards[nic].has_model() {
            return;
        }
        let now = self.now();
        for arrived in self.net.cards[nic].advance(now) {
            match arrived {
                Arrived::InRing(packet) => self.receive_by_dma(packet),
                Arrived::Dropped(packet) => {
                    let (_, cpu) = self.next_turn(nic);
                    self.record_drop(cpu);
                    self.packet_dropped(nic, packet);
                }
            }
        }
    }

    /// Moves what a card without NAPI reports to the backlog of `cpu`, and lets it interrupt again.
    pub(crate) fn fill_backlog(&mut self, cpu: CpuId, nic: Nic) {
        self.absorb(nic);
        while let Some(packet) = self.net.cards[nic].take_to_backlog() {
            if self.cpu(cpu).backlog.len() < BACKLOG {
                self.cpu(cpu).backlog.push_back((nic, packet));
            } else {
                self.net.cards[nic].dropped_at_backlog();
                self.record_drop(cpu);
                self.packet_dropped(nic, packet);
            }
        }
        self.unmask(nic);
    }

    /// Unmasks the interrupts of a card: one that shows packets raises one at once.
    pub(crate) fn unmask(&mut self, nic: Nic) {
        self.net.cards[nic].unmask();
        if self.net.cards[nic].has_model() {
            self.look_in_time(nic);
        }
    }

    /// The ring, or a backlog, was full and the packet is dropped. On a stream, the sender
    /// retransmits it.
    pub(crate) fn packet_dropped(&mut self, nic: Nic, packet: Packet) {
        if let Some(after) = packet.sent_again_after() {
            self.net.cards[nic].sent();
            let again = self.now() + after;
            self.on_its_way(nic, packet, again);
        }
        if let Packet::Datagram { socket, .. } = packet {
            self.net.endpoints[socket].datagrams.dropped += 1;
        }
    }

    /// The memory that a datagram of `bytes` that came through `nic` is charged with. Kernels of
    /// 2.6 charge what the driver allocated, where the model of the card says that.
    pub(crate) fn true_size(&self, nic: Option<Nic>, bytes: Bytes) -> u64 {
        let of_driver = match (self.settings.receive_charge, nic) {
            (ReceiveCharge::With { sk_buff }, Some(nic)) => {
                self.net.cards[nic].true_size(bytes, sk_buff)
            }
            _ => None,
        };
        of_driver.unwrap_or_else(|| true_size(bytes))
    }

    /// Has `nic` interrupt the CPUs in `cpus` from now on; of a card with several queues, each
    /// queue interrupts one of them. CPUs that the machine lacks are ignored; if none is left,
    /// nothing changes.
    pub(crate) fn steer(&mut self, nic: Nic, cpus: &CpuSet) {
        let all = CpuSet::first_cpus(self.cpus.len() as u16);
        let existing = cpus.intersection(&all);
        if !existing.is_empty() {
            let queues = self.net.cards[nic].queues();
            for queue in 0..queues {
                let own = existing.iter().nth(usize::from(queue) % existing.len());
                let card = &mut self.net.cards[Nic(nic.0 + u32::from(queue))];
                match own.filter(|_| queues > 1) {
                    Some(own) => card.steer(&[own].into_iter().collect()),
                    None => card.steer(&existing),
                }
            }
        }
    }

    /// Whose turn it will be after this interrupt of `nic`, and the CPU that takes it.
    pub(crate) fn next_turn(&self, nic: Nic) -> (usize, CpuId) {
        let online = |cpu: CpuId| self.cpus[cpu.index()].online;
        let moves = self.settings.interrupts_move;
        let moved = moves.map(|every| self.now().0 / every.0.max(1));
        self.net.cards[nic].next_turn(self.cpus.len() as u16, moved, online)
    }
}
