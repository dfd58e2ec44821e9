//! What a kernel says: an event, whoever recorded it and however it was written down.

use warmq_trace::{Context, Interrupt, State};
use warmq_units::CpuId;

/// A thread's short name as the kernel has it: bytes that need not be text, up to the first zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name([u8; 16]);

impl Name {
    /// The first 16 of these bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Name {
        let mut name = [0; 16];
        let length = bytes.len().min(16);
        name[..length].copy_from_slice(&bytes[..length]);
        Name(name)
    }

    /// The bytes up to the first zero.
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }
}

/// A thread as an event names it; 0 is the idle task of every CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// Its name, where the event has it.
    pub comm: Name,
    /// Its priority as the kernel counts: below 0 for deadlines, 99 less the real-time priority,
    /// or 120 more than the nice value.
    pub priority: Option<i16>,
}

impl Thread {
    /// One of which an event has nothing but the id.
    pub fn of(tid: u32) -> Thread {
        Thread {
            tid,
            ..Thread::default()
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A CPU runs another thread.
    Switch {
        /// Who ran.
        prev: Thread,
        /// In which state it leaves.
        state: State,
        /// Who runs.
        next: Thread,
    },
    /// A thread is about to be woken.
    Waking(Thread),
    /// A thread was woken.
    Wakeup {
        /// Who.
        thread: Thread,
        /// On which CPU it is queued.
        target: u16,
        /// For the first time (`sched_wakeup_new`).
        first: bool,
    },
    /// A thread changes its CPU.
    Migrate {
        /// Who.
        thread: Thread,
        /// From which CPU.
        from: u16,
        /// To which CPU.
        to: u16,
    },
    /// A thread was made.
    Fork {
        /// By whom.
        parent: Thread,
        /// Who.
        child: Thread,
    },
    /// Thread `old` executed a program, and has the id `tid` from now on.
    Exec {
        /// Its new id.
        tid: u32,
        /// Its id before.
        old: u32,
    },
    /// A thread has another name.
    Renamed(Thread),
    /// A thread is of this process, and has this name if it has none yet.
    Process {
        /// Who.
        thread: Thread,
        /// Its process.
        tgid: u32,
    },
    /// A thread is in this group from now on, by the number that its source gives groups.
    Grouped {
        /// Its id.
        tid: u32,
        /// The group.
        group: u32,
    },
    /// A group is part of another one: numbers of the source, 0 is the root.
    Group {
        /// Which.
        group: u32,
        /// Of which it is part.
        parent: u32,
        /// The last part of its path.
        name: Name,
    },
    /// An interrupt or a softirq begins.
    Enter(Interrupt),
    /// It ends.
    Leave(Interrupt),
    /// A CPU is asked to reschedule.
    RescheduleSent {
        /// Which.
        to: u16,
    },
    /// The CPU enters an idle state, or leaves it.
    Idle(Option<u8>),
    /// Packets were taken from a network card.
    Poll {
        /// How many.
        packets: u32,
        /// How many might have been.
        budget: u32,
    },
    /// A packet was received.
    Packet {
        /// Its bytes.
        bytes: u32,
    },
    /// A packet was dropped.
    Drop {
        /// The kernel's number of the reason.
        reason: u16,
    },
    /// Nothing that records say, but what people record.
    Other(Other),
}

impl What {
    /// What `state` of a `cpu_idle` event says: a state, or that the CPU leaves it.
    pub fn idle(state: u32) -> What {
        What::Idle((state != u32::MAX).then(|| u8::try_from(state).unwrap_or(u8::MAX)))
    }
}

type Happens = fn(Interrupt) -> What;

/// What an event is about that is named by its begin or its end, and what it says of that.
pub(crate) fn edge(name: &str) -> Option<(&str, Happens)> {
    let enters = name.strip_suffix("_entry");
    let enters = enters.map(|name| (name, What::Enter as Happens));
    enters.or_else(|| Some((name.strip_suffix("_exit")?, What::Leave)))
}

/// Events of which no record is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Other {
    /// `sched_process_exit`: the last switch of a task says it, too.
    Exit,
    /// `sched_stat_runtime`: switches say it, too.
    Runtime,
    /// Interrupts were switched off or on (`preemptirq`).
    InterruptsOff,
}

/// An event, and what its CPU was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thread that ran there; `None` if the event does not say it.
    pub tid: Option<u32>,
    /// What the CPU was doing.
    pub context: Context,
    /// What happened.
    pub what: What,
}

/// What a recording says of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// Events are missing here: how many, or 0 if unknown.
    Lost(u64),
    /// The next event is of this thread, which does not run here so far: its switch is missing.
    Runs(u32),
}

/// The same, with its CPU and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// When, by the recording's clock, in ns.
    pub ns: u64,
    /// Where.
    pub cpu: CpuId,
    /// What.
    pub item: Item,
}

impl Event {
    /// Whether nobody knows if the thread that ran did it, or an interrupt: text may have no column
    /// for that.
    pub fn lacks_context(&self) -> bool {
        self.context == Context::Unknown && self.tid.is_some_and(|tid| tid > 0)
    }

    /// The thread that runs on the CPU after it, if known.
    pub fn runs_after(&self) -> Option<u32> {
        match self.what {
            What::Switch { next, .. } => Some(next.tid),
            What::Exec { tid, .. } => Some(tid),
            _ => self.tid,
        }
    }
}
