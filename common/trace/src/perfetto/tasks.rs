//! The tasks of a trace as the kernel's events have them: names, threads, priorities, states.

use std::borrow::Cow;

use warmq_units::{Instant, TaskId};

use super::messages::{Process, ProcessTree, Thread};
use super::protos::TracePacket;
use super::sink::Packets;
use super::tracks::ThreadId;
use super::{MACHINE_PID, at};
use crate::{Board, Cause, Doing, Interrupt, Known, Policy, Record, State, Table};

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

/// All tasks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: Known,
    /// Of which the trace says who they are, as far as that is known.
    introduced: Table<TaskId, bool>,
}

impl Tasks {
    /// Takes in what a record says of a task.
    pub fn learn(&mut self, record: &Record) {
        self.known.learn(record);
        if let Record::Fork { child: task, .. }
        | Record::Renamed { task, .. }
        | Record::Ids { task, .. } = *record
        {
            *self.introduced.touch(task) = false;
        }
    }

    /// Writes the names of those that nothing else was written of.
    pub fn introduce_all(&mut self, to: &mut impl Packets, when: Instant) {
        let all: Vec<TaskId> = self.known.tasks().collect();
        all.into_iter()
            .for_each(|task| self.introduce(to, when, task));
    }

    /// Writes which thread `task` is and what it is called, unless that is known, or it has no
    /// name.
    pub fn introduce(&mut self, to: &mut impl Packets, when: Instant, task: TaskId) {
        let introduced = std::mem::replace(self.introduced.touch(task), true);
        let name = self.comm(Some(task));
        if introduced || name.is_empty() {
            return;
        }
        let thread = self.thread(task);
        let thread = Thread {
            tid: Some(thread.tid),
            name: Some(name.into_bytes()),
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
        let who = self.known.who(task);
        let number = |id: u32| i32::try_from(id).unwrap_or(i32::MAX);
        let tid = who.and_then(|who| who.tid).map(number);
        let pid = who.and_then(|who| who.tgid).map(number);
        ThreadId {
            pid: pid.unwrap_or(MACHINE_PID),
            tid: tid.unwrap_or_else(|| number(task.0).saturating_add(1)),
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
        let who = self.known.who(task);
        who.map_or_else(String::new, |who| who.comm.to_string())
    }

    /// Its priority as the kernel's events have it.
    pub fn priority(&self, task: Option<TaskId>) -> i32 {
        let Some(who) = task.and_then(|task| self.known.who(task)) else {
            return NORMAL_PRIORITY;
        };
        match who.policy() {
            Policy::Fifo | Policy::RoundRobin => LEAST_REAL_TIME - i32::from(who.priority),
            _ => NORMAL_PRIORITY + i32::from(who.nice),
        }
    }
}

/// The state in which `task` has left its CPU, on a board after the switch.
pub(super) fn left(board: &Board, task: Option<TaskId>, runnable: bool) -> i64 {
    let Some(task) = task else {
        return RUNNABLE;
    };
    if board.doing(task) == Doing::Exited {
        return DEAD;
    }
    match (runnable, board.block(task).map(|block| block.state)) {
        (true, _) | (false, Some(State::Runnable)) => RUNNABLE,
        (false, None | Some(State::Interruptible)) => ASLEEP,
        (false, Some(State::Uninterruptible)) => UNINTERRUPTIBLE,
        (false, Some(State::Stopped)) => STOPPED,
        (false, Some(State::Dead)) => DEAD,
        (false, Some(State::IdleThread)) => IDLE,
        (false, Some(State::Other)) => PARKED,
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
        Cause::Spinlock => "a spin lock",
        Cause::Futex => "a futex",
    };
    match object {
        Some(object) => format!("waits for {what} (object {object})"),
        None => format!("waits for {what}"),
    }
}
