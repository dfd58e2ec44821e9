//! What the protocols keep of streams, and what they do besides packets.

use std::ops::Range;

use warmq_machine::{Access, OutOfMemory};
use warmq_units::{Address, Bytes, CpuId, Duration, LockId};

use crate::core::memory::{Memory, Within};
use crate::core::net::{SHARED_INFO, SK_BUFF, Segments};
use crate::core::{Core, Event};
use crate::words::{Region, Socket};

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

    /// Memory for the segments that come to an end with a receive buffer of `window`, if that is
    /// modelled.
    pub(crate) fn segments(&mut self, window: Bytes) -> Option<Segments> {
        let loopback = self.settings.loopback;
        (loopback.segment_memory.0 > 0).then(|| Segments {
            memory: self.memory.empty_region(),
            longest: loopback.longest_segment(window.0),
            came: 0,
            taken: 0,
        })
    }

    /// A call on `cpu` writes what the segments with these `numbers` have that come to `socket`, or
    /// of which it takes something there, if that is modelled. Returns how long that takes.
    pub(crate) fn write_segments(
        &mut self,
        cpu: CpuId,
        socket: Socket,
        numbers: Range<u64>,
    ) -> Result<Duration, OutOfMemory> {
        let segments = self.net.endpoints[socket].segments;
        let Some(segments) = segments.filter(|_| !numbers.is_empty()) else {
            return Ok(Duration::ZERO);
        };
        let each = self.settings.loopback.segment_memory.0;
        let waiting = segments.came.max(numbers.end) - segments.taken.min(numbers.start);
        self.memory.grow(segments.memory, Bytes(waiting * each))?;
        let count = numbers.end - numbers.start;
        Ok(self.write_buffers(cpu, segments.memory, (numbers.start * each, each), count))
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

    /// The protocols on `cpu` write what they keep of sockets, with so many `packets` or without.
    /// Returns how long that takes.
    pub(crate) fn write_sockets<const N: usize>(
        &mut self,
        cpu: CpuId,
        states: [Option<Address>; N],
        packets: u64,
    ) -> Duration {
        let all = self.settings.socket_lines;
        let (lines, chain) = match packets {
            0 => self.settings.loopback.call_lines,
            _ => (all, all),
        };
        self.write_states(cpu, states, lines.min(all), chain)
    }

    /// A write or a read on `cpu` writes what the pipe keeps whose read end is `socket`, or what is
    /// kept of messages to the Unix socket `socket`. Returns
    /// how long that takes.
    pub(crate) fn write_pipe(&mut self, cpu: CpuId, socket: Socket) -> Duration {
        let state = self.net.endpoints[socket].state;
        let lines = self.settings.pipe_lines;
        self.write_states(cpu, [state], lines, lines)
    }

    /// A call on `cpu` writes what is kept of messages to the Unix socket `socket`, and what each
    /// of `messages` of `charged` bytes has in the socket's memory from position `at` on, if that
    /// is modelled. Returns how long that takes.
    pub(crate) fn write_messages(
        &mut self,
        cpu: CpuId,
        socket: Socket,
        (at, charged): (u64, u64),
        messages: u64,
    ) -> Duration {
        let end = &self.net.endpoints[socket];
        let (buffer, messages) = (end.buffer, end.state.map_or(0, |_| messages));
        self.write_pipe(cpu, socket) + self.write_buffers(cpu, buffer, (at, charged), messages)
    }

    /// Writes what `count` buffers of `each` bytes have in `memory` from position `at` on: the free
    /// lists keep their links in the `sk_buff` and in the memory behind it, and at the end of that
    /// is the `skb_shared_info`. Returns how long that takes: each is found by a pointer in the one
    /// before.
    fn write_buffers(
        &mut self,
        cpu: CpuId,
        memory: Region,
        (at, each): (u64, u64),
        count: u64,
    ) -> Duration {
        let line = self.memory.line();
        let parts = [0, SK_BUFF, each - SHARED_INFO];
        let places = (0..count).flat_map(|nth| parts.map(|part| at + nth * each + part));
        let address = |at| self.memory.address(memory, at / line);
        let lines: Vec<_> = places.map(address).collect();
        self.write_lines(cpu, lines, u32::MAX)
    }

    fn write_states<const N: usize>(
        &mut self,
        cpu: CpuId,
        states: [Option<Address>; N],
        lines: u32,
        chain: u32,
    ) -> Duration {
        let line = self.memory.line();
        let lines_of = |state| (0..u64::from(lines)).map(move |index| state + index * line);
        self.write_lines(cpu, states.into_iter().flatten().flat_map(lines_of), chain)
    }

    /// Writes lines on `cpu`: of the first ones, a `chain`, each points to the next, so that they
    /// wait for one another; the others do not. Returns how long that takes.
    fn write_lines(
        &mut self,
        cpu: CpuId,
        lines: impl IntoIterator<Item = Address>,
        chain: u32,
    ) -> Duration {
        let (now, mut took) = (self.now(), Duration::ZERO);
        for (nth, line) in (0..).zip(lines) {
            let (at, within) = (now + took, Within::Elsewhere);
            let access = match nth < chain {
                true => Memory::access,
                false => Memory::access_overlapped,
            };
            took += access(&mut self.memory, cpu, line, Access::Write, at, within);
        }
        took
    }
}
