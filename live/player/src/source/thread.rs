//! A thread that sends what is due and hears what is answered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use warmq_trace::{Policy, players};

use super::sender::{Sender, read_stamp};
use super::{SenderThread, Stamp};
use crate::error::PlayError;
use crate::notes::Notes;
use crate::stage::Stage;
use crate::stage::slots::{Log, Logged, Mark, TaskState};
use crate::sys::clock::now_ns;
use crate::sys::sched::{self, Attributes};
use crate::sys::{process, sockets};

const PS_PER_NS: u64 = 1_000;
/// Answers that are heard before it is looked whether something is due.
const AT_ONCE: usize = 64;

/// Sends for thread `index` of the run; never returns. Called in a process of its own.
pub fn work(stage: &'static Stage, index: u32, notes: &Notes) -> ! {
    process::set_name(players::SOURCE);
    let slot = stage.sender_slots.of(index);
    slot.tid.store(process::tid(), Ordering::Relaxed);
    slot.pid.store(process::pid(), Ordering::Relaxed);
    slot.set_state(TaskState::Started);
    if let Err(error) = Working::new(stage, index, notes).and_then(|mut working| working.work()) {
        stage.board.fail(&error);
    }
    process::exit_now(0)
}

/// A thread that is under way.
struct Working {
    stage: &'static Stage,
    thread: &'static SenderThread,
    senders: Vec<Sender>,
    /// Who has something due, the first first. Entries of senders whose time was changed stay, and
    /// count for nothing.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    fd: i32,
    log: Log,
    start_ns: u64,
}

impl Working {
    fn new(stage: &'static Stage, index: u32, notes: &Notes) -> Result<Working, PlayError> {
        let thread = &stage.senders[index as usize];
        let mut senders = Vec::new();
        for (place, number) in &thread.sources {
            senders.push(Sender::new(stage, &stage.sources[*place], *number)?);
        }
        settle(thread, notes)?;
        Ok(Working {
            stage,
            thread,
            senders,
            order: BinaryHeap::new(),
            fd: stage.sender_sockets()[index as usize].0,
            log: stage.sender_slots.log(index),
            start_ns: 0,
        })
    }

    fn work(&mut self) -> Result<(), PlayError> {
        let board = self.stage.board;
        board.arrive(self.stage.arrivals());
        board.wait_for_sources();
        self.start_ns = board.start_ns.load(Ordering::Acquire);
        (0..self.senders.len()).for_each(|index| self.plan_next(index));
        loop {
            if self.thread.changes {
                self.follow();
            }
            if self.thread.echoes {
                self.hear()?;
            }
            match self.due_ns() {
                Some(due_ns) if due_ns <= now_ns() => self.send_first()?,
                Some(due_ns) => self.rest(Some(due_ns)),
                None if self.thread.echoes || self.thread.changes => self.rest(None),
                None => return Ok(()),
            }
        }
    }

    fn plan_next(&mut self, index: usize) {
        let due = self.senders[index].due();
        self.order.extend(due.map(|due| Reverse((due, index))));
    }

    /// When the first datagram is due, on the monotonic clock.
    fn due_ns(&mut self) -> Option<u64> {
        while let Some(Reverse((due, index))) = self.order.peek() {
            if self.senders[*index].due() == Some(*due) {
                return Some(self.start_ns.saturating_add(due / PS_PER_NS));
            }
            self.order.pop();
        }
        None
    }

    fn send_first(&mut self) -> Result<(), PlayError> {
        let Some(Reverse((_, index))) = self.order.pop() else {
            return Ok(());
        };
        let (log, sender) = (&self.log, &mut self.senders[index]);
        let echo = sender.echo;
        let mut begun = |number, time_ns| {
            if let Some(span) = echo {
                log.put(Logged {
                    time_ns,
                    mark: Mark::SpanBegin,
                    id: span.0,
                    number,
                });
            }
        };
        let sent = sender.send(self.stage, self.fd, &mut begun)?;
        let board = self.stage.board;
        board.sent.fetch_add(sent, Ordering::Relaxed);
        let next_ns = sender
            .due()
            .map(|due| self.start_ns.saturating_add(due / PS_PER_NS));
        if next_ns.is_some_and(|next_ns| next_ns < now_ns()) {
            board.late.fetch_add(sent, Ordering::Relaxed);
        }
        self.plan_next(index);
        Ok(())
    }

    /// Does what changes have said since it looked last.
    fn follow(&mut self) {
        process::drain(self.thread.news_fd);
        for index in 0..self.senders.len() {
            if self.senders[index].follow(self.start_ns) {
                self.plan_next(index);
            }
        }
    }

    /// Takes the answers that are there.
    fn hear(&mut self) -> Result<(), PlayError> {
        for _ in 0..AT_ONCE {
            let mut stamp = Stamp::default();
            let got = sockets::take_datagram(self.fd, &mut stamp).map_err(|error| {
                PlayError::Ended(format!("answers to sources cannot be received: {error}"))
            })?;
            match got {
                None => return Ok(()),
                Some(length) if length == stamp.len() => self.answered(&stamp),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Logs the end of the span of a datagram of this thread; whatever else came is no answer.
    fn answered(&self, stamp: &Stamp) {
        let (number, sent_ns) = read_stamp(stamp);
        let now_ns = now_ns();
        let after = self
            .senders
            .partition_point(|sender| sender.first_number <= number);
        let sender = after.checked_sub(1).map(|index| &self.senders[index]);
        let of = |sender: &&Sender| number - sender.first_number < sender.sequence;
        let Some(span) = sender.filter(of).and_then(|sender| sender.echo) else {
            return;
        };
        if (self.start_ns..=now_ns).contains(&sent_ns) {
            self.log.put(Logged {
                time_ns: now_ns,
                mark: Mark::SpanEnd,
                id: span.0,
                number,
            });
        }
    }

    /// Waits until that time, for an answer, or for news.
    fn rest(&self, due_ns: Option<u64>) {
        let thread = self.thread;
        if let Some(due_ns) = due_ns.filter(|_| thread.spins) {
            // Answers and news are looked for by who calls.
            if !thread.echoes && !thread.changes {
                while now_ns() < due_ns {
                    std::hint::spin_loop();
                }
            }
            return;
        }
        let heard_fd = if thread.echoes { self.fd } else { -1 };
        process::readable_until([thread.news_fd, heard_fd], due_ns);
    }
}

/// Takes the CPUs, and a priority by which datagrams are in time on CPUs that others use.
fn settle(thread: &SenderThread, notes: &Notes) -> Result<(), PlayError> {
    sched::sharp_timers();
    if let Some(cpus) = &thread.cpus {
        sched::set_affinity(0, cpus).map_err(|error| {
            let what = format!("the sender of sources cannot be bound to CPUs {cpus}");
            PlayError::refused(what, &error, "name CPUs that you may use")
        })?;
    }
    let place = match &thread.cpus {
        Some(cpus) => format!("from CPUs {cpus}"),
        None => "from any CPU".to_owned(),
    };
    if thread.spins {
        // Other programs of the machine may use that CPU.
        let _ = sched::set_nice(0, -20);
        let why = format!("sent over loopback {place}, which no task may use");
        notes.say("sources", &why);
        return Ok(());
    }
    let urgent = Attributes {
        policy: Policy::Fifo,
        priority: 1,
        ..Attributes::default()
    };
    let how = match urgent.apply(0) {
        Ok(()) => "at SCHED_FIFO",
        Err(_) => "as an ordinary task, so that datagrams may be late",
    };
    let why = format!(
        "sent over loopback {place}, which others may use: their sender sleeps between datagrams, {how}"
    );
    notes.say("sources", &why);
    Ok(())
}
