//! Answers to datagrams: they go back to the remote peer that sent the datagram, over the card by
//! which it came. A peer can measure how long that takes.
//!
//! Purpose: round trips as the other side sees them. A peer that measures begins a span with each
//! datagram that it numbers, and the first answer that is back ends it. A datagram that is lost, or
//! that nobody answers, leaves a span that never ends. Links lose no answers, and what the card
//! does when one has left costs no interrupt, as on streams.

use warmq_units::{Bytes, CpuId};

use crate::core::Event;
use crate::paths::{Flow, System};
use crate::words::{Origin, Socket, Step};

impl System {
    /// Copies an answer of `bytes` to a datagram that came to `socket`, and sends it.
    pub(crate) fn answer(&mut self, cpu: CpuId, socket: Socket, to: Origin, bytes: Bytes) -> Flow {
        let endpoint = &mut self.core.net.endpoints[socket];
        let (buffer, written) = (endpoint.buffer, endpoint.written);
        endpoint.written += bytes.0;
        let copied = self.lines_of(buffer, written, bytes.0);
        let bytes = bytes.0;
        let packet = self.core.times.network_packet;
        self.copy_datagram(cpu, copied, packet, Step::TransmitAnswer(to, bytes))
    }

    /// Sends an answer that was copied over the link of its card. That enables softirqs again, so
    /// that those that are left over run.
    pub(crate) fn transmit_answer(&mut self, cpu: CpuId, to: Origin, bytes: u64) -> Flow {
        let now = self.core.now();
        let at = self.core.net.cards[to.nic].send(bytes, now);
        self.core.schedule(at, Event::Answered(to));
        self.run_pending_softirqs(cpu);
        Flow::Next
    }
}
