//! Pairs of Unix stream sockets. The sender puts a message into the receiver's queue and wakes it;
//! no packet, no softirq. Senders wait for room in their own buffer, which what the receiver takes
//! frees.

use warmq_units::{Bytes, CpuId, Duration};

use crate::core::SK_BUFF;
use crate::paths::{Flow, System};
use crate::words::{Mode, Operation, Socket, Step, Waiting};

impl System {
    /// Sends the next message of what is `left` to `peer`, and then the rest.
    pub(crate) fn send_unix(
        &mut self,
        cpu: CpuId,
        (socket, peer): (Socket, Socket),
        left: Bytes,
    ) -> Flow {
        let current = self.core.current(cpu);
        let to = &mut self.core.net.endpoints[peer];
        if to.closed || left.0 == 0 {
            return Flow::Next;
        }
        let rest = |left| Operation::Send { socket, left };
        let Some((bytes, charged)) = to.next_message(left.0) else {
            to.writers.push_back(current);
            return self.sleep_and_repeat(cpu, Waiting::Room(peer.0), rest(left));
        };
        to.queued_true += charged;
        to.reserved += bytes;
        let (buffer, written, kept) = (to.buffer, to.written, Bytes(to.queued_true));
        to.written += charged;
        if self.core.memory.grow(buffer, kept).is_err() {
            self.core.run_out_of_memory();
            return Flow::Next;
        }
        self.core.keep_unix_state(peer);
        let touch = self.lines_of(buffer, written + SK_BUFF, bytes).writing();
        let deliver = Step::Deliver(peer, bytes, Duration::ZERO);
        let left = Bytes(left.0 - bytes);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.extend((left.0 > 0).then(|| Step::Perform(rest(left))));
        stack.extend([deliver, Step::Touch { touch, user: false }]);
        let work = self.core.times.socket_send + self.core.times.unix_message;
        let lines = self.core.write_messages(cpu, peer, (written, charged), 1);
        Flow::Takes(work + lines, Mode::System)
    }

    /// Takes `bytes` of what waits at `socket`, which this call owns.
    pub(crate) fn receive_unix(&mut self, cpu: CpuId, socket: Socket, bytes: u64) -> Flow {
        let end = &mut self.core.net.endpoints[socket];
        let charged = end.queued.front().map_or(0, |first| first.true_size);
        let (buffer, read) = (end.buffer, end.read);
        let messages = end.take_messages(bytes);
        let touch = self.lines_of(buffer, read + SK_BUFF, bytes);
        let steps = [
            Step::Answer(bytes),
            Step::ReleaseSocket(socket),
            Step::Take(socket, bytes, None),
            Step::Touch { touch, user: false },
        ];
        self.core.cpu(cpu).stack.extend(steps);
        let work = self.core.times.socket_receive + self.core.times.unix_message * messages;
        let lines = self
            .core
            .write_messages(cpu, socket, (read, charged), messages);
        Flow::Takes(work + lines, Mode::System)
    }
}
