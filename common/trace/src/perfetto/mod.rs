//! A trace that the Perfetto UI opens.
//!
//! Switches, wakeups and idle states are written as the Linux kernel's own events, so that the UI
//! shows each CPU's schedule and each thread's states (running, runnable and by whom it was woken,
//! sleeping, stopped) as it does for a real machine. Everything else becomes slices, instants and
//! counters on tracks of ours:
//!
//! ```text
//!     Phases                                    a slice for each
//!     a thread's own    NAME...                 its spans by name, a slice for each; instants: what
//!                                               it waits for, its role, nice value, policy, slice,
//!                                               group, data
//!     Shared spans      NAME[number]...         the spans that several tasks share
//!     Counters          NAME...                 what was counted since the start
//!     Interrupts        cpu0, cpu1...           one slice an interrupt or softirq
//!     Spin locks        cpu0 lock3...           a slice for the wait, then one for the tenure
//!     Scheduler         cpu0, cpu1...           instants: migrations, reschedules, recalculations,
//!                                               affinities, CPUs online and offline, steal time,
//!                                               lost events
//!     Network           cpu0, cpu1...           instants: packets, drops, polls
//! ```
//!
//! A task of a recording is the thread that it was ([`Record::Ids`]). Any other task n is the
//! thread n + 1 (0 is Linux's idle task) of one process that stands for the machine. Perfetto's
//! clock counts nanoseconds: picoseconds are cut off.

pub mod messages;
mod protos;
mod scenario;
mod sink;
mod tasks;
mod tracks;

use std::collections::BTreeMap;
use std::io::{self, Write};

use warmq_units::{CpuId, Instant, TaskId};

use self::messages::{Bundle, CpuIdle, Event, Switch, Wakeup};
use self::protos::TracePacket;
use self::sink::{Packets, Sink};
use self::tasks::{Tasks, left, machine, name_of};
use self::tracks::{Group, Track, Tracks};
use crate::{Board, Context, Names, Observer, Record, Table, Waking};

/// The process of all tasks: the lowest number that Linux never uses as a pid (`PID_MAX_LIMIT`).
const MACHINE_PID: i32 = 1 << 22;

/// How many events of one CPU are gathered into one packet.
const EVENTS_A_BUNDLE: usize = 256;

/// `common_flags` of a kernel event (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
const IN_HARD_INTERRUPT: u32 = 8;
const IN_SOFTIRQ: u32 = 16;

/// `state` of a cpu_idle event when the CPU leaves idle (`PWR_EVENT_EXIT`).
const NOT_IDLE: u32 = u32::MAX;

/// Writes every record that it sees. The writer that it is given should be buffered.
///
/// An observer cannot fail, so the first error is kept, nothing is written after it, and
/// [`Perfetto::finish`] returns it. Without `finish` the last events of each CPU are missing.
#[derive(Debug)]
pub struct Perfetto<W: Write> {
    sink: Sink<W>,
    tracks: Tracks,
    tasks: Tasks,
    board: Board,
    // The events of each CPU that are not yet written.
    events: Table<CpuId, Vec<Event>>,
    // The spans that are open, each with its track.
    open: BTreeMap<(u32, u64), Track>,
    // When spans that were open ended last.
    ended: BTreeMap<(u32, u64), Instant>,
    in_phase: bool,
    last: Instant,
}

impl<W: Write> Perfetto<W> {
    /// Begins a trace of the machine called `machine_name`.
    pub fn new(to: W, machine_name: &str) -> Perfetto<W> {
        let mut sink = Sink::new(to);
        sink.write(TracePacket {
            process_tree: Some(machine(machine_name)),
            ..at(Instant::START)
        });
        Perfetto {
            sink,
            tracks: Tracks::default(),
            tasks: Tasks::default(),
            board: Board::default(),
            events: Table::default(),
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            in_phase: false,
            last: Instant::START,
        }
    }

    /// The same with the names of the scenario whose records it will see.
    #[must_use]
    pub fn named(mut self, names: Names) -> Perfetto<W> {
        self.tracks.names = names;
        self
    }

    /// Writes the remaining events, flushes, and returns the underlying writer.
    ///
    /// # Errors
    /// The first write error of the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        let cpus: Vec<CpuId> = self.events.iter().map(|(cpu, _)| cpu).collect();
        cpus.into_iter().for_each(|cpu| self.write_bundle(cpu));
        self.tasks.introduce_all(&mut self.sink, self.last);
        self.sink.finish()
    }

    fn introduce(&mut self, when: Instant, task: Option<TaskId>) {
        if let Some(task) = task {
            self.tasks.introduce(&mut self.sink, when, task);
        }
    }

    /// Writes a wakeup, as of the time at which the waker set about it.
    fn wake(&mut self, when: Instant, task: TaskId, target: CpuId) {
        self.introduce(when, Some(task));
        let Some(Waking {
            at,
            cpu,
            waker,
            context,
        }) = self.board.waking(task)
        else {
            return;
        };
        let waking = Wakeup {
            comm: Some(self.tasks.comm(Some(task)).into_bytes()),
            pid: Some(self.tasks.tid(Some(task))),
            prio: Some(self.tasks.priority(Some(task))),
            success: Some(1),
            target_cpu: Some(target.0.into()),
        };
        let flags = match context {
            Context::Unknown | Context::Task => None,
            Context::Softirq => Some(IN_SOFTIRQ),
            Context::Interrupt => Some(IN_HARD_INTERRUPT),
        };
        let event = Event {
            pid: Some(self.tasks.tid(waker).cast_unsigned()),
            common_flags: flags,
            sched_waking: Some(waking),
            ..event_at(at)
        };
        self.gather(cpu, event);
    }

    fn switch(
        &mut self,
        when: Instant,
        cpu: CpuId,
        (prev, prev_runnable): (Option<TaskId>, bool),
        next: Option<TaskId>,
    ) {
        self.introduce(when, prev);
        self.introduce(when, next);
        let switch = Switch {
            prev_comm: Some(self.tasks.comm(prev).into_bytes()),
            prev_pid: Some(self.tasks.tid(prev)),
            prev_prio: Some(self.tasks.priority(prev)),
            prev_state: Some(left(&self.board, prev, prev_runnable)),
            next_comm: Some(self.tasks.comm(next).into_bytes()),
            next_pid: Some(self.tasks.tid(next)),
            next_prio: Some(self.tasks.priority(next)),
        };
        let event = Event {
            pid: Some(self.tasks.tid(prev).cast_unsigned()),
            sched_switch: Some(switch),
            ..event_at(when)
        };
        self.gather(cpu, event);
    }

    fn idle(&mut self, when: Instant, cpu: CpuId, state: Option<u8>) {
        let idle = CpuIdle {
            state: Some(state.map_or(NOT_IDLE, u32::from)),
            cpu_id: Some(cpu.0.into()),
        };
        let event = Event {
            pid: Some(0),
            cpu_idle: Some(idle),
            ..event_at(when)
        };
        self.gather(cpu, event);
    }

    fn gather(&mut self, cpu: CpuId, event: Event) {
        let events = self.events.touch(cpu);
        events.push(event);
        if events.len() == EVENTS_A_BUNDLE {
            self.write_bundle(cpu);
        }
    }

    fn write_bundle(&mut self, cpu: CpuId) {
        let events = std::mem::take(self.events.touch(cpu));
        if !events.is_empty() {
            let bundle = Bundle {
                cpu: Some(cpu.0.into()),
                events,
                ..Bundle::default()
            };
            self.sink.write(TracePacket {
                ftrace_events: Some(bundle),
                ..TracePacket::default()
            });
        }
    }

    fn instant(&mut self, when: Instant, track: Track, name: String) {
        self.tracks.instant(&mut self.sink, when, track, name);
    }

    /// What became of tasks and CPUs. Returns false if `record` is about something else, as the
    /// others that see records do.
    fn see_schedule(&mut self, when: Instant, record: &Record) -> bool {
        match *record {
            Record::Wakeup { task, target, .. } => self.wake(when, task, target),
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => self.switch(when, cpu, (prev, prev_runnable), next),
            Record::Idle { cpu, state } => self.idle(when, cpu, state),
            _ => return false,
        }
        true
    }

    /// What CPUs did beside running tasks.
    fn see_cpu(&mut self, when: Instant, record: &Record) -> bool {
        let Perfetto { sink, tracks, .. } = self;
        match *record {
            Record::InterruptEnter { cpu, interrupt } => {
                let name = name_of(interrupt).into_owned();
                tracks.begin(sink, when, Track::Cpu(Group::Interrupts, cpu), name);
            }
            Record::InterruptExit { cpu, .. } => {
                tracks.end(sink, when, Track::Cpu(Group::Interrupts, cpu));
            }
            Record::Lock {
                cpu,
                lock,
                waited,
                held,
            } => tracks.tenure(sink, when, Track::Lock(cpu, lock), (waited, held)),
            Record::Owed {
                cpu, group, lag, ..
            } => tracks.count(sink, when, Track::Owed(cpu, group), lag),
            _ => match instant_of(record) {
                Some((track, name)) => tracks.instant(sink, when, track, name),
                None => return false,
            },
        }
        true
    }
}

/// What happened on a CPU at one time, in words.
fn instant_of(record: &Record) -> Option<(Track, String)> {
    let (group, cpu, name) = match *record {
        Record::Migrate { task, from, to } => {
            (Group::Scheduler, to, format!("{task} comes from {from}"))
        }
        Record::RescheduleSent { from, to } => (Group::Scheduler, from, format!("reschedule {to}")),
        Record::LockBusy { cpu, lock } => (Group::Scheduler, cpu, format!("{lock} busy")),
        Record::Affinity { task, from, cpus } => {
            let name = format!("{task} may use {cpus:#x} from {from} on");
            (Group::Scheduler, from, name)
        }
        Record::Hotplug { cpu, online } => {
            let name = if online { "online" } else { "offline" };
            (Group::Scheduler, cpu, name.to_owned())
        }
        Record::Recalculate { cpu } => (Group::Scheduler, cpu, "recalculate".to_owned()),
        Record::Steal { cpu, span } => (Group::Scheduler, cpu, format!("{span} stolen")),
        Record::Lost { cpu, events: 0 } => (Group::Scheduler, cpu, "events lost".to_owned()),
        Record::Lost { cpu, events } => (Group::Scheduler, cpu, format!("{events} events lost")),
        Record::Packet { cpu, bytes } => (Group::Network, cpu, format!("packet of {bytes} bytes")),
        Record::Drop { cpu, reason: 0 } => (Group::Network, cpu, "drop".to_owned()),
        Record::Drop { cpu, reason } => (Group::Network, cpu, format!("drop, reason {reason}")),
        Record::Poll {
            cpu,
            packets,
            budget,
        } => (Group::Network, cpu, format!("poll: {packets} of {budget}")),
        _ => return None,
    };
    Some((Track::Cpu(group, cpu), name))
}

impl<W: Write> Observer for Perfetto<W> {
    fn see(&mut self, when: Instant, record: &Record) {
        self.last = when;
        self.tasks.learn(record);
        self.board.see(when, record);
        // What others say (of forks, exits, names) is in the events that follow; a group has no
        // track, and its tasks say which one they are in.
        let seen = self.see_schedule(when, record) || self.see_cpu(when, record);
        if !seen && !self.see_task(when, record) {
            self.see_scenario(when, record);
        }
    }
}

/// An empty packet of `when`.
fn at(when: Instant) -> TracePacket {
    TracePacket {
        timestamp: Some(ns(when)),
        ..TracePacket::default()
    }
}

/// An empty event of `when`.
fn event_at(when: Instant) -> Event {
    Event {
        timestamp: Some(ns(when)),
        ..Event::default()
    }
}

fn ns(when: Instant) -> u64 {
    when.since(Instant::START).as_ns()
}

#[cfg(test)]
mod tests;
