//! What each step does.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use warmq_scenario::SpanReference;
use warmq_scenario::program::{APP, Do, Draws, Link, Number, SpanEdge, Wait, Which};
use warmq_trace::Cause;

use super::birth::BUFFER;
use super::{Datagram, Left, PS_PER_NS, Performer};
use crate::error::PlayError;
use crate::source::Stamp;
use crate::speed::spin;
use crate::stage::objects::Queue;
use crate::stage::slots::Mark;
use crate::sys::clock::sleep_ns;
use crate::sys::ipc::{Condition, Mutex, Semaphore};
use crate::sys::{files, sockets};

impl Performer {
    #[inline]
    pub(super) fn act(&mut self, action: &Do) -> Result<(), Left> {
        self.follow_fragment();
        match action {
            Do::Run(amount, quantity) => {
                let work = self.draw(amount)?;
                spin(self.stage.speed.loops(work, *quantity));
            }
            Do::Spin(span) => self.spin(span)?,
            Do::Touch(touch) => self.touch(touch)?,
            Do::Timer(timer) => self.wait_for(timer)?,
            Do::Sleep(span) => self.sleep(span)?,
            Do::Lock(mutex) => self.lock(mutex)?,
            Do::Unlock(mutex) => self.mutex(mutex)?.1.unlock(),
            Do::TakeSpinlock(step) => self.take_spinlock(step)?,
            Do::ReleaseSpinlock(lock) => self.release_spinlock(lock)?,
            Do::Wait(wait) => self.wait(wait)?,
            Do::WaitInFutex(futex, timeout) => self.wait_in_futex(futex, timeout.as_deref())?,
            Do::WakeInFutex(futex, all) => self.objects.futexes[self.place(futex)?].wake(*all),
            Do::Signal(condition, all) => self.condition(condition)?.1.signal(*all),
            Do::Raise(semaphore) => self.raise(semaphore)?,
            Do::Lower(semaphore) => self.lower(semaphore)?,
            Do::Barrier(barrier) => self.meet(barrier)?,
            Do::Put(queue) => self.put(queue)?,
            Do::Take(queue) => self.take(queue)?,
            Do::Send(to, link, bytes) => self.send(to, *link, bytes)?,
            Do::Receive(from, link, bytes) => self.receive(from, *link, bytes)?,
            Do::Reply(socket, bytes) => self.reply(socket, bytes)?,
            Do::Write(file, bytes) => self.write(file, bytes)?,
            Do::Start(task, as_thread) => self.start(task, *as_thread)?,
            Do::Exit => return Err(Left::Exits),
            Do::Yield => std::thread::yield_now(),
            Do::Fragment(number) => self.name_fragment(number.as_ref())?,
            Do::Set(set) => self.set_own(set)?,
            Do::Span(span, edge) => self.span(span, *edge)?,
            Do::Count(counter, by) => {
                let by = self.get(by)?;
                self.stage.slots.count(self.index, counter.0 as usize, by);
            }
        }
        Ok(())
    }

    fn sleep(&mut self, span: &Draws) -> Result<(), Left> {
        let ns = self.draw(span)? / PS_PER_NS;
        self.waiting(Cause::Timer, None, || sleep_ns(ns));
        Ok(())
    }

    fn span(&self, span: &SpanReference, edge: SpanEdge) -> Result<(), Left> {
        let bound = &self.stage.bound;
        let number = bound.span_number(span, &self.loops.indexes, self.index)?;
        let mark = match edge {
            SpanEdge::Begins => Mark::SpanBegin,
            SpanEdge::BeganWhenDue => {
                self.tell(Mark::Due, 0, self.due);
                Mark::SpanBegin
            }
            SpanEdge::Ends => Mark::SpanEnd,
        };
        self.tell(mark, span.span.0, number);
        Ok(())
    }

    /// What went wrong with an object is the end of the run.
    fn broken(&self, which: &Which, error: &io::Error) -> Left {
        let who = self.stage.name_of(self.slot);
        let spot = &which.reference.spot.key;
        let object = &self.stage.scenario().object(which.table()).name;
        PlayError::Ended(format!("{who}, at `{spot}`: `{object}` fails: {error}")).into()
    }
}

/// Locks.
impl Performer {
    fn mutex(&self, which: &Which) -> Result<(usize, &'static Mutex), Left> {
        let place = self.place(which)?;
        Ok((place, self.objects.mutexes[place]))
    }

    fn condition(&self, which: &Which) -> Result<(usize, &'static Condition), Left> {
        let place = self.place(which)?;
        Ok((place, self.objects.conditions[place]))
    }

    fn lock(&self, which: &Which) -> Result<(), Left> {
        let (place, mutex) = self.mutex(which)?;
        self.lock_of(mutex, Cause::Mutex, (which, place));
        Ok(())
    }

    /// Locks `mutex`; if it must wait, that is because of `cause`.
    fn lock_of(&self, mutex: &Mutex, cause: Cause, of: (&Which, usize)) {
        if !mutex.try_lock() {
            self.waiting(cause, Some(of), || mutex.lock());
        }
    }

    fn wait(&mut self, wait: &Wait) -> Result<(), Left> {
        let (place, condition) = self.condition(&wait.condition)?;
        let (_, mutex) = self.mutex(&wait.mutex)?;
        let timeout = self.timeout(wait.timeout.as_ref())?;
        self.waiting(
            Cause::Condition,
            Some((&wait.condition, place)),
            || match timeout {
                Some(ns) => condition.wait_at_most(mutex, ns),
                None => condition.wait(mutex),
            },
        );
        Ok(())
    }

    fn wait_in_futex(&mut self, which: &Which, timeout: Option<&Draws>) -> Result<(), Left> {
        let place = self.place(which)?;
        let (futex, timeout) = (self.objects.futexes[place], self.timeout(timeout)?);
        self.waiting(Cause::Futex, Some((which, place)), || futex.wait(timeout));
        Ok(())
    }

    /// In nanoseconds.
    fn timeout(&mut self, timeout: Option<&Draws>) -> Result<Option<u64>, Left> {
        let span = timeout.map(|span| self.draw(span)).transpose()?;
        Ok(span.map(|ps| ps / PS_PER_NS))
    }

    fn semaphore(&self, which: &Which) -> Result<(usize, Semaphore), Left> {
        let place = self.place(which)?;
        Ok((place, self.objects.semaphores[place]))
    }

    fn raise(&self, which: &Which) -> Result<(), Left> {
        let (_, semaphore) = self.semaphore(which)?;
        semaphore.add(1).map_err(|error| self.broken(which, &error))
    }

    fn lower(&self, which: &Which) -> Result<(), Left> {
        let (place, semaphore) = self.semaphore(which)?;
        let lowered = self.waiting(Cause::Semaphore, Some((which, place)), || semaphore.add(-1));
        lowered.map_err(|error| self.broken(which, &error))
    }

    fn meet(&self, which: &Which) -> Result<(), Left> {
        let place = self.place(which)?;
        let barrier = self.objects.barriers[place];
        self.waiting(Cause::Barrier, Some((which, place)), || barrier.wait());
        Ok(())
    }

    fn queue(&self, which: &Which) -> Result<(usize, &'static Queue), Left> {
        let place = self.place(which)?;
        Ok((place, self.objects.queues[place]))
    }

    fn put(&self, which: &Which) -> Result<(), Left> {
        let (place, queue) = self.queue(which)?;
        let of = (which, place);
        self.lock_of(&queue.mutex, Cause::Queue, of);
        while queue.items.load(Relaxed) >= queue.holds.load(Relaxed) {
            self.waiting(Cause::Queue, Some(of), || queue.emptied.wait(&queue.mutex));
        }
        queue.items.fetch_add(1, Relaxed);
        queue.filled.signal(false);
        queue.mutex.unlock();
        Ok(())
    }

    fn take(&self, which: &Which) -> Result<(), Left> {
        let (place, queue) = self.queue(which)?;
        let of = (which, place);
        self.lock_of(&queue.mutex, Cause::Queue, of);
        while queue.items.load(Relaxed) == 0 {
            self.waiting(Cause::Queue, Some(of), || queue.filled.wait(&queue.mutex));
        }
        queue.items.fetch_sub(1, Relaxed);
        queue.emptied.signal(false);
        queue.mutex.unlock();
        Ok(())
    }
}

/// Connections.
impl Performer {
    fn send(&mut self, to: &Which, link: Link, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(to)?, self.get(bytes)?);
        let of = Some((to, place));
        let sent = match link {
            Link::Pipe => {
                let (_, fd) = self.objects.pipes[place];
                let write = |length| files::write_all(fd, &self.buffer[..length]);
                self.waiting(Cause::Pipe, of, || in_pieces(bytes, write))
            }
            Link::Stream(which) => {
                let fd = which.of(self.objects.streams[place]);
                let write = |length| sockets::send_all(fd, &self.buffer[..length]);
                self.waiting(Cause::Socket, of, || in_pieces(bytes, write))
            }
            Link::Datagram => self.send_datagram(self.objects.datagrams[place].1, bytes),
        };
        sent.map_err(|error| self.broken(to, &error))
    }

    fn send_datagram(&mut self, port: u16, bytes: u64) -> io::Result<()> {
        let fd = match self.sender {
            Some(fd) => fd,
            None => *self.sender.insert(sockets::sender()?),
        };
        sockets::send_datagram(fd, port, piece_of(&self.buffer, bytes)?)
    }

    /// Answers what came last. A task, or another program, that sent it does not wait for an
    /// answer.
    fn reply(&mut self, to: &Which, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(to)?, self.get(bytes)?);
        let Some(of) = self.answered(to) else {
            return Ok(());
        };
        let Datagram { port, stamp } = self.received[of][to.in_table(place)];
        if !self.stage.is_source(port) {
            return Ok(());
        }
        let (fd, _) = self.objects.datagrams[place];
        let length = stamp.len().min(self.buffer.len());
        self.buffer[..length].copy_from_slice(&stamp[..length]);
        let sent =
            piece_of(&self.buffer, bytes).and_then(|piece| sockets::send_datagram(fd, port, piece));
        sent.map_err(|error| self.broken(to, &error))
    }

    /// The place of a socket's table among those that this task answers.
    fn answered(&self, socket: &Which) -> Option<usize> {
        let program = &self.stage.programs[self.kind.0 as usize];
        let mut tables = program.answered.iter();
        tables.position(|table| *table == socket.table())
    }

    /// Writes to a file, in pieces no larger than the buffer.
    fn write(&mut self, to: &Which, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(to)?, self.get(bytes)?);
        let fd = self.objects.files[place];
        let write = |length| files::write_all(fd, &self.buffer[..length]);
        let written = self.waiting(Cause::Device, Some((to, place)), || in_pieces(bytes, write));
        written.map_err(|error| self.broken(to, &error))
    }

    fn receive(&mut self, from: &Which, link: Link, bytes: &Number) -> Result<(), Left> {
        let (place, bytes) = (self.place(from)?, self.get(bytes)?);
        let mut buffer = std::mem::take(&mut self.buffer);
        let of = Some((from, place));
        let received = match link {
            Link::Pipe => {
                let (fd, _) = self.objects.pipes[place];
                let read = |length| files::read_all(fd, &mut buffer[..length]);
                self.waiting(Cause::Pipe, of, || in_pieces(bytes, read))
            }
            Link::Stream(which) => {
                let fd = which.of(self.objects.streams[place]);
                let read = |length| sockets::receive_all(fd, &mut buffer[..length]);
                self.waiting(Cause::Socket, of, || in_pieces(bytes, read))
            }
            Link::Datagram => {
                let (fd, _) = self.objects.datagrams[place];
                let got = self.waiting(Cause::Socket, of, || {
                    sockets::receive_datagram(fd, &mut buffer)
                });
                got.map(|port| self.keep(from, place, port, &buffer))
            }
        };
        self.buffer = buffer;
        received.map_err(|error| self.broken(from, &error))
    }
}

/// What can be answered.
impl Performer {
    /// Keeps what an answer to the datagram in `buffer` needs.
    fn keep(&mut self, from: &Which, place: usize, port: u16, buffer: &[u8]) {
        if let Some(of) = self.answered(from) {
            let kept = &mut self.received[of][from.in_table(place)];
            kept.port = port;
            kept.stamp.copy_from_slice(&buffer[..size_of::<Stamp>()]);
        }
    }
}

/// The first `bytes` of `buffer`, if a datagram can have so many.
fn piece_of(buffer: &[u8], bytes: u64) -> io::Result<&[u8]> {
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let too_long = || io::Error::other(format!("{bytes} bytes are too many for a datagram"));
    buffer.get(..length).ok_or_else(too_long)
}

/// Calls `moves` with lengths of pieces, which a buffer has room for, until they are `bytes` in
/// all.
fn in_pieces(bytes: u64, mut moves: impl FnMut(usize) -> io::Result<()>) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(BUFFER as u64);
        moves(piece as usize)?;
        left -= piece;
    }
    Ok(())
}

/// The task itself.
impl Performer {
    fn name_fragment(&self, number: Option<&Number>) -> Result<(), Left> {
        let number = number.map(|number| self.get(number)).transpose()?;
        self.use_fragment(number.map(|number| number as u32));
        Ok(())
    }

    fn use_fragment(&self, number: Option<u32>) {
        match number {
            Some(number) => warmq_hint::enter(APP, number),
            None => warmq_hint::leave(),
        };
        self.tell(
            Mark::Fragment,
            0,
            number.map_or(0, |number| 1 + u64::from(number)),
        );
    }

    /// Names the fragment that a change of the scenario gave this task, if there is a new one.
    #[inline]
    fn follow_fragment(&mut self) {
        let turn = self
            .slot
            .fragment_turn
            .load(std::sync::atomic::Ordering::Acquire);
        if turn != self.fragment_turn {
            self.fragment_turn = turn;
            let wanted = self.slot.fragment.load(Relaxed);
            self.use_fragment(wanted.checked_sub(1).map(|number| number as u32));
        }
    }
}
