//! System calls: from an operation that a program asked for to the steps that perform it.

use warmq_units::{Address, Bytes, CpuId, Duration, Instant, TaskId};

use crate::core::{Datagram, Link, Peer, TimerOwner};
use crate::face::{Callback, Hint};
use crate::paths::{Flow, System};
use crate::words::{
    Barrier, Change, Listener, Misuse, Mode, Mutex, NewTask, Operation, Region, SEGMENT,
    SenderSlot, Socket, Step, Timer, Touch, Waiting, wake,
};

impl System {
    /// Puts the steps of `operation` onto the stack of `cpu`.
    pub(crate) fn begin_operation(&mut self, cpu: CpuId, current: TaskId, operation: Operation) {
        let step = match operation {
            Operation::Compute(cycles) => Step::Busy {
                left: self.core.hardware.clock.time_of(cycles),
                user: true,
            },
            Operation::ComputeFor(left) => Step::Busy { left, user: true },
            Operation::Now => Step::Answer(self.core.now().0),
            Operation::Cpu => Step::Answer(cpu.0.into()),
            Operation::Ran => {
                let task = self.core.task(current);
                Step::Answer((task.ran + (self.core.now() - task.switched_in)).0)
            }
            Operation::Span { span, edge } => {
                return self.core.note_span(current, span, edge);
            }
            Operation::GiveUp(why) => {
                let why = why.to_string();
                return self.core.program_broke(current, Misuse::GivesUp(why));
            }
            Operation::NoProgress => return self.no_progress(cpu),
            Operation::Touch(touch) => Step::Touch {
                touch: Touch {
                    work: touch.work + self.core.times.access,
                    ..touch
                },
                user: true,
            },
            Operation::Lock(mutex) if self.core.sync.mutexes[mutex].owner.is_none() => {
                self.core.sync.mutexes[mutex].owner = Some(current);
                Step::Busy {
                    left: self.core.times.lock_uncontended,
                    user: true,
                }
            }
            Operation::Look(look) => Step::Look(look),
            Operation::ReleaseSpinlock(lock) => return self.release_spinlock(cpu, lock),
            Operation::SetFragment(fragment) if self.scheduler.hint() == Hint::MemoryWrite => {
                self.write_hint(cpu, fragment)
            }
            operation => {
                let now = self.core.now();
                let left = self.core.times.system_call + self.stack_touch(cpu, now);
                let here = self.core.cpu(cpu);
                here.in_user = false;
                here.stack.push(Step::Perform(operation));
                Step::Busy { left, user: false }
            }
        };
        self.core.cpu(cpu).stack.push(step);
    }

    /// Performs a system call in the kernel, or as much of it as can be done before sleeping.
    pub(crate) fn perform_operation(&mut self, cpu: CpuId, operation: Operation) -> Flow {
        match operation {
            Operation::Compute(_)
            | Operation::ComputeFor(_)
            | Operation::Now
            | Operation::Ran
            | Operation::Cpu
            | Operation::Span { .. }
            | Operation::GiveUp(_)
            | Operation::NoProgress
            | Operation::Look(_)
            | Operation::ReleaseSpinlock(_)
            | Operation::Touch(_) => unreachable!("these need no kernel"),
            Operation::Sleep(span) => self.sleep_for(cpu, span),
            Operation::Yield => {
                let locks = self.scheduler.locks(Callback::YieldTask, cpu);
                let current = self.core.current(cpu);
                self.push_locked(cpu, locks, Step::YieldTask(current));
                Flow::Next
            }
            Operation::Send { socket, left } => self.send(cpu, socket, left),
            Operation::Receive { socket, at_most } => self.receive(cpu, socket, at_most),
            Operation::SendDatagram { socket, bytes } => self.send_datagram(cpu, socket, bytes),
            Operation::ReceiveDatagram { socket, from } => self.receive_datagram(cpu, socket, from),
            Operation::Answer { socket, to, bytes } => self.answer(cpu, socket, to, bytes),
            Operation::Close(socket) => self.close(cpu, socket),
            Operation::Accept(listener) => self.accept(cpu, listener),
            Operation::Lock(mutex) => self.lock_mutex(cpu, mutex),
            Operation::Unlock(mutex) => self.unlock_mutex(cpu, mutex),
            Operation::SleepInSpinlock(lock) => self.sleep_in_spinlock(cpu, lock),
            Operation::WakeInSpinlock(lock) => self.wake_in_spinlock(cpu, lock),
            Operation::Semop { semaphore, up } => self.semop(cpu, semaphore, up),
            Operation::Wait {
                condition,
                mutex,
                timeout,
            } => self.wait(cpu, condition, mutex, timeout),
            Operation::Notify { condition, all } => self.wake_waiters(cpu, condition, all),
            Operation::Meet(barrier) => self.meet(cpu, barrier),
            Operation::Spawn(child) => {
                let NewTask { spec, program } = *child;
                let Ok(child) = self.core.create_task(&spec, Some(cpu)) else {
                    self.core.run_out_of_memory();
                    return Flow::Next;
                };
                self.core.give_program(child, program);
                let left = self.core.times.fork_faults;
                let parent = self.core.task(self.core.current(cpu));
                if left > Duration::ZERO && self.core.task(child).mm != parent.mm {
                    let faults = Step::Busy { left, user: false };
                    self.core.task_mut(child).stack.push(faults);
                }
                let steps = [Step::Answer(child.0.into()), wake(child), Step::Fork(child)];
                self.core.cpu(cpu).stack.extend(steps);
                Flow::Takes(self.core.times.fork, Mode::System)
            }
            Operation::Change(Change::Online(target, online)) => {
                let changes = self.core.may_set_online(target, online);
                let answer = Step::Answer(changes.into());
                self.core.cpu(cpu).stack.push(answer);
                self.change(cpu, Change::Online(target, online))
            }
            Operation::Change(change) => self.change(cpu, change),
            Operation::SetFragment(fragment) => self.set_fragment(cpu, fragment),
        }
    }

    fn sleep_for(&mut self, cpu: CpuId, span: Duration) -> Flow {
        let current = self.core.current(cpu);
        self.arm_after(cpu, span, TimerOwner::Sleep(current));
        self.sleep(cpu, current, Waiting::Timer);
        Flow::Next
    }

    /// Arms a timer of `cpu` that expires after `span`, as exactly as the kernel's timers do.
    pub(crate) fn arm_after(&mut self, cpu: CpuId, span: Duration, owner: TimerOwner) -> Timer {
        let resolution = self.core.settings.timer_resolution.0.max(1);
        let at = Instant((self.core.now() + span).0.next_multiple_of(resolution));
        self.core.arm_timer(cpu, at, owner)
    }

    /// Sleeps, and performs `operation` again after that.
    pub(crate) fn sleep_and_repeat(
        &mut self,
        cpu: CpuId,
        waiting: Waiting,
        operation: Operation,
    ) -> Flow {
        let current = self.core.current(cpu);
        self.core.cpu(cpu).stack.push(Step::Perform(operation));
        self.sleep(cpu, current, waiting);
        Flow::Next
    }

    // Mutexes.

    fn lock_mutex(&mut self, cpu: CpuId, mutex: Mutex) -> Flow {
        let current = self.core.current(cpu);
        let state = &mut self.core.sync.mutexes[mutex];
        match state.owner {
            None => state.owner = Some(current),
            // Also for its owner, who waits for ever (`PTHREAD_MUTEX_NORMAL`).
            Some(_) => {
                state.waiters.push_back(current);
                // When it wakes, the mutex has been handed over to it.
                self.sleep(cpu, current, Waiting::Mutex(mutex.0));
            }
        }
        Flow::Next
    }

    /// `pthread_barrier_wait()`: sleeps, or wakes all that sleep there.
    fn meet(&mut self, cpu: CpuId, barrier: Barrier) -> Flow {
        let current = self.core.current(cpu);
        let state = &mut self.core.sync.barriers[barrier];
        if state.waiters.len() as u64 + 1 < state.tasks {
            state.waiters.push(current);
            self.sleep(cpu, current, Waiting::Barrier(barrier.0));
            return Flow::Next;
        }
        let woken: Vec<_> = state.waiters.drain(..).rev().map(wake).collect();
        self.core.cpu(cpu).stack.extend(woken);
        Flow::Next
    }

    pub(crate) fn unlock_mutex(&mut self, cpu: CpuId, mutex: Mutex) -> Flow {
        let current = self.core.current(cpu);
        let state = &mut self.core.sync.mutexes[mutex];
        if state.owner != Some(current) {
            let (mutex, owner) = (mutex.0, state.owner);
            let misuse = Misuse::UnlocksWhatItDoesNotHold { mutex, owner };
            self.core.program_broke(current, misuse);
            return Flow::Next;
        }
        if let Some(next_owner) = state.hand_on() {
            self.core.cpu(cpu).stack.push(wake(next_owner));
        }
        Flow::Takes(self.core.times.lock_uncontended, Mode::System)
    }

    // Sockets.

    pub(crate) fn lines_of(&self, buffer: Region, position: u64, bytes: u64) -> Touch {
        let line = self.core.memory.line();
        let first = position / line;
        let lines = (position + bytes).div_ceil(line) - first;
        Touch::read(buffer, first, lines).working(self.core.times.copy_per_line)
    }

    fn send(&mut self, cpu: CpuId, socket: Socket, left: Bytes) -> Flow {
        match self.core.net.endpoints[socket].peer {
            Peer::Local(peer) => self.send_local(cpu, socket, peer, left),
            Peer::Remote { .. } => self.send_out(cpu, socket, left),
            Peer::None => Flow::Next,
        }
    }

    fn send_local(&mut self, cpu: CpuId, socket: Socket, peer: Socket, left: Bytes) -> Flow {
        let current = self.core.current(cpu);
        let to = &mut self.core.net.endpoints[peer];
        if to.link == Link::Unix {
            return self.send_unix(cpu, (socket, peer), left);
        }
        if to.closed || left.0 == 0 {
            return Flow::Next;
        }
        let bytes = match to.mutex {
            Some(_) => to.room_in_pages(left.0),
            None => to.room().min(left.0),
        };
        let again = Operation::Send { socket, left };
        if bytes == 0 {
            to.writers.push_back(current);
            // A writer of a pipe that had to wait wakes the next one (`wake_next_writer`).
            let wakes_next = to.mutex.map(|_| Step::Take(peer, 0, None));
            self.core.cpu(cpu).stack.extend(wakes_next);
            return self.sleep_and_repeat(cpu, Waiting::Room(peer.0), again);
        }
        if !self.own_socket(cpu, socket, again) {
            return Flow::Next;
        }
        let to = &mut self.core.net.endpoints[peer];
        let (buffer, written, there) = (to.buffer, to.written, to.state);
        let loopback = to.is_loopback();
        let passed = to.passes(bytes);
        let acknowledged = to.is_acknowledged_quickly(passed);
        let segments = self.core.settings.loopback.segments(passed, to.capacity);
        let packets = segments + u64::from(acknowledged);
        let coming = to.next_segments(passed);
        to.reserved += bytes;
        to.written += bytes;
        if to.mutex.is_some() {
            to.write_to_pages(bytes);
        }
        let waiting = Bytes(to.waiting());
        if self.core.memory.grow(buffer, waiting).is_err() {
            self.core.run_out_of_memory();
            return Flow::Next;
        }
        let touch = self.lines_of(buffer, written, bytes).writing();
        let left = Bytes(left.0 - bytes);
        let rest = Step::Perform(Operation::Send { socket, left });
        let (call, arrival) = self.core.stream_work(loopback, packets);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.extend((left.0 > 0).then_some(rest));
        stack.push(Step::ReleaseSocket(socket));
        stack.push(Step::Deliver(peer, bytes, arrival));
        self.push_copy(cpu, peer, touch);
        let work = self.core.times.socket_send + call;
        let here = self.core.net.endpoints[socket].state;
        let there = there.filter(|_| passed > 0 && !self.core.has_arrivals());
        let states = [here, there].map(|state| state.filter(|_| loopback));
        let written = self.core.write_sockets(cpu, states, packets);
        let Ok(coming) = self.core.write_segments(cpu, peer, coming) else {
            self.core.run_out_of_memory();
            return Flow::Next;
        };
        Flow::Takes(work + written + coming, Mode::System)
    }

    /// Puts the copying of `touch` to or from the buffer of `socket` on the stack, under the mutex
    /// of a pipe.
    fn push_copy(&mut self, cpu: CpuId, socket: Socket, touch: Touch) {
        let mutex = self.core.net.endpoints[socket].mutex;
        let stack = &mut self.core.cpu(cpu).stack;
        stack.extend(mutex.map(Step::Release));
        stack.push(Step::Touch { touch, user: false });
        stack.extend(mutex.map(|_| Step::WritePipe(socket)));
        stack.extend(mutex.map(Step::Acquire));
    }

    fn send_out(&mut self, cpu: CpuId, socket: Socket, left: Bytes) -> Flow {
        let endpoint = &mut self.core.net.endpoints[socket];
        if endpoint.closed || left.0 == 0 {
            return Flow::Next;
        }
        let (buffer, written) = (endpoint.buffer, endpoint.written);
        endpoint.written += left.0;
        let touch = self.lines_of(buffer, written, left.0).writing();
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Deliver(socket, left.0, Duration::ZERO));
        stack.push(Step::Touch { touch, user: false });
        let packets = left.0.div_ceil(SEGMENT);
        Flow::Takes(
            self.core.times.socket_send + self.core.times.network_packet * packets,
            Mode::System,
        )
    }

    /// Makes a call of the current task the owner of `socket`, where calls own sockets. False if
    /// another one is: then the task sleeps, and does `operation` when that is over.
    fn own_socket(&mut self, cpu: CpuId, socket: Socket, operation: Operation) -> bool {
        let current = self.core.current(cpu);
        let end = &mut self.core.net.endpoints[socket];
        if end.owned {
            end.callers.push_back(current);
            self.sleep_and_repeat(cpu, Waiting::Socket(socket.0), operation);
            return false;
        }
        end.owned = self.core.settings.loopback.owned && end.may_be_owned();
        true
    }

    /// The owner's call of `socket` is over; the next of those that wait for it is woken.
    pub(crate) fn release_socket(&mut self, cpu: CpuId, socket: Socket) -> Flow {
        let end = &mut self.core.net.endpoints[socket];
        end.owned = false;
        let next = end.callers.pop_front().map(wake);
        self.core.cpu(cpu).stack.extend(next);
        Flow::Next
    }

    /// Moves the copied bytes to the socket's buffer, or to the link of its card.
    pub(crate) fn deliver(
        &mut self,
        cpu: CpuId,
        socket: Socket,
        bytes: u64,
        arrival: Duration,
    ) -> Flow {
        if let Peer::Remote { remote, nic } = self.core.net.endpoints[socket].peer {
            self.transmit(remote, nic, socket, bytes);
            self.run_pending_softirqs(cpu);
            return Flow::Next;
        }
        let endpoint = &mut self.core.net.endpoints[socket];
        endpoint.reserved -= bytes;
        // What stays with the sender's end comes to no softirq.
        let passed = endpoint.deliver(bytes);
        let comes = passed > 0 && endpoint.is_loopback();
        let state = endpoint.state.filter(|_| comes);
        self.core.delay_acknowledgement(socket);
        if comes {
            self.core.record_packet(cpu, passed);
            self.disable_softirqs(cpu);
        }
        self.wake_ends(cpu, socket, None);
        self.push_arrival(cpu, state, arrival);
        Flow::Next
    }

    /// Makes the steps that follow on the stack of `cpu` run as a softirq: on loopback the
    /// receiving side of the protocols runs when the sender enables softirqs again
    /// (`local_bh_enable()`).
    fn disable_softirqs(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        here.softirq_depth += 1;
        here.stack.push(Step::EnableSoftirqs);
    }

    /// The protocols work on what arrives for so long before anything else is done, and write
    /// what they keep of the socket in `state`.
    fn push_arrival(&mut self, cpu: CpuId, state: Option<Address>, arrival: Duration) {
        let state = state.filter(|_| self.core.has_arrivals());
        let left = arrival + self.core.write_sockets(cpu, [state], 1);
        if left > Duration::ZERO {
            let stack = &mut self.core.cpu(cpu).stack;
            stack.push(Step::Busy { left, user: false });
        }
    }

    fn send_datagram(&mut self, cpu: CpuId, socket: Socket, bytes: Bytes) -> Flow {
        let endpoint = &mut self.core.net.endpoints[socket];
        endpoint.datagrams.sent += 1;
        let (buffer, written) = (endpoint.buffer, endpoint.arrived);
        endpoint.arrived += bytes.0;
        let copied = self.lines_of(buffer, written, bytes.0);
        let bytes = bytes.0;
        let packet = self.core.times.network_packet;
        let way_out = packet - self.core.arrival(packet);
        self.copy_datagram(cpu, copied, way_out, Step::DeliverDatagram(socket, bytes))
    }

    /// Copies a datagram to the lines of `copied`, and `then` sends it, which takes the protocols
    /// `packet`.
    pub(crate) fn copy_datagram(
        &mut self,
        cpu: CpuId,
        copied: Touch,
        packet: Duration,
        then: Step,
    ) -> Flow {
        let touch = copied.writing();
        let copy = Step::Touch { touch, user: false };
        self.core.cpu(cpu).stack.extend([then, copy]);
        Flow::Takes(self.core.times.socket_send + packet, Mode::System)
    }

    /// Delivers the copied datagram to its socket, which queues or drops it.
    pub(crate) fn deliver_datagram(&mut self, cpu: CpuId, socket: Socket, bytes: u64) -> Flow {
        self.disable_softirqs(cpu);
        self.core.record_packet(cpu, bytes);
        let true_size = self.core.true_size(None, Bytes(bytes));
        let datagram = Datagram::local(Bytes(bytes), true_size);
        if self.core.queue_datagram(cpu, socket, datagram)
            && let Some(task) = self.core.net.endpoints[socket].readers.pop_front()
        {
            let sync = self.core.settings.sync_socket_wakeups;
            self.core.cpu(cpu).stack.push(Step::Wake { task, sync });
        }
        let arrival = self.core.arrival(self.core.times.network_packet);
        self.push_arrival(cpu, None, arrival);
        Flow::Next
    }

    fn receive_datagram(&mut self, cpu: CpuId, socket: Socket, from: Option<SenderSlot>) -> Flow {
        let current = self.core.current(cpu);
        let endpoint = &mut self.core.net.endpoints[socket];
        let Some(datagram) = endpoint.take_datagram() else {
            endpoint.readers.push_back(current);
            let again = Operation::ReceiveDatagram { socket, from };
            return self.sleep_and_repeat(cpu, Waiting::Data(socket.0), again);
        };
        if let Some(from) = from {
            from.set(datagram.from);
        }
        let bytes = datagram.bytes;
        let (buffer, read) = (endpoint.buffer, endpoint.read);
        endpoint.read += bytes.0;
        let touch = self.lines_of(buffer, read, bytes.0);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Answer(bytes.0));
        stack.push(Step::Touch { touch, user: false });
        Flow::Takes(self.core.times.socket_receive, Mode::System)
    }

    fn receive(&mut self, cpu: CpuId, socket: Socket, at_most: Bytes) -> Flow {
        let current = self.core.current(cpu);
        let endpoint = &mut self.core.net.endpoints[socket];
        let bytes = endpoint.filled.min(at_most.0);
        if bytes == 0 && (endpoint.peer_closed || at_most.0 == 0) {
            let next = endpoint.readers.pop_front().map(wake);
            let stack = &mut self.core.cpu(cpu).stack;
            stack.push(Step::Answer(0));
            stack.extend(next);
            return Flow::Next;
        }
        let again = Operation::Receive { socket, at_most };
        if bytes == 0 {
            endpoint.readers.push_back(current);
            return self.sleep_and_repeat(cpu, Waiting::Data(socket.0), again);
        }
        if !self.own_socket(cpu, socket, again) {
            return Flow::Next;
        }
        let endpoint = &mut self.core.net.endpoints[socket];
        if endpoint.link == Link::Unix {
            return self.receive_unix(cpu, socket, bytes);
        }
        let (buffer, read, here) = (endpoint.buffer, endpoint.read, endpoint.state);
        let (received, loopback) = (endpoint.receive(bytes), endpoint.is_loopback());
        let (peer, capacity) = (endpoint.peer, endpoint.capacity);
        self.core.delay_acknowledgement(socket);
        if received.came > 0 {
            self.core.record_packet(cpu, received.came);
        }
        let touch = self.lines_of(buffer, read, bytes);
        let settings = &self.core.settings.loopback;
        let segments = settings.segments(received.came, capacity);
        let most = u64::from(received.emptied) * settings.acknowledgements;
        let acknowledgements = segments.max(1).min(most);
        let packets = segments + acknowledgements;
        let (call, arrival) = self.core.stream_work(loopback, packets);
        let arrives = loopback && packets > 0 && self.core.has_arrivals();
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Answer(bytes));
        stack.push(Step::ReleaseSocket(socket));
        stack.push(Step::Take(socket, bytes, arrives.then_some(arrival)));
        self.push_copy(cpu, socket, touch);
        let work = self.core.times.socket_receive + call;
        let there = match peer {
            Peer::Local(peer) => self.core.net.endpoints[peer].state,
            Peer::Remote { .. } | Peer::None => None,
        };
        let there = there.filter(|_| acknowledgements > 0 && !self.core.has_arrivals());
        let states = [here, there].map(|state| state.filter(|_| loopback));
        let written = self.core.write_sockets(cpu, states, packets);
        let taken = self.core.write_segments(cpu, socket, received.taken);
        let came = self.core.write_segments(cpu, socket, received.next);
        let (Ok(taken), Ok(came)) = (taken, came) else {
            self.core.run_out_of_memory();
            return Flow::Next;
        };
        Flow::Takes(work + written + taken + came, Mode::System)
    }

    /// Removes the copied bytes from the buffer and wakes a sender that waits for room: where
    /// something is sent back, the softirq to which it comes does.
    pub(crate) fn take(
        &mut self,
        cpu: CpuId,
        socket: Socket,
        bytes: u64,
        arrival: Option<Duration>,
    ) -> Flow {
        let endpoint = &mut self.core.net.endpoints[socket];
        endpoint.reserved -= bytes;
        let (Peer::Local(peer), Some(arrival)) = (endpoint.peer, arrival) else {
            self.wake_ends(cpu, socket, Some(bytes));
            return Flow::Next;
        };
        let state = self.core.net.endpoints[peer].state;
        self.disable_softirqs(cpu);
        self.wake_ends(cpu, socket, Some(bytes));
        self.push_arrival(cpu, state, arrival);
        Flow::Next
    }

    /// Wakes the tasks that can continue with `socket`, from which bytes were `taken` or to which
    /// some came: a reader if there is data, a writer if there is room. If several wait, each
    /// wakes the next if it leaves data or room; all that wait for the buffer of a Unix socket are
    /// woken at once (`unix_write_space()`).
    fn wake_ends(&mut self, cpu: CpuId, socket: Socket, taken: Option<u64>) {
        let endpoint = &mut self.core.net.endpoints[socket];
        let wakes_sender = endpoint.wakes_sender(taken);
        let writers = match endpoint.peer {
            Peer::Local(_) if wakes_sender => match endpoint.link {
                Link::Unix => endpoint.writers.len(),
                Link::Loopback | Link::Pipe => endpoint.writers.len().min(1),
            },
            Peer::Local(_) | Peer::Remote { .. } | Peer::None => 0,
        };
        let writers: Vec<_> = endpoint.writers.drain(..writers).rev().collect();
        let reader = match endpoint.filled {
            0 => None,
            _ => endpoint.readers.pop_front(),
        };
        let sync = self.core.settings.sync_socket_wakeups;
        let woken = writers.into_iter().chain(reader);
        let woken = woken.map(|task| Step::Wake { task, sync });
        self.core.cpu(cpu).stack.extend(woken);
    }

    fn close(&mut self, cpu: CpuId, socket: Socket) -> Flow {
        let endpoint = &mut self.core.net.endpoints[socket];
        if std::mem::replace(&mut endpoint.closed, true) {
            return Flow::Next;
        }
        match endpoint.peer {
            Peer::Local(peer) => {
                let there = &mut self.core.net.endpoints[peer];
                there.peer_closed = true;
                let readers: Vec<_> = there.readers.drain(..).collect();
                let writers = self.core.net.endpoints[socket].writers.drain(..);
                let woken: Vec<_> = readers.into_iter().chain(writers).map(wake).collect();
                self.core.cpu(cpu).stack.extend(woken);
            }
            Peer::Remote { .. } => self.core.net.reuse_if_closed(socket),
            Peer::None => {}
        }
        Flow::Next
    }

    fn accept(&mut self, cpu: CpuId, listener: Listener) -> Flow {
        let current = self.core.current(cpu);
        let backlog = &mut self.core.net.backlogs[listener];
        let Some(socket) = backlog.connections.pop_front() else {
            backlog.acceptors.push_back(current);
            let (waiting, again) = (Waiting::Connection(listener.0), Operation::Accept(listener));
            return self.sleep_and_repeat(cpu, waiting, again);
        };
        self.core.cpu(cpu).stack.push(Step::Answer(socket.0.into()));
        Flow::Takes(self.core.times.accept, Mode::System)
    }
}
