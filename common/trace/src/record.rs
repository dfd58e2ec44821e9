//! What can happen on a machine, as far as scheduling is concerned: one enum for simulated and real
//! runs.

use std::fmt;

use warmq_units::{CpuId, Duration, Instant, LockId, TaskId, printable};

use crate::{Cause, Context, Header, Policy, State};

/// A task's short name, as `/proc/PID/comm` has it: at most 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The first 15 bytes of `name`, cut at a character boundary.
    pub fn new(name: &str) -> Comm {
        let mut end = name.len().min(15);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; 16];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Comm(bytes)
    }

    /// The name as the task has it, to be compared and matched. It may have any characters: what is
    /// shown is `to_string()`.
    pub fn raw(&self) -> &str {
        let end = self
            .0
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..end]).unwrap_or("?")
    }

    /// The bytes as two words, low byte first.
    #[inline]
    pub(crate) fn to_words(self) -> [u64; 2] {
        let all = u128::from_le_bytes(self.0);
        [all as u64, (all >> 64) as u64]
    }

    /// The name of these words, or `None` if they are not text of at most 15 bytes.
    pub(crate) fn from_words([head, tail]: [u64; 2]) -> Option<Comm> {
        let bytes = (u128::from(tail) << 64 | u128::from(head)).to_le_bytes();
        (bytes[15] == 0 && std::str::from_utf8(&bytes).is_ok()).then_some(Comm(bytes))
    }
}

/// The name as it can be shown.
impl fmt::Display for Comm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        printable(self.raw()).fmt(formatter)
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.raw())
    }
}

/// The cause of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interrupt {
    /// The CPU's periodic timer.
    Timer,
    /// Another CPU asked this one to reschedule.
    Reschedule,
    /// A network card.
    Network,
    /// Deferred work of the network stack (a softirq).
    NetworkSoftirq,
    /// Balancing by the scheduler (a softirq).
    SchedSoftirq,
    /// Any other device, by its number (`/proc/interrupts`).
    Line(u16),
    /// Any other softirq, by its vector (`enum` in the kernel's `include/linux/interrupt.h`).
    Softirq(u8),
}

/// The vectors of the softirqs that have names of their own here (`NET_RX_SOFTIRQ`,
/// `SCHED_SOFTIRQ`).
const NET_RX: u8 = 3;
const SCHED: u8 = 7;

impl Interrupt {
    /// The softirq of `vector`.
    pub fn softirq(vector: u8) -> Interrupt {
        match vector {
            NET_RX => Interrupt::NetworkSoftirq,
            SCHED => Interrupt::SchedSoftirq,
            other => Interrupt::Softirq(other),
        }
    }

    /// True of softirqs, false of hardware interrupts.
    pub fn is_softirq(self) -> bool {
        match self {
            Interrupt::NetworkSoftirq | Interrupt::SchedSoftirq | Interrupt::Softirq(_) => true,
            Interrupt::Timer | Interrupt::Reschedule | Interrupt::Network | Interrupt::Line(_) => {
                false
            }
        }
    }
}

/// One thing that happened. The CPU on which it happened stands first where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `child` was created; it is not yet runnable.
    Fork {
        /// The task that called fork; `None` for the first tasks of a run.
        parent: Option<TaskId>,
        /// The new task.
        child: TaskId,
        /// Its name.
        comm: Comm,
    },
    /// `task` exited.
    Exit {
        /// The CPU that it last ran on.
        cpu: CpuId,
        /// The task that exited.
        task: TaskId,
    },
    /// `task` became runnable.
    Wakeup {
        /// The CPU that woke it.
        waker: CpuId,
        /// The task that was woken.
        task: TaskId,
        /// The CPU whose queue it joined, or its last one where one queue serves all.
        target: CpuId,
    },
    /// `cpu` stopped running `prev` and runs `next`; `None` is the idle task.
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// The task that left the CPU.
        prev: Option<TaskId>,
        /// True if `prev` is still runnable (it was preempted or yielded).
        prev_runnable: bool,
        /// The task that runs from now on.
        next: Option<TaskId>,
    },
    /// `task` will run on a different CPU than it last ran on, or, if it has not run, than it was
    /// first put on.
    Migrate {
        /// The task that moves.
        task: TaskId,
        /// The CPU that it last ran or waited on.
        from: CpuId,
        /// The CPU that it will run on.
        to: CpuId,
    },
    /// An interrupt (or softirq) began.
    InterruptEnter {
        /// The CPU.
        cpu: CpuId,
        /// Its cause.
        interrupt: Interrupt,
    },
    /// An interrupt (or softirq) ended.
    InterruptExit {
        /// The CPU.
        cpu: CpuId,
        /// Its cause.
        interrupt: Interrupt,
    },
    /// `from` asked `to` to reschedule.
    RescheduleSent {
        /// The CPU that asks.
        from: CpuId,
        /// The CPU that is asked.
        to: CpuId,
    },
    /// A spin lock was released; one record covers the whole tenure.
    Lock {
        /// The CPU that held it.
        cpu: CpuId,
        /// The lock.
        lock: LockId,
        /// From the request to the grant; zero if the lock was free.
        waited: Duration,
        /// From the grant to the release.
        held: Duration,
    },
    /// `cpu` tried a spin lock, found it held, and gave up (`spin_trylock()`).
    LockBusy {
        /// The CPU that tried.
        cpu: CpuId,
        /// The lock.
        lock: LockId,
    },
    /// The affinity of `task` with respect to 64 CPUs. A task without such a record may run on
    /// every CPU.
    Affinity {
        /// The task.
        task: TaskId,
        /// The first of the 64 CPUs, a multiple of 64.
        from: CpuId,
        /// Bit n is set if the task may run on CPU `from` + n.
        cpus: u64,
    },
    /// `cpu` came online or went offline. A CPU without such a record is online.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// True if it came online.
        online: bool,
    },
    /// All time slices of the system were recalculated (Linux 2.4).
    Recalculate {
        /// The CPU that recalculated them.
        cpu: CpuId,
    },
    /// `task` is about to leave its CPU for the reason given: its switch follows. One that waits
    /// for a CPU and stays runnable leaves its queue: it was woken in a group that is out of quota.
    Block {
        /// The CPU that it leaves.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// What it waits for.
        cause: Cause,
        /// The state in which it leaves.
        state: State,
        /// Which object of the scenario it waits for, if it is one: counted over all tables.
        object: Option<u32>,
    },
    /// `task` is about to be woken: its [`Record::Wakeup`] follows, perhaps on another CPU.
    Waking {
        /// The CPU that wakes it.
        cpu: CpuId,
        /// The task that runs there, if one does.
        waker: Option<TaskId>,
        /// The task that is woken.
        task: TaskId,
        /// What that CPU was doing.
        context: Context,
        /// True if the waker says that it is about to sleep (`WF_SYNC`).
        synchronous: bool,
    },
    /// What the kernel of a recording calls a task. A simulated task has no such record.
    Ids {
        /// The task.
        task: TaskId,
        /// Its thread id.
        tid: u32,
        /// Its process id; 0 if unknown.
        tgid: u32,
    },
    /// `task` has another name from now on, as after exec.
    Renamed {
        /// The task.
        task: TaskId,
        /// Its name.
        comm: Comm,
    },
    /// The nice value of `task`.
    Nice {
        /// The task.
        task: TaskId,
        /// From -20 to 19.
        nice: i8,
    },
    /// The policy of `task`.
    Policy {
        /// The task.
        task: TaskId,
        /// The policy.
        policy: Policy,
        /// Its real-time priority, 1 to 99; 0 for other policies.
        priority: u8,
    },
    /// The slice that `task` asks for.
    Slice {
        /// The task.
        task: TaskId,
        /// The slice; zero: the scheduler's own.
        slice: Duration,
    },
    /// `task` is in a group (a cgroup) from now on.
    Group {
        /// The task.
        task: TaskId,
        /// The group, by a number that is unique in the trace; 0 is the root.
        group: u32,
    },
    /// What a group is: from now on it is part of `parent` and has `weight` there.
    Cgroup {
        /// The group, as [`Record::Group`] numbers it.
        group: u32,
        /// The group that it is part of; 0 is the root.
        parent: u32,
        /// Its weight among its siblings, as `cpu.weight` of cgroup v2 reads: 100 is usual, and 0
        /// where `cpu.idle` is set.
        weight: u32,
        /// Its name, cut to the length of a task's.
        name: Comm,
    },
    /// What `cpu.max` of a group says from now on. A scheduler of sched_ext keeps it by itself: no
    /// record says whom that holds back.
    Limit {
        /// The group.
        group: u32,
        /// CPU time in each period; the greatest number where there is no limit.
        quota: Duration,
        /// The period.
        period: Duration,
    },
    /// Tasks of `group` were held back by its quota.
    Throttled {
        /// The group.
        group: u32,
        /// For how long since the last such record.
        span: Duration,
    },
    /// What the kernel has counted of the quota of `group`, as its `cpu.stat` says: since the group
    /// has one, or since a recorder met it.
    Quota {
        /// The group.
        group: u32,
        /// Periods that have ended (`nr_periods`).
        periods: u64,
        /// Those in which it was throttled on some CPU (`nr_throttled`).
        throttled: u64,
        /// For how long, summed over CPUs (`throttled_usec`).
        span: Duration,
    },
    /// What the tasks of a group are owed together on a CPU, by a fair scheduler that counts in
    /// virtual time (EEVDF's `vlag` and `vruntime` of a group's entity). Real kernels do not report
    /// these.
    Owed {
        /// The CPU.
        cpu: CpuId,
        /// The group, as [`Record::Group`] numbers it.
        group: u32,
        /// Its weight on that CPU; 1024 is that of a task of nice 0.
        weight: u64,
        /// Its vruntime there, in virtual ns.
        vruntime: i64,
        /// What it is owed there: the average vruntime of the queue less its own, in virtual ns.
        lag: i64,
    },
    /// `task` is a thread of the kernel. Without such a record its name may show that.
    KernelThread {
        /// The task.
        task: TaskId,
    },
    /// The data that `task` says it uses from now on.
    Fragment {
        /// The task.
        task: TaskId,
        /// The application and its number of the fragment; `None` for none.
        fragment: Option<(u32, u32)>,
    },
    /// A packet was received for a socket of this machine.
    Packet {
        /// The CPU.
        cpu: CpuId,
        /// Its payload.
        bytes: u32,
    },
    /// A packet was dropped.
    Drop {
        /// The CPU.
        cpu: CpuId,
        /// The kernel's number of the reason (`enum skb_drop_reason`); 0 if unknown.
        reason: u16,
    },
    /// The kernel took packets from a network card (`napi_poll`).
    Poll {
        /// The CPU.
        cpu: CpuId,
        /// How many it took.
        packets: u32,
        /// How many it might have taken.
        budget: u32,
    },
    /// `cpu` entered an idle state, or left it.
    Idle {
        /// The CPU.
        cpu: CpuId,
        /// The state's number; `None`: it left it.
        state: Option<u8>,
    },
    /// The hypervisor had taken `cpu` away.
    Steal {
        /// The CPU.
        cpu: CpuId,
        /// For how long since the last such record.
        span: Duration,
    },
    /// Events of `cpu` are missing from here on: the recorder had no room for them.
    Lost {
        /// The CPU.
        cpu: CpuId,
        /// How many; 0 if unknown.
        events: u64,
    },
    /// Which task of its scenario `task` is.
    Role {
        /// The task.
        task: TaskId,
        /// The table of tasks, in the order of the header's names.
        table: u32,
        /// Which of the table's tasks.
        number: u32,
    },
    /// A latency span began; one that is open begins anew.
    SpanBegin {
        /// The task that began it.
        task: TaskId,
        /// Which span, in the order of the header's names.
        span: u32,
        /// Which of the spans of that name.
        number: u64,
    },
    /// A latency span began some time ago, when what it is about came or was due; one that is open
    /// begins anew.
    SpanBegan {
        /// The task that says so.
        task: TaskId,
        /// Which span, in the order of the header's names.
        span: u32,
        /// Which of the spans of that name.
        number: u64,
        /// How long ago.
        ago: Duration,
    },
    /// A latency span ended.
    SpanEnd {
        /// The task that ended it.
        task: TaskId,
        /// Which span, in the order of the header's names.
        span: u32,
        /// Which of the spans of that name.
        number: u64,
    },
    /// What a counter of the scenario has counted since the start.
    Count {
        /// Which counter, in the order of the header's names.
        counter: u32,
        /// The count.
        total: u64,
    },
    /// A phase of the scenario begins, and the one before it ends.
    Phase {
        /// Which phase, in the order of the header's names.
        phase: u32,
    },
    /// How long `task` has run in all, as it or its kernel counted: for a recording without
    /// switches.
    Ran {
        /// The task.
        task: TaskId,
        /// The time.
        total: Duration,
    },
}

/// A consumer of records, fed one at a time in the order of time.
pub trait Observer {
    /// False for an observer that ignores all records, so that none are built for it.
    const LISTENS: bool = true;
    /// False for an observer that ignores records in detail ([`Record::is_detail`]), so that a
    /// simulator need not build them.
    const DETAIL: bool = true;

    /// What the records that follow are of. Whoever has records of a whole run says so before the
    /// first of them; most observers need not know.
    fn about(&mut self, _: &Header) {}

    /// Takes in `record`, which happened at `at`.
    fn see(&mut self, at: Instant, record: &Record);
}

/// Observes nothing, at no cost.
impl Observer for () {
    const LISTENS: bool = false;
    const DETAIL: bool = false;
    #[inline(always)]
    fn see(&mut self, _: Instant, _: &Record) {}
}

/// A borrowed observer stays with its owner.
impl<O: Observer> Observer for &mut O {
    const LISTENS: bool = O::LISTENS;
    const DETAIL: bool = O::DETAIL;
    fn about(&mut self, header: &Header) {
        O::about(self, header);
    }
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        O::see(self, at, record);
    }
}

/// An observer, or none, as decided when the run starts.
impl<O: Observer> Observer for Option<O> {
    const LISTENS: bool = O::LISTENS;
    const DETAIL: bool = O::DETAIL;
    fn about(&mut self, header: &Header) {
        if let Some(observer) = self {
            observer.about(header);
        }
    }
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        if let Some(observer) = self {
            observer.see(at, record);
        }
    }
}

/// Two observers of the same run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;
    const DETAIL: bool = A::DETAIL || B::DETAIL;
    fn about(&mut self, header: &Header) {
        self.0.about(header);
        self.1.about(header);
    }
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.0.see(at, record);
        self.1.see(at, record);
    }
}
