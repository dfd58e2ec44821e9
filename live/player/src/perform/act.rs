//! What each step does.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use warmq_scenario::{End, Expr, SpanReference};
use warmq_trace::Cause;

use super::{Datagram, Left, PS_PER_NS, Performer};
use crate::error::PlayError;
use crate::program::{Do, Draws, Number, Which};
use crate::source::Stamp;
use crate::specs::{APP, nice_of};
use crate::speed::spin;
use crate::stage::objects::{Made, Queue};
use crate::stage::slots::Mark;
use crate::sys::clock::sleep_ns;
use crate::sys::ipc::{Barrier, Condition, Mutex, Semaphore};
use crate::sys::{files, sched, sockets};

/// The objects of a table, of the class that the reader of scenarios has made sure of.
macro_rules! table {
    ($performer:expr, $which:expr, $class:ident) => {
        match &$performer.stage.made()[$which.table().0 as usize] {
            Made::$class(made) => made,
            _ => unreachable!("the reader resolves references to objects of their class"),
        }
    };
}
pub(super) use table;

impl Performer {
    #[inline]
    pub(super) fn act(&mut self, action: &Do) -> Result<(), Left> {
        self.follow_fragment();
        match action {
            Do::Loops(rounds) => spin(*rounds),
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
            Do::Wait(both) => self.wait(&both.0, &both.1)?,
            Do::Signal(condition, all) => self.condition(condition)?.1.signal(*all),
            Do::Raise(semaphore) => self.raise(semaphore)?,
            Do::Lower(semaphore) => self.lower(semaphore)?,
            Do::Barrier(barrier) => self.meet(barrier)?,
            Do::Put(queue) => self.put(queue)?,
            Do::Take(queue) => self.take(queue)?,
            Do::Send(to, bytes) => self.send(to, bytes)?,
            Do::Receive(from, bytes) => self.receive(from, bytes.as_ref())?,
            Do::Reply(socket, bytes) => self.reply(socket, bytes)?,
            Do::Write(file, bytes) => self.write(file, bytes)?,
            Do::Start(task, as_thread) => self.start(task, *as_thread)?,
            Do::Exit => return Err(Left::Exits),
            Do::Yield => sched::yield_now(),
            Do::Fragment(number) => self.name_fragment(number.as_ref())?,
            Do::Nice(nice) => self.set_nice(nice)?,
            Do::Set(set) => self.set_own(set)?,
            Do::Span(span, begins) => self.span(span, *begins)?,
            Do::Count(counter, by) => {
                let by = self.get(by)?;
                self.stage.slots.count(self.index, *counter, by);
            }
        }
        Ok(())
    }

    fn sleep(&mut self, span: &Draws) -> Result<(), Left> {
        let ns = self.draw(span)? / PS_PER_NS;
        self.waiting(Cause::Timer, None, || sleep_ns(ns));
        Ok(())
    }

    fn span(&self, span: &SpanReference, begins: bool) -> Result<(), Left> {
        let bound = &self.stage.bound;
        let number = bound.span_number(span, &self.indexes, self.index)?;
        let mark = if begins {
            Mark::SpanBegin
        } else {
            Mark::SpanEnd
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
        let number = self.number(which)?;
        let made: &'static [Mutex] = table!(self, which, Mutexes);
        Ok((number, &made[number]))
    }

    fn condition(&self, which: &Which) -> Result<(usize, &'static Condition), Left> {
        let number = self.number(which)?;
        let made: &'static [Condition] = table!(self, which, Conditions);
        Ok((number, &made[number]))
    }

    fn lock(&self, which: &Which) -> Result<(), Left> {
        let (number, mutex) = self.mutex(which)?;
        self.lock_of(mutex, Cause::Mutex, (which, number));
        Ok(())
    }

    /// Locks `mutex`; if it must wait, that is because of `cause`.
    fn lock_of(&self, mutex: &Mutex, cause: Cause, of: (&Which, usize)) {
        if !mutex.try_lock() {
            self.waiting(cause, Some(of), || mutex.lock());
        }
    }

    fn wait(&self, condition: &Which, mutex: &Which) -> Result<(), Left> {
        let (number, waited) = self.condition(condition)?;
        let (_, mutex) = self.mutex(mutex)?;
        self.waiting(Cause::Condition, Some((condition, number)), || {
            waited.wait(mutex)
        });
        Ok(())
    }

    fn semaphore(&self, which: &Which) -> Result<(usize, Semaphore), Left> {
        let number = self.number(which)?;
        Ok((number, table!(self, which, Semaphores)[number]))
    }

    fn raise(&self, which: &Which) -> Result<(), Left> {
        let (_, semaphore) = self.semaphore(which)?;
        semaphore.add(1).map_err(|error| self.broken(which, &error))
    }

    fn lower(&self, which: &Which) -> Result<(), Left> {
        let (number, semaphore) = self.semaphore(which)?;
        let lowered = self.waiting(Cause::Semaphore, Some((which, number)), || {
            semaphore.add(-1)
        });
        lowered.map_err(|error| self.broken(which, &error))
    }

    fn meet(&self, which: &Which) -> Result<(), Left> {
        let number = self.number(which)?;
        let made: &'static [Barrier] = table!(self, which, Barriers);
        self.waiting(Cause::Barrier, Some((which, number)), || {
            made[number].wait()
        });
        Ok(())
    }

    fn queue(&self, which: &Which) -> Result<(usize, &'static Queue), Left> {
        let number = self.number(which)?;
        let made: &'static [Queue] = table!(self, which, Queues);
        Ok((number, &made[number]))
    }

    fn put(&self, which: &Which) -> Result<(), Left> {
        let (number, queue) = self.queue(which)?;
        let of = (which, number);
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
        let (number, queue) = self.queue(which)?;
        let of = (which, number);
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
    fn send(&mut self, to: &Which, bytes: &Number) -> Result<(), Left> {
        let (number, bytes) = (self.number(to)?, self.get(bytes)?);
        let sent = match &self.stage.made()[to.table().0 as usize] {
            Made::Pipes(pipes) => {
                let of = Some((to, number));
                let write = |piece: &[u8]| files::write_all(pipes[number].1, piece);
                self.waiting(Cause::Pipe, of, || in_pieces(&self.buffer, bytes, write))
            }
            Made::Streams(streams) => {
                let fd = end(streams[number], to.end());
                let of = Some((to, number));
                let write = |piece: &[u8]| sockets::send_all(fd, piece);
                self.waiting(Cause::Socket, of, || in_pieces(&self.buffer, bytes, write))
            }
            Made::Datagrams(made) => self.send_datagram(made[number].1, bytes),
            _ => unreachable!("the reader resolves what is sent to"),
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

    /// Answers what came last. A task, or another program, that sent it does not wait for an answer.
    fn reply(&mut self, to: &Which, bytes: &Number) -> Result<(), Left> {
        let (number, bytes) = (self.number(to)?, self.get(bytes)?);
        let Some(of) = self.answered(to) else {
            return Ok(());
        };
        let Datagram { port, stamp } = self.received[of][number];
        if !self.stage.is_source(port) {
            return Ok(());
        }
        let (fd, _) = table!(self, to, Datagrams)[number];
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
        let (number, bytes) = (self.number(to)?, self.get(bytes)?);
        let fd = table!(self, to, Files)[number];
        let written = self.waiting(Cause::Device, Some((to, number)), || {
            in_pieces(&self.buffer, bytes, |piece| files::write_all(fd, piece))
        });
        written.map_err(|error| self.broken(to, &error))
    }

    fn receive(&mut self, from: &Which, bytes: Option<&Number>) -> Result<(), Left> {
        let number = self.number(from)?;
        let bytes = bytes.map(|bytes| self.get(bytes)).transpose()?.unwrap_or(0);
        let mut buffer = std::mem::take(&mut self.buffer);
        let of = Some((from, number));
        let received = match &self.stage.made()[from.table().0 as usize] {
            Made::Pipes(pipes) => {
                let read = |piece: &mut [u8]| files::read_all(pipes[number].0, piece);
                self.waiting(Cause::Pipe, of, || into_pieces(&mut buffer, bytes, read))
            }
            Made::Streams(streams) => {
                let fd = end(streams[number], from.end());
                let read = |piece: &mut [u8]| sockets::receive_all(fd, piece);
                self.waiting(Cause::Socket, of, || into_pieces(&mut buffer, bytes, read))
            }
            Made::Datagrams(made) => {
                let fd = made[number].0;
                let got = self.waiting(Cause::Socket, of, || {
                    sockets::receive_datagram(fd, &mut buffer)
                });
                got.map(|port| self.keep(from, number, port, &buffer))
            }
            _ => unreachable!("the reader resolves what is received from"),
        };
        self.buffer = buffer;
        received.map_err(|error| self.broken(from, &error))
    }
}

/// What can be answered.
impl Performer {
    /// Keeps what an answer to the datagram in `buffer` needs.
    fn keep(&mut self, from: &Which, number: usize, port: u16, buffer: &[u8]) {
        if let Some(of) = self.answered(from) {
            let kept = &mut self.received[of][number];
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

/// The descriptor of one end of a stream.
fn end((near, far): (i32, i32), end: End) -> i32 {
    match end {
        End::Near => near,
        End::Far => far,
    }
}

/// Calls `write` with pieces of `buffer` until they are `bytes` in all.
fn in_pieces(
    buffer: &[u8],
    bytes: u64,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(buffer.len() as u64);
        write(&buffer[..piece as usize])?;
        left -= piece;
    }
    Ok(())
}

/// Calls `read` with pieces of `buffer` until they are `bytes` in all.
fn into_pieces(
    buffer: &mut [u8],
    bytes: u64,
    mut read: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(buffer.len() as u64);
        read(&mut buffer[..piece as usize])?;
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
        self.tell(Mark::Fragment, 0, number.map_or(0, |it| 1 + u64::from(it)));
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

    fn set_nice(&self, nice: &Expr) -> Result<(), Left> {
        let nice = nice_of(self.stage.bound.eval_signed(nice, &self.indexes)?);
        self.set_nice_value(nice)?;
        Ok(())
    }
}
