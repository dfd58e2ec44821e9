//! What can happen on a machine, as far as scheduling is concerned: one enum for simulated and real
//! runs.

use std::fmt;

use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

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

    /// The name as text.
    pub fn as_str(&self) -> &str {
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

impl fmt::Debug for Comm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.as_str())
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
    /// `task` will run on a different CPU than it last ran on.
    Migrate {
        /// The task that moves.
        task: TaskId,
        /// The CPU that it last ran on.
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
}

/// A consumer of records, fed one at a time in the order of time.
pub trait Observer {
    /// False for an observer that ignores all records, so that none are built for it.
    const LISTENS: bool = true;

    /// Takes in `record`, which happened at `at`.
    fn see(&mut self, at: Instant, record: &Record);
}

/// Observes nothing, at no cost.
impl Observer for () {
    const LISTENS: bool = false;
    #[inline(always)]
    fn see(&mut self, _: Instant, _: &Record) {}
}

/// A borrowed observer stays with its owner.
impl<O: Observer> Observer for &mut O {
    const LISTENS: bool = O::LISTENS;
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        O::see(self, at, record);
    }
}

/// An observer, or none, as decided when the run starts.
impl<O: Observer> Observer for Option<O> {
    const LISTENS: bool = O::LISTENS;
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
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.0.see(at, record);
        self.1.see(at, record);
    }
}
