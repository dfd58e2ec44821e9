//! What the protocols keep of streams, and what they do besides packets.

use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, Duration};

use crate::core::memory::Within;
use crate::core::{Core, Event};
use crate::words::Socket;

impl Core {
    /// What the protocols do in a send or a receive besides `packets`. What goes through a pipe
    /// passes no protocol, and what another machine sends has passed it.
    pub(crate) fn stream_work(&self, loopback: bool, packets: u64) -> Duration {
        match loopback {
            true => self.times.stream_call + self.times.stream_packet * packets,
            false => Duration::ZERO,
        }
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

    /// The protocols on `cpu` write what they keep of sockets. Returns how long that takes: one
    /// line after the other, as each points to the next.
    pub(crate) fn write_sockets<const N: usize>(
        &mut self,
        cpu: CpuId,
        states: [Option<Address>; N],
    ) -> Duration {
        let (now, line) = (self.now(), self.memory.line());
        let lines = u64::from(self.settings.socket_lines);
        let mut took = Duration::ZERO;
        for state in states.into_iter().flatten() {
            for address in (0..lines).map(|index| state + index * line) {
                let at = now + took;
                took += self
                    .memory
                    .access(cpu, address, Access::Write, at, Within::Elsewhere);
            }
        }
        took
    }
}
