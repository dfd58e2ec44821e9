//! Pairs of Unix stream sockets. The sender puts a message into the receiver's queue and wakes it;
//! no packet, no softirq. Senders wait for room in their own buffer, which what the receiver takes
//! frees.

use warmq_machine::Access;
use warmq_units::{Bytes, CpuId, Duration, TaskId};

use crate::paths::{Engine, Flow};
use crate::words::{Mode, Operation, Socket, Step, Touch, Waiting};

impl Engine {
    /// Sends the next message of what is `left` to `peer`, and then the rest.
    pub(crate) fn send_unix(
        &mut self,
        cpu: CpuId,
        current: TaskId,
        (socket, peer): (Socket, Socket),
        left: Bytes,
    ) -> Flow {
        let to = &mut self.core.net.endpoints[peer];
        if to.closed || left.0 == 0 {
            return Flow::Next;
        }
        let rest = |left| Step::Perform(Operation::Send { socket, left });
        let Some((bytes, charged)) = to.next_message(left.0) else {
            to.writers.push_back(current);
            self.core.cpu(cpu).stack.push(rest(left));
            self.sleep(cpu, current, Waiting::Room(peer.0));
            return Flow::Next;
        };
        to.queued_true += charged;
        to.reserved += bytes;
        let (buffer, written, waiting) = (to.buffer, to.written, Bytes(to.waiting() + bytes));
        to.written += bytes;
        if self.core.memory.grow(buffer, waiting).is_err() {
            self.core.run_out_of_memory();
            return Flow::Next;
        }
        self.core.keep_unix_state(peer);
        let touch = Touch {
            access: Access::Write,
            ..self.lines_of(buffer, written, bytes)
        };
        let deliver = Step::Deliver {
            socket: peer,
            bytes,
            arrival: Duration::ZERO,
        };
        let left = Bytes(left.0 - bytes);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.extend((left.0 > 0).then(|| rest(left)));
        stack.extend([deliver, Step::Touch { touch, user: false }]);
        let work = self.core.times.socket_send + self.core.times.unix_message;
        Flow::Takes(work + self.core.write_pipe(cpu, peer), Mode::System)
    }

    /// Takes `bytes` of what waits at `socket`, which this call owns.
    pub(crate) fn receive_unix(&mut self, cpu: CpuId, socket: Socket, bytes: u64) -> Flow {
        let end = &mut self.core.net.endpoints[socket];
        let (buffer, read) = (end.buffer, end.read);
        let messages = end.take_messages(bytes);
        let touch = self.lines_of(buffer, read, bytes);
        let take = Step::Take {
            socket,
            bytes,
            arrival: None,
        };
        let steps = [
            Step::Answer(bytes),
            Step::ReleaseSocket(socket),
            take,
            Step::Touch { touch, user: false },
        ];
        self.core.cpu(cpu).stack.extend(steps);
        let work = self.core.times.socket_receive + self.core.times.unix_message * messages;
        Flow::Takes(work + self.core.write_pipe(cpu, socket), Mode::System)
    }
}
