//! What the protocols keep of streams, and what they do besides packets.

use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, Duration, LockId};

use crate::core::memory::Within;
use crate::core::{Core, Event};
use crate::words::Socket;

impl Core {
    /// What the protocols do in a send or a receive besides `packets` and with them: in the call
    /// itself, and in the softirq of those that arrive. What goes through a pipe passes no
    /// protocol, and what another machine sends has passed it.
    pub(crate) fn stream_work(&self, loopback: bool, packets: u64) -> (Duration, Duration) {
        if !loopback {
            return Default::default();
        }
        let packets = self.times.stream_packet * packets;
        let arrival = self.arrival(packets);
        (self.times.stream_call + packets - arrival, arrival)
    }

    /// Whether the receiving side's part of a packet is a softirq's.
    pub(crate) fn has_arrivals(&self) -> bool {
        self.settings.loopback.arrival_permille > 0
    }

    /// The receiving side's part of what a packet takes.
    pub(crate) fn arrival(&self, packet: Duration) -> Duration {
        packet * self.settings.loopback.arrival_permille / 1_000
    }

    /// Where short segments have come to `socket`: from now on they wait to be acknowledged, unless
    /// others do already (`tcp_send_delayed_ack()`).
    pub(crate) fn delay_acknowledgement(&mut self, socket: Socket) {
        let (now, delay) = (self.now(), self.settings.loopback.delayed_acknowledgement);
        let end = &mut self.net.endpoints[socket];
        let (Some(delay), true) = (delay, end.unacknowledged > 0 && end.is_loopback()) else {
            return;
        };
        let at = *end.acknowledged_at.get_or_insert(now + delay);
        if !std::mem::replace(&mut end.delays_acknowledgement, true) {
            self.schedule(at, Event::DelayedAcknowledgement(socket));
        }
    }

    /// What has waited long enough at `socket` is acknowledged (`tcp_delack_timer()`), and what
    /// stayed with the sender comes. That takes no time here, as it happens 25 times a second at
    /// most; there was something to read before, so it wakes nobody.
    pub(crate) fn acknowledge_late(&mut self, socket: Socket) {
        let now = self.now();
        let end = &mut self.net.endpoints[socket];
        end.delays_acknowledgement = false;
        if end.acknowledged_at.is_some_and(|at| at <= now) {
            end.acknowledge_unread();
        }
        self.delay_acknowledgement(socket);
    }

    /// Memory for what the protocols keep of a socket, if that is modelled.
    pub(crate) fn socket_state(&mut self) -> Option<Address> {
        let bytes = u64::from(self.settings.socket_lines) * self.memory.line();
        (bytes > 0).then(|| self.kernel_data(Bytes(bytes)))
    }

    /// Memory for what is kept of messages to the Unix socket `socket`, from the first message on,
    /// if that is modelled.
    pub(crate) fn keep_unix_state(&mut self, socket: Socket) {
        let bytes = u64::from(self.settings.pipe_lines) * self.memory.line();
        if bytes > 0 && self.net.endpoints[socket].state.is_none() {
            self.net.endpoints[socket].state = Some(self.kernel_data(Bytes(bytes)));
        }
    }

    /// Memory for what a pipe keeps, and its mutex in it, if that is modelled.
    pub(crate) fn pipe_state(&mut self) -> (Option<Address>, Option<LockId>) {
        let bytes = u64::from(self.settings.pipe_lines) * self.memory.line();
        let state = (bytes > 0 && self.locks.has_room()).then(|| self.kernel_data(Bytes(bytes)));
        let mutex = state.map(|state| self.locks.add("pipe_mutex", state));
        (state, mutex)
    }

    /// The protocols on `cpu` write what they keep of sockets. Returns how long that takes: one
    /// line after the other, as each points to the next.
    pub(crate) fn write_sockets<const N: usize>(
        &mut self,
        cpu: CpuId,
        states: [Option<Address>; N],
    ) -> Duration {
        let lines = self.settings.socket_lines;
        self.write_states(cpu, states, lines)
    }

    /// A write or a read on `cpu` writes what the pipe keeps whose read end is `socket`, or what is
    /// kept of messages to the Unix socket `socket`. Returns
    /// how long that takes.
    pub(crate) fn write_pipe(&mut self, cpu: CpuId, socket: Socket) -> Duration {
        let state = self.net.endpoints[socket].state;
        self.write_states(cpu, [state], self.settings.pipe_lines)
    }

    fn write_states<const N: usize>(
        &mut self,
        cpu: CpuId,
        states: [Option<Address>; N],
        lines: u32,
    ) -> Duration {
        let (now, line) = (self.now(), self.memory.line());
        let mut took = Duration::ZERO;
        for state in states.into_iter().flatten() {
            for address in (0..u64::from(lines)).map(|index| state + index * line) {
                let at = now + took;
                took += self
                    .memory
                    .access(cpu, address, Access::Write, at, Within::Elsewhere);
            }
        }
        took
    }
}
