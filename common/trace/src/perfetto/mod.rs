//! A trace that the Perfetto UI opens.
//!
//! Switches and wakeups are written as the Linux kernel's own events, so that the UI shows each
//! CPU's schedule and each thread's states (running, runnable and by whom it was woken, sleeping)
//! as it does for a real machine. Everything else becomes slices and instants on tracks of ours:
//!
//! ```text
//!     Interrupts      cpu0, cpu1...             one slice an interrupt
//!     Spin locks      cpu0 lock3...             a slice for the wait, then one for the tenure
//!     Scheduler       cpu0, cpu1...             instants: migrations, reschedules, recalculations,
//!                                               affinities, CPUs online and offline
//! ```
//!
//! Task n is the thread n + 1 (0 is Linux's idle task), and all tasks are threads of one process
//! that stands for the machine. Perfetto's clock counts nanoseconds: picoseconds are cut off.

mod protos;
mod sink;
mod tracks;

use std::io::{self, Write};

use warmq_units::{CpuId, Instant, TaskId};

use self::protos::{
    FtraceEvent, FtraceEventBundle, Process, ProcessTree, SchedSwitch, SchedWaking, Thread,
    TracePacket,
};
use self::sink::{Packets, Sink};
use self::tracks::{Group, Tracks};
use crate::{Comm, Interrupt, Observer, Record, Table};

/// The process of all tasks: the lowest number that Linux never uses as a pid (`PID_MAX_LIMIT`).
const MACHINE_PID: i32 = 1 << 22;

/// How many events of one CPU are gathered into one packet.
const EVENTS_A_BUNDLE: usize = 256;

/// `prev_state` of a sched_switch (`TASK_RUNNING`, `TASK_INTERRUPTIBLE`, `EXIT_DEAD`).
const RUNNABLE: i64 = 0;
const ASLEEP: i64 = 1;
const DEAD: i64 = 16;

/// `common_flags` of a kernel event (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`).
const IN_HARD_INTERRUPT: u32 = 8;
const IN_SOFTIRQ: u32 = 16;

/// `prio` of a task of nice 0; records do not contain priorities.
const NORMAL_PRIORITY: i32 = 120;

/// Writes every record that it sees. The writer that it is given should be buffered.
///
/// An observer cannot fail, so the first error is kept, nothing is written after it, and
/// [`Perfetto::finish`] returns it. Without `finish` the last events of each CPU are missing.
#[derive(Debug)]
pub struct Perfetto<W: Write> {
    sink: Sink<W>,
    tracks: Tracks,
    tasks: Table<TaskId, Known>,
    cpus: Table<CpuId, Cpu>,
}

/// What is known about a task.
#[derive(Debug, Default)]
struct Known {
    comm: Comm,
    gone: bool,
}

/// What a CPU is doing, and its events that are not yet written.
#[derive(Debug, Default)]
struct Cpu {
    running: Option<TaskId>,
    // The interrupts that it is serving, outermost first.
    open: Vec<Interrupt>,
    events: Vec<FtraceEvent>,
}

impl<W: Write> Perfetto<W> {
    /// Begins a trace of the machine called `machine`.
    pub fn new(to: W, machine: &str) -> Perfetto<W> {
        let mut sink = Sink::new(to);
        let process = Process {
            pid: Some(MACHINE_PID),
            ppid: Some(0),
            cmdline: vec![machine.to_owned()],
        };
        let tree = ProcessTree {
            processes: vec![process],
            threads: Vec::new(),
        };
        sink.write(TracePacket {
            process_tree: Some(tree),
            ..at(Instant::START)
        });
        let (tasks, cpus) = (Table::default(), Table::default());
        Perfetto {
            sink,
            tracks: Tracks::default(),
            tasks,
            cpus,
        }
    }

    /// Writes the remaining events, flushes, and returns the underlying writer.
    ///
    /// # Errors
    /// The first write error of the whole run.
    pub fn finish(mut self) -> io::Result<W> {
        let cpus: Vec<CpuId> = self.cpus.iter().map(|(cpu, _)| cpu).collect();
        cpus.into_iter().for_each(|cpu| self.write_bundle(cpu));
        self.sink.finish()
    }

    fn fork(&mut self, when: Instant, child: TaskId, comm: Comm) {
        self.tasks.touch(child).comm = comm;
        let name = Some(comm.as_str().to_owned());
        let thread = Thread {
            tid: Some(tid(Some(child))),
            name,
            tgid: Some(MACHINE_PID),
        };
        let tree = ProcessTree {
            processes: Vec::new(),
            threads: vec![thread],
        };
        self.sink.write(TracePacket {
            process_tree: Some(tree),
            ..at(when)
        });
    }

    fn wake(&mut self, when: Instant, waker: CpuId, task: TaskId, target: CpuId) {
        let waking = SchedWaking {
            comm: Some(self.comm(Some(task))),
            pid: Some(tid(Some(task))),
            prio: Some(NORMAL_PRIORITY),
            success: Some(1),
            target_cpu: Some(target.0.into()),
        };
        let cpu = self.cpus.touch(waker);
        let flags = cpu
            .open
            .last()
            .map_or(0, |interrupt| match interrupt.is_softirq() {
                true => IN_SOFTIRQ,
                false => IN_HARD_INTERRUPT,
            });
        let pid = tid(cpu.running).cast_unsigned();
        self.gather(
            waker,
            FtraceEvent {
                timestamp: Some(ns(when)),
                pid: Some(pid),
                common_flags: (flags != 0).then_some(flags),
                sched_waking: Some(waking),
                sched_switch: None,
            },
        );
    }

    fn switch(&mut self, when: Instant, cpu: CpuId, change: Change) {
        let Change {
            prev,
            prev_runnable,
            next,
        } = change;
        let gone = prev.is_some_and(|task| self.tasks.get(task).is_some_and(|task| task.gone));
        let state = match (gone, prev_runnable || prev.is_none()) {
            (true, _) => DEAD,
            (false, true) => RUNNABLE,
            (false, false) => ASLEEP,
        };
        let switch = SchedSwitch {
            prev_comm: Some(self.comm(prev)),
            prev_pid: Some(tid(prev)),
            prev_prio: Some(NORMAL_PRIORITY),
            prev_state: Some(state),
            next_comm: Some(self.comm(next)),
            next_pid: Some(tid(next)),
            next_prio: Some(NORMAL_PRIORITY),
        };
        self.cpus.touch(cpu).running = next;
        let pid = Some(tid(prev).cast_unsigned());
        let timestamp = Some(ns(when));
        let event = FtraceEvent {
            timestamp,
            pid,
            sched_switch: Some(switch),
            ..Default::default()
        };
        self.gather(cpu, event);
    }

    fn gather(&mut self, cpu: CpuId, event: FtraceEvent) {
        let events = &mut self.cpus.touch(cpu).events;
        events.push(event);
        if events.len() == EVENTS_A_BUNDLE {
            self.write_bundle(cpu);
        }
    }

    fn write_bundle(&mut self, cpu: CpuId) {
        let event = std::mem::take(&mut self.cpus.touch(cpu).events);
        if !event.is_empty() {
            let bundle = FtraceEventBundle {
                cpu: Some(cpu.0.into()),
                event,
            };
            self.sink.write(TracePacket {
                ftrace_events: Some(bundle),
                ..TracePacket::default()
            });
        }
    }

    fn comm(&self, task: Option<TaskId>) -> String {
        match task {
            None => "swapper".to_owned(),
            Some(task) => self
                .tasks
                .get(task)
                .map_or("", |known| known.comm.as_str())
                .to_owned(),
        }
    }
}

/// A switch without its CPU.
struct Change {
    prev: Option<TaskId>,
    prev_runnable: bool,
    next: Option<TaskId>,
}

impl<W: Write> Observer for Perfetto<W> {
    fn see(&mut self, when: Instant, record: &Record) {
        let Perfetto { sink, tracks, .. } = self;
        match *record {
            Record::Fork { child, comm, .. } => self.fork(when, child, comm),
            Record::Exit { task, .. } => self.tasks.touch(task).gone = true,
            Record::Wakeup {
                waker,
                task,
                target,
            } => self.wake(when, waker, task, target),
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                self.switch(
                    when,
                    cpu,
                    Change {
                        prev,
                        prev_runnable,
                        next,
                    },
                );
            }
            Record::Migrate { task, from, to } => {
                let name = format!("{task} comes from {from}");
                tracks.instant(sink, when, Group::Scheduler.of(to), name);
            }
            Record::InterruptEnter { cpu, interrupt } => {
                self.cpus.touch(cpu).open.push(interrupt);
                tracks.begin(
                    sink,
                    when,
                    Group::Interrupts.of(cpu),
                    format!("{interrupt:?}"),
                );
            }
            Record::InterruptExit { cpu, .. } => {
                self.cpus.touch(cpu).open.pop();
                tracks.end(sink, when, Group::Interrupts.of(cpu));
            }
            Record::RescheduleSent { from, to } => {
                let name = format!("reschedule {to}");
                tracks.instant(sink, when, Group::Scheduler.of(from), name);
            }
            Record::Lock {
                cpu,
                lock,
                waited,
                held,
            } => {
                tracks.tenure(sink, when, Group::Locks.of_lock(cpu, lock), (waited, held));
            }
            Record::LockBusy { cpu, lock } => {
                let name = format!("{lock} busy");
                tracks.instant(sink, when, Group::Scheduler.of(cpu), name);
            }
            Record::Affinity { task, from, cpus } => {
                let name = format!("{task} may use {cpus:#x} from {from} on");
                tracks.instant(sink, when, Group::Scheduler.of(from), name);
            }
            Record::Hotplug { cpu, online } => {
                let name = if online { "online" } else { "offline" };
                tracks.instant(sink, when, Group::Scheduler.of(cpu), name.to_owned());
            }
            Record::Recalculate { cpu } => {
                tracks.instant(
                    sink,
                    when,
                    Group::Scheduler.of(cpu),
                    "recalculate".to_owned(),
                );
            }
            _ => {}
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

fn ns(when: Instant) -> u64 {
    when.since(Instant::START).as_ns()
}

/// The thread of a task; `None` is Linux's idle task.
fn tid(task: Option<TaskId>) -> i32 {
    task.map_or(0, |task| {
        i32::try_from(task.0).unwrap_or(i32::MAX).saturating_add(1)
    })
}

#[cfg(test)]
mod tests;
