//! What is known about the tasks of a trace: names, threads, priorities, why they sleep.

use std::borrow::Cow;

use warmq_units::{CpuId, Instant, TaskId};

use super::protos::{Process, ProcessTree, Thread, TracePacket};
use super::sink::Packets;
use super::tracks::ThreadId;
use super::{MACHINE_PID, at};
use crate::{Cause, Comm, Context, Interrupt, Policy, State, Table};

/// `prio` of a task of nice 0, and that of the least real-time priority (`MAX_RT_PRIO` - 1).
const NORMAL_PRIORITY: i32 = 120;
const LEAST_REAL_TIME: i32 = 99;

/// `prev_state` of a sched_switch (`TASK_...` of the kernel's `include/linux/sched.h`).
pub(super) const RUNNABLE: i64 = 0;
const ASLEEP: i64 = 1;
pub(super) const UNINTERRUPTIBLE: i64 = 2;
pub(super) const STOPPED: i64 = 4;
pub(super) const DEAD: i64 = 16;
const PARKED: i64 = 64;
const IDLE: i64 = 128;

/// What is known about a task.
#[derive(Debug, Default)]
pub(super) struct Known {
    comm: Comm,
    gone: bool,
    nice: i8,
    real_time: Option<u8>,
    /// What the recorded kernel calls it, if the trace is a recording.
    ids: Option<(u32, u32)>,
    /// Whether the trace says who it is, as far as it is known.
    introduced: bool,
    /// In which state it is about to leave its CPU.
    blocked: Option<State>,
    /// Who is about to wake it.
    pub waking: Option<Waking>,
}

/// The circumstances of a wakeup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waking {
    pub at: Instant,
    pub cpu: CpuId,
    pub waker: Option<TaskId>,
    pub context: Context,
}

/// All tasks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tasks(Table<TaskId, Known>);

impl Tasks {
    pub fn know(&mut self, task: TaskId) -> &mut Known {
        self.0.touch(task)
    }

    /// Writes the names of those that nothing else was written of.
    pub fn introduce_all(&mut self, to: &mut impl Packets, when: Instant) {
        let all: Vec<TaskId> = self.0.iter().map(|(task, _)| task).collect();
        all.into_iter()
            .for_each(|task| self.introduce(to, when, task));
    }

    /// Writes which thread `task` is and what it is called, unless that is known, or it has no
    /// name.
    pub fn introduce(&mut self, to: &mut impl Packets, when: Instant, task: TaskId) {
        let thread = self.thread(task);
        let known = self.0.touch(task);
        if std::mem::replace(&mut known.introduced, true) || known.comm == Comm::default() {
            return;
        }
        let thread = Thread {
            tid: Some(thread.tid),
            name: Some(known.comm.to_string()),
            tgid: Some(thread.pid),
        };
        let tree = ProcessTree {
            processes: Vec::new(),
            threads: vec![thread],
        };
        to.write(TracePacket {
            process_tree: Some(tree),
            ..at(when)
        });
    }

    /// The thread of a task. Where the trace does not say which it is, task n is the thread n + 1
    /// of a process that stands for the machine.
    pub fn thread(&self, task: TaskId) -> ThreadId {
        let ids = self.0.get(task).and_then(|known| known.ids);
        let number = |id: u32| i32::try_from(id).unwrap_or(i32::MAX);
        match ids {
            Some((tid, 0)) => ThreadId {
                pid: MACHINE_PID,
                tid: number(tid),
            },
            Some((tid, tgid)) => ThreadId {
                pid: number(tgid),
                tid: number(tid),
            },
            None => ThreadId {
                pid: MACHINE_PID,
                tid: number(task.0).saturating_add(1),
            },
        }
    }

    /// The same for what runs on a CPU; `None` is Linux's idle task.
    pub fn tid(&self, task: Option<TaskId>) -> i32 {
        task.map_or(0, |task| self.thread(task).tid)
    }

    pub fn comm(&self, task: Option<TaskId>) -> String {
        let Some(task) = task else {
            return "swapper".to_owned();
        };
        let known = self.0.get(task);
        known.map_or_else(String::new, |known| known.comm.to_string())
    }

    /// Its priority as the kernel's events have it.
    pub fn priority(&self, task: Option<TaskId>) -> i32 {
        let known = task.and_then(|task| self.0.get(task));
        let Some(known) = known else {
            return NORMAL_PRIORITY;
        };
        match known.real_time {
            Some(priority) => LEAST_REAL_TIME - i32::from(priority),
            None => NORMAL_PRIORITY + i32::from(known.nice),
        }
    }

    /// The state in which `task` leaves its CPU.
    pub fn leaves(&mut self, task: Option<TaskId>, runnable: bool) -> i64 {
        let Some(task) = task else {
            return RUNNABLE;
        };
        let known = self.0.touch(task);
        let blocked = known.blocked.take();
        match (known.gone, runnable, blocked) {
            (true, ..) => DEAD,
            (false, true, _) => RUNNABLE,
            (false, false, None | Some(State::Interruptible)) => ASLEEP,
            (false, false, Some(State::Runnable)) => RUNNABLE,
            (false, false, Some(State::Uninterruptible)) => UNINTERRUPTIBLE,
            (false, false, Some(State::Stopped)) => STOPPED,
            (false, false, Some(State::Dead)) => DEAD,
            (false, false, Some(State::IdleThread)) => IDLE,
            (false, false, Some(State::Other)) => PARKED,
        }
    }
}

impl Known {
    pub fn is_called(&mut self, comm: Comm) {
        (self.comm, self.introduced) = (comm, false);
    }

    pub fn has_ids(&mut self, tid: u32, tgid: u32) {
        (self.ids, self.introduced) = (Some((tid, tgid)), false);
    }

    pub fn exits(&mut self) {
        self.gone = true;
    }

    pub fn blocks(&mut self, state: State) {
        self.blocked = Some(state);
    }

    pub fn is_nice(&mut self, nice: i8) {
        self.nice = nice;
    }

    pub fn has_policy(&mut self, policy: Policy, priority: u8) {
        let real_time = matches!(policy, Policy::Fifo | Policy::RoundRobin);
        self.real_time = real_time.then_some(priority);
    }
}

/// The process that stands for the machine.
pub(super) fn machine(name: &str) -> ProcessTree {
    let process = Process {
        pid: Some(MACHINE_PID),
        ppid: Some(0),
        cmdline: vec![name.to_owned()],
    };
    ProcessTree {
        processes: vec![process],
        threads: Vec::new(),
    }
}

/// What an interrupt is called: softirqs as in `/proc/softirqs`.
pub(super) fn name_of(interrupt: Interrupt) -> Cow<'static, str> {
    const SOFTIRQS: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    match interrupt {
        Interrupt::Timer => "Timer".into(),
        Interrupt::Reschedule => "Reschedule".into(),
        Interrupt::Network => "Network".into(),
        Interrupt::NetworkSoftirq => "softirq NET_RX".into(),
        Interrupt::SchedSoftirq => "softirq SCHED".into(),
        Interrupt::Line(number) => format!("irq {number}").into(),
        Interrupt::Softirq(vector) => match SOFTIRQS.get(usize::from(vector)) {
            Some(name) => format!("softirq {name}").into(),
            None => format!("softirq {vector}").into(),
        },
    }
}

/// What a task is about to wait for, in words.
pub(super) fn waits_for(cause: Cause, object: Option<u32>) -> String {
    let what = match cause {
        Cause::Unknown => "something",
        Cause::Mutex => "a mutex",
        Cause::Condition => "a condition",
        Cause::Semaphore => "a semaphore",
        Cause::Barrier => "a barrier",
        Cause::Queue => "a queue",
        Cause::Pipe => "a pipe",
        Cause::Socket => "a socket",
        Cause::Timer => "a time",
        Cause::Child => "a child",
        Cause::Continue => "a signal to continue",
        Cause::Thaw => "its group to be thawed",
        Cause::Quota => "its group's next period",
        Cause::Device => "a device",
    };
    match object {
        Some(object) => format!("waits for {what} (object {object})"),
        None => format!("waits for {what}"),
    }
}
