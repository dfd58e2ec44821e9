//! Records in detail: why tasks sleep, who wakes them, what they are like, packets, idling. They
//! are made only for an observer that wants them (see `Observer::DETAIL`).

use warmq_trace::{Cause, Context, Record, State};
use warmq_units::{CpuId, Duration, TaskId};

use crate::core::Core;
use crate::words::{
    Barrier, Condition, Fragment, GroupId, IdleLoop, Limits, Mutex, Part, Policy, Role, Semaphore,
    Socket, Span, SpanEdge, Spinlock, Waiting, WakeContext, Wakeup,
};

impl Core {
    /// Records that `record` happened now, if somebody wants details.
    #[inline]
    pub(crate) fn record_detail(&mut self, record: impl FnOnce(&Core) -> Record) {
        if self.recorder.wants_details() {
            let record = record(self);
            self.record(record);
        }
    }

    /// `task` is about to leave `cpu`, or the queue of `cpu`, and to wait for `waiting`. That of
    /// one that stays runnable is always recorded, since without that it would look as if it slept
    /// and was woken.
    #[inline]
    pub(crate) fn record_block(&mut self, cpu: CpuId, task: TaskId, waiting: Waiting) {
        if !self.recorder.wants_details() && waiting != Waiting::Quota {
            return;
        }
        let (cause, state, part) = facts(waiting);
        let object = part.and_then(|part| self.recorder.object(part));
        self.record(Record::Block {
            cpu,
            task,
            cause: object.map_or(cause, |object| object.cause),
            state,
            object: object.map(|object| object.number),
        });
    }

    /// `cpu` is about to wake `task`.
    #[inline]
    pub(crate) fn record_waking(&mut self, cpu: CpuId, task: TaskId, wakeup: &Wakeup) {
        self.record_detail(|_| Record::Waking {
            cpu,
            waker: wakeup.current,
            task,
            context: match wakeup.context {
                WakeContext::Interrupt => Context::Interrupt,
                WakeContext::Softirq => Context::Softirq,
                WakeContext::Task => Context::Task,
            },
            synchronous: wakeup.sync,
        });
    }

    /// Records that `task` begins or ends a span.
    pub(crate) fn note_span(&mut self, task: TaskId, Span { span, number }: Span, edge: SpanEdge) {
        let now = self.now();
        self.record(match edge {
            SpanEdge::Begins => Record::SpanBegin { task, span, number },
            SpanEdge::Began(at) => Record::SpanBegan {
                task,
                span,
                number,
                ago: now.since(at.min(now)),
            },
            SpanEdge::Ends => Record::SpanEnd { task, span, number },
        });
    }

    /// Records which task of its scenario `task` is, right after its fork.
    pub(crate) fn record_role(&mut self, task: TaskId) {
        if let Some(Role { table, number }) = self.task(task).role {
            self.record(Record::Role {
                task,
                table,
                number,
            });
        }
    }

    pub(crate) fn record_nice(&mut self, task: TaskId) {
        self.record_detail(|core| Record::Nice {
            task,
            nice: core.task(task).nice,
        });
    }

    /// Always recorded: one of SCHED_DEADLINE may have to wait beside an idle CPU.
    pub(crate) fn record_policy(&mut self, task: TaskId) {
        let (policy, priority) = traced(self.task(task).policy);
        self.record(Record::Policy {
            task,
            policy,
            priority,
        });
    }

    pub(crate) fn record_slice(&mut self, task: TaskId) {
        self.record_detail(|core| Record::Slice {
            task,
            slice: core.task(task).slice.unwrap_or(Duration::ZERO),
        });
    }

    pub(crate) fn record_group(&mut self, task: TaskId) {
        self.record_detail(|core| Record::Group {
            task,
            group: core.task(task).group.0,
        });
    }

    /// Records what `group` is: when it is made, and when its weight changes.
    pub(crate) fn record_cgroup(&mut self, group: GroupId) {
        self.record_detail(|core| core.cgroup(group));
    }

    /// What `group` is, as a record.
    pub(crate) fn cgroup(&self, group: GroupId) -> Record {
        let known = self.groups.get(group);
        Record::Cgroup {
            group: group.0,
            parent: known.parent.map_or(0, |parent| parent.0),
            weight: if known.idle { 0 } else { known.weight },
            name: known.name,
        }
    }

    pub(crate) fn record_limit(&mut self, group: GroupId, limits: Limits) {
        self.record_detail(|_| Record::Limit {
            group: group.0,
            quota: limits.quota,
            period: limits.period,
        });
    }

    pub(crate) fn record_fragment(&mut self, task: TaskId) {
        let named = |fragment: Fragment| (fragment.app, fragment.number);
        self.record_detail(|core| Record::Fragment {
            task,
            fragment: core.task(task).fragment.map(named),
        });
    }

    /// Records what a task is like that has just been forked, where that is not the default.
    pub(crate) fn record_attributes(&mut self, task: TaskId) {
        if self.task(task).nice != 0 {
            self.record_nice(task);
        }
        if self.task(task).policy != Policy::Other {
            self.record_policy(task);
        }
        if self.task(task).slice.is_some() {
            self.record_slice(task);
        }
        if self.task(task).group.0 != 0 {
            self.record_group(task);
        }
    }

    /// A packet of `bytes` came up the protocol stack on `cpu`. What goes through a pipe or a Unix
    /// socket is no packet.
    pub(crate) fn record_packet(&mut self, cpu: CpuId, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.record_detail(|_| Record::Packet { cpu, bytes });
    }

    /// `cpu` dropped a packet. The numbers of reasons differ from one release to the next, so that
    /// none is given.
    pub(crate) fn record_drop(&mut self, cpu: CpuId) {
        self.record_detail(|_| Record::Drop { cpu, reason: 0 });
    }

    /// `cpu` has polled a card and took so many packets.
    pub(crate) fn record_poll(&mut self, cpu: CpuId, packets: u32) {
        self.record_detail(|core| Record::Poll {
            cpu,
            packets,
            budget: core.settings.softirqs.weight,
        });
    }

    /// `cpu` goes idle, in the state that its idle loop has: polling is 0, as in Linux.
    pub(crate) fn record_idle(&mut self, cpu: CpuId) {
        if self.recorder.wants_details() && !std::mem::replace(&mut self.cpu(cpu).shown_idle, true)
        {
            let state = Some(match self.idle_loop() {
                IdleLoop::Poll => 0,
                IdleLoop::Halt => 1,
            });
            self.record(Record::Idle { cpu, state });
        }
    }

    /// `cpu`, which was recorded to be idle, has something to do.
    pub(crate) fn record_busy(&mut self, cpu: CpuId) {
        self.cpu(cpu).shown_idle = false;
        let state = None;
        self.record(Record::Idle { cpu, state });
    }
}

/// Why a task waits, the state in which Linux lets it, and for what part of an object. A frozen one
/// sleeps interruptibly in `do_freezer_trap()`, a throttled one stays runnable, and `lock_sock()`
/// is not interrupted.
fn facts(waiting: Waiting) -> (Cause, State, Option<Part>) {
    let sleeps = |cause, part| (cause, State::Interruptible, part);
    match waiting {
        Waiting::Timer => sleeps(Cause::Timer, None),
        Waiting::Data(socket) | Waiting::Room(socket) => {
            sleeps(Cause::Socket, Some(Part::Socket(Socket(socket))))
        }
        Waiting::Socket(socket) => {
            let part = Part::Socket(Socket(socket));
            (Cause::Socket, State::Uninterruptible, Some(part))
        }
        Waiting::Connection(_) => sleeps(Cause::Socket, None),
        Waiting::Mutex(mutex) => sleeps(Cause::Mutex, Some(Part::Mutex(Mutex(mutex)))),
        Waiting::Spinlock(lock) => sleeps(Cause::Spinlock, Some(Part::Spinlock(Spinlock(lock)))),
        Waiting::Condition(of) => sleeps(Cause::Condition, Some(Part::Condition(Condition(of)))),
        Waiting::Barrier(of) => sleeps(Cause::Barrier, Some(Part::Barrier(Barrier(of)))),
        Waiting::Semaphore(of) => sleeps(Cause::Semaphore, Some(Part::Semaphore(Semaphore(of)))),
        Waiting::Softirqs => sleeps(Cause::Unknown, None),
        Waiting::Continue => (Cause::Continue, State::Stopped, None),
        Waiting::Thaw => sleeps(Cause::Thaw, None),
        Waiting::Quota => (Cause::Quota, State::Runnable, None),
    }
}

/// A policy with its real-time priority, as records have it.
fn traced(policy: Policy) -> (warmq_trace::Policy, u8) {
    match policy {
        Policy::Other => (warmq_trace::Policy::Other, 0),
        Policy::Batch => (warmq_trace::Policy::Batch, 0),
        Policy::Idle => (warmq_trace::Policy::Idle, 0),
        Policy::Fifo(priority) => (warmq_trace::Policy::Fifo, priority),
        Policy::RoundRobin(priority) => (warmq_trace::Policy::RoundRobin, priority),
        Policy::Deadline(_) => (warmq_trace::Policy::Deadline, 0),
    }
}
