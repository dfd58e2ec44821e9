//! Sources: datagrams from outside the machine, sent here by a process of the player over loopback.
//!
//! One thread sends for all sources, each datagram when it is due, whether or not the one before
//! was late: lateness does not lower the rate. It spins on a CPU of its own if there is one that no
//! task may use; else it sleeps until each datagram is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use warmq_scenario::{
    Arrivals, Bound, EvalError, Expr, ObjectId, ObjectKind, Rate, Source, TaskKindId,
};
use warmq_trace::Policy;
use warmq_units::{CpuId, CpuSet, Stream};

use crate::error::PlayError;
use crate::notes::Notes;
use crate::program::{Compiler, Draws, Program, StreamOf};
use crate::specs::Spec;
use crate::stage::Stage;
use crate::stage::objects::Made;
use crate::sys::clock::{now_ns, sleep_until_ns};
use crate::sys::sched::{self, Attributes};
use crate::sys::{process, sockets};

/// The compiled arrivals of a table of sources.
#[derive(Clone, Debug)]
pub struct SourceProgram {
    id: ObjectId,
    source: Source,
    /// Where the time between bursts is drawn, and its streams.
    every: Option<Draws>,
    program: Program,
}

/// Compiles all sources of a scenario.
pub fn compile(bound: &Bound, compiler: &mut Compiler<'_>) -> Vec<SourceProgram> {
    let objects = (0..).map(ObjectId).zip(bound.scenario().objects());
    let sources = objects.filter_map(|(id, object)| match &object.kind {
        ObjectKind::Source(source) => Some((id, source)),
        _ => None,
    });
    let compiled = sources.map(|(id, source)| {
        let mut program = Program::default();
        let every = match &source.arrivals {
            Arrivals::Every(amount) => Some(compiler.draws(amount, &mut program)),
            Arrivals::Rate(_) => None,
        };
        SourceProgram {
            id,
            source: source.clone(),
            every,
            program,
        }
    });
    compiled.collect()
}

/// The time from one burst to the next, in picoseconds.
enum Gaps {
    Drawn(Draws, Vec<Stream>),
    /// The first gap, the last one, and how long the way takes from one to the other.
    Even(u64, u64, u64),
}

/// A source that is under way. Times are picoseconds from the start of the run.
struct Sender {
    name: String,
    indexes: Vec<u64>,
    port: u16,
    payload: Vec<u8>,
    burst: u64,
    /// For how long it sends, and for how long it pauses then.
    on_off: Option<(u64, u64)>,
    start: u64,
    end: u64,
    left: u64,
    gaps: Gaps,
    /// When the next burst is due.
    due: u64,
    /// How long it has sent since its last pause.
    sending: u64,
    sequence: u64,
}

/// The most bytes of a UDP datagram over IPv4.
const MOST_BYTES: u64 = 65_507;

impl Sender {
    fn new(stage: &Stage, of: &SourceProgram, number: u64) -> Result<Sender, PlayError> {
        let (bound, source) = (&stage.bound, &of.source);
        let indexes = bound.indexes_of_object(of.id, number);
        let eval = |expr: &Expr| bound.eval(expr, &indexes);
        let optional = |expr: &Option<Expr>| expr.as_ref().map(eval).transpose();
        let name = bound.scenario().object(of.id).name.clone();
        let bytes = eval(&source.bytes)?;
        if bytes > MOST_BYTES {
            let text =
                format!("source `{name}`: a datagram of {bytes} bytes; {MOST_BYTES} are the most");
            return Err(PlayError::Input(text));
        }
        let Made::Datagrams(sockets) = &stage.made()[source.to.object.0 as usize] else {
            unreachable!("the reader resolves where a source sends")
        };
        let burst = eval(&source.burst)?.max(1);
        let gap = |rate: &Rate| Ok::<u64, EvalError>(gap_of(eval(&rate.count)?, rate.per.0, burst));
        let gaps = match (&source.arrivals, &of.every) {
            (Arrivals::Rate(rate), _) => match &source.ramp {
                Some((to, over)) => Gaps::Even(gap(rate)?, gap(to)?, eval(over)?.max(1)),
                None => Gaps::Even(gap(rate)?, gap(rate)?, 1),
            },
            (Arrivals::Every(_), every) => {
                // Streams of sources are numbered behind those of all tasks.
                let owner = TaskKindId(u32::MAX - of.id.0);
                let names = of.program.streams.iter();
                let streams = names.map(|name| name.stream(stage.seed, owner, number));
                Gaps::Drawn(every.clone().unwrap_or(Draws::Fixed(1)), streams.collect())
            }
        };
        let on_off = match &source.on_off {
            Some((on, off)) => Some((eval(on)?, eval(off)?)),
            None => None,
        };
        let start = optional(&source.start)?.unwrap_or(0);
        Ok(Sender {
            name,
            port: sockets[bound.object_number(&source.to, &indexes)? as usize].1,
            payload: vec![0; bytes as usize],
            burst,
            on_off,
            start,
            end: optional(&source.end)?.unwrap_or(u64::MAX),
            left: optional(&source.packets)?.unwrap_or(u64::MAX),
            gaps,
            due: start,
            sending: 0,
            sequence: 0,
            indexes,
        })
    }

    fn has_more(&self) -> bool {
        self.left > 0 && self.due < self.end
    }

    /// Sends a burst and says when the next is due.
    fn send(&mut self, stage: &Stage, fd: i32) -> Result<(), PlayError> {
        for _ in 0..self.burst.min(self.left) {
            stamp(&mut self.payload, self.sequence);
            self.sequence += 1;
            let sent = sockets::send_datagram(fd, self.port, &self.payload);
            sent.map_err(|error| {
                PlayError::Ended(format!("source `{}` cannot send: {error}", self.name))
            })?;
        }
        self.left = self.left.saturating_sub(self.burst);
        let gap = self.gap(stage)?;
        self.sending = self.sending.saturating_add(gap);
        let mut pause = gap;
        if let Some((_, off)) = self.on_off.filter(|(on, _)| self.sending >= *on) {
            pause = pause.saturating_add(off);
            self.sending = 0;
        }
        self.due = self.due.saturating_add(pause);
        Ok(())
    }

    /// From this burst to the next, at least a nanosecond.
    fn gap(&mut self, stage: &Stage) -> Result<u64, EvalError> {
        let gap =
            match &mut self.gaps {
                Gaps::Drawn(Draws::Fixed(gap), _) => *gap,
                Gaps::Drawn(Draws::Drawn(amount, StreamOf::Own(own)), streams) => stage
                    .bound
                    .draw(amount, &self.indexes, &mut streams[*own])?,
                Gaps::Drawn(Draws::Drawn(amount, StreamOf::Shared(shared)), _) => {
                    stage.streams.with(*shared, |stream| {
                        stage.bound.draw(amount, &self.indexes, stream)
                    })?
                }
                Gaps::Even(first, last, over) => {
                    ramped((*first, *last), *over, self.due.saturating_sub(self.start))
                }
            };
        Ok(gap.max(1_000))
    }
}

/// The gap between bursts of `burst` at `count` datagrams in `per` picoseconds.
fn gap_of(count: u64, per: u64, burst: u64) -> u64 {
    let gap = u128::from(per) * u128::from(burst) / u128::from(count.max(1));
    u64::try_from(gap).unwrap_or(u64::MAX)
}

/// The gap at `since` of a way that takes `over` from the first gap to the last. The rate, and not
/// the gap, changes evenly.
fn ramped((first, last): (u64, u64), over: u64, since: u64) -> u64 {
    let (first, last) = (u128::from(first.max(1)), u128::from(last.max(1)));
    let (over, gone) = (u128::from(over.max(1)), u128::from(since.min(over)));
    // 1 / gap = (1 / first) * (1 - gone / over) + (1 / last) * (gone / over)
    // gap = first * last * over / (last * (over - gone) + first * gone), scaled to fit.
    let weighed = last * (over - gone) / over + first * gone / over;
    u64::try_from(first * last / weighed.max(1)).unwrap_or(u64::MAX)
}

/// Number and time of sending, where the payload has room.
fn stamp(payload: &mut [u8], sequence: u64) {
    let stamps = [sequence.to_le_bytes(), now_ns().to_le_bytes()].concat();
    let room = payload.len().min(stamps.len());
    payload[..room].copy_from_slice(&stamps[..room]);
}

/// The CPUs that no task may use: the sender takes the last of them.
fn free_cpus(stage: &Stage) -> Result<CpuSet, EvalError> {
    let mut free = stage.cpus.all();
    let kinds = (0..stage.scenario().tasks().len() as u32).map(TaskKindId);
    for kind in kinds {
        for number in 0..stage.bound.tasks(kind) {
            let spec = Spec::of(&stage.bound, &stage.cpus, kind, number)?;
            let taken = spec.cpus.unwrap_or_else(|| stage.cpus.all());
            taken.iter().for_each(|cpu| free.remove(cpu));
        }
    }
    Ok(free)
}

/// Sends for all sources; never returns. Called in a process of its own.
pub fn work(stage: &'static Stage, notes: &Notes) -> ! {
    process::set_name("warmq-source");
    if let Err(error) = send_all(stage, notes) {
        stage.board.fail(&error);
    }
    process::exit_now(0)
}

fn send_all(stage: &'static Stage, notes: &Notes) -> Result<(), PlayError> {
    let mut senders = Vec::new();
    for of in &stage.sources {
        for number in 0..stage.bound.objects(of.id) {
            senders.push(Sender::new(stage, of, number)?);
        }
    }
    let cpu = free_cpus(stage)?.iter().last();
    settle(cpu, notes);
    let fd = sockets::sender().map_err(|error| {
        PlayError::refused(
            "a socket to send from",
            &error,
            "allow more descriptors (ulimit -n)",
        )
    })?;
    stage.board.arrive(stage.arrivals());
    stage.board.wait_for_sources();
    let start_ns = stage.board.start_ns.load(Ordering::Acquire);
    let order = senders
        .iter()
        .enumerate()
        .filter(|(_, sender)| sender.has_more());
    let mut order: BinaryHeap<_> = order.map(|(index, it)| Reverse((it.due, index))).collect();
    while let Some(Reverse((due, index))) = order.pop() {
        let sender = &mut senders[index];
        wait_until(start_ns + due / 1_000, cpu.is_some());
        sender.send(stage, fd)?;
        stage.board.sent.fetch_add(sender.burst, Ordering::Relaxed);
        if start_ns + sender.due / 1_000 < now_ns() {
            stage.board.late.fetch_add(sender.burst, Ordering::Relaxed);
        }
        if sender.has_more() {
            order.push(Reverse((sender.due, index)));
        }
    }
    Ok(())
}

fn wait_until(ns: u64, spins: bool) {
    if spins {
        while now_ns() < ns {
            std::hint::spin_loop();
        }
    } else if now_ns() < ns {
        sleep_until_ns(ns);
    }
}

/// Takes the CPU, or a priority by which datagrams are in time without one.
fn settle(cpu: Option<CpuId>, notes: &Notes) {
    sched::sharp_timers();
    let Some(cpu) = cpu else {
        let urgent = Attributes {
            policy: Policy::Fifo,
            priority: 1,
            ..Attributes::default()
        };
        let how = match urgent.apply(0) {
            Ok(()) => "at SCHED_FIFO",
            Err(_) => "as an ordinary task, so that datagrams may be late",
        };
        let why = format!("tasks may use every CPU: their sender sleeps between datagrams, {how}");
        notes.say("sources", &why);
        return;
    };
    let only = [cpu].into_iter().collect();
    let bound = sched::set_affinity(0, &only);
    // Other programs of the machine may use that CPU.
    let _ = sched::set_nice(0, -20);
    let why = match bound {
        Ok(()) => format!("sent over loopback from {cpu}, which no task may use"),
        Err(error) => format!("their sender cannot be bound to {cpu}: {error}"),
    };
    notes.say("sources", &why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ramp_stays_between_its_ends(
            first in 1_000_u64..1 << 40, last in 1_000_u64..1 << 40, over in 1_u64..1 << 50, since: u64
        ) {
            let gap = ramped((first, last), over, since);
            let (least, most) = (first.min(last), first.max(last));
            // Divisions round down twice.
            prop_assert!(gap >= least - 1 && gap <= most + most / least.min(1_000) + 1, "{gap}");
        }
    }

    #[test]
    fn the_rate_of_a_ramp_changes_evenly() {
        // From 1,000 to 3,000 a second in a second: 2,000 in the middle.
        let (first, last) = (gap_of(1_000, 1 << 40, 1), gap_of(3_000, 1 << 40, 1));
        let middle = ramped((first, last), 1_000_000, 500_000);
        assert!(middle.abs_diff(gap_of(2_000, 1 << 40, 1)) <= 3, "{middle}");
        assert_eq!(ramped((first, last), 1_000_000, 0), first);
        assert!(ramped((first, last), 1_000_000, u64::MAX).abs_diff(last) <= 1);
    }

    #[test]
    fn the_payload_has_what_fits() {
        let mut payload = [0xff_u8; 10];
        stamp(&mut payload, 7);
        assert_eq!(payload[..8], 7_u64.to_le_bytes());
        stamp(&mut [], 1);
    }
}
