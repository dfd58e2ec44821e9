//! What can happen on a machine, as far as scheduling goes: one enum that both wings speak.

use std::fmt;

use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

/// A task's short name, as `/proc/PID/comm` has it: at most 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The first 15 bytes of `name`, cut at a character's border.
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

    /// The name that has these words, or nothing where they are no text of at most 15 bytes.
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

/// Why an interrupt came.
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
    /// `child` came into being, not yet runnable.
    Fork {
        /// Who called fork; `None` for tasks that the machine started with.
        parent: Option<TaskId>,
        /// The new task.
        child: TaskId,
        /// Its name.
        comm: Comm,
    },
    /// `task` is gone for good.
    Exit {
        /// Where it ran last.
        cpu: CpuId,
        /// Who left.
        task: TaskId,
    },
    /// `task` became runnable.
    Wakeup {
        /// The CPU that woke it.
        waker: CpuId,
        /// Who was woken.
        task: TaskId,
        /// The CPU whose queue it joined, or its last one where one queue serves all.
        target: CpuId,
    },
    /// `cpu` stopped running `prev` and runs `next`; `None` is the idle task.
    Switch {
        /// Where.
        cpu: CpuId,
        /// Who left the CPU.
        prev: Option<TaskId>,
        /// True where `prev` could have gone on (it was preempted or yielded).
        prev_runnable: bool,
        /// Who has the CPU now.
        next: Option<TaskId>,
    },
    /// `task` will run on another CPU than it did last.
    Migrate {
        /// Who moves.
        task: TaskId,
        /// Where it ran last.
        from: CpuId,
        /// Where it runs next.
        to: CpuId,
    },
    /// An interrupt (or softirq) began.
    InterruptEnter {
        /// Where.
        cpu: CpuId,
        /// Why.
        interrupt: Interrupt,
    },
    /// It ended.
    InterruptExit {
        /// Where.
        cpu: CpuId,
        /// Why it had come.
        interrupt: Interrupt,
    },
    /// `from` asked `to` to reschedule.
    RescheduleSent {
        /// Who asks.
        from: CpuId,
        /// Who is asked.
        to: CpuId,
    },
    /// A spin lock was released; one record tells the whole tenure.
    Lock {
        /// Who held it.
        cpu: CpuId,
        /// Which one.
        lock: LockId,
        /// From the request to the grant; zero where it was free.
        waited: Duration,
        /// From the grant to the release.
        held: Duration,
    },
    /// Every time slice of the system was computed anew (Linux 2.4).
    Recalculate {
        /// Who did it.
        cpu: CpuId,
    },
}

/// Who is told what happens. Fed one record at a time, in the order of time.
pub trait Observer {
    /// False for an observer that never looks, so that nothing is even built for it.
    const LISTENS: bool = true;

    /// `record` happened at `at`.
    fn see(&mut self, at: Instant, record: &Record);
}

/// Nobody looks, and nothing is spent.
impl Observer for () {
    const LISTENS: bool = false;
    #[inline(always)]
    fn see(&mut self, _: Instant, _: &Record) {}
}

/// Who lends an observer gets it back.
impl<O: Observer> Observer for &mut O {
    const LISTENS: bool = O::LISTENS;
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        O::see(self, at, record);
    }
}

/// Nobody or one observer looks, as decided when the run starts.
impl<O: Observer> Observer for Option<O> {
    const LISTENS: bool = O::LISTENS;
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        if let Some(observer) = self {
            observer.see(at, record);
        }
    }
}

/// Two observers look at the same run.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const LISTENS: bool = A::LISTENS || B::LISTENS;
    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.0.see(at, record);
        self.1.see(at, record);
    }
}
