//! The operations that a program can ask the kernel for.

use std::rc::Rc;

use warmq_machine::Access;
use warmq_units::{Bytes, CpuSet, Cycles, Duration};

use crate::words::{BoxedProgram, Change, Handle, Origin, SenderSlot, Span, SpanEdge, TaskSpec};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl Handle for $name {
            fn of(index: usize) -> $name {
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

handles! {
    /// One end of a stream connection.
    Socket;
    /// A socket that listens for connections.
    Listener;
    /// A mutex of user space.
    Mutex;
    /// A spin lock of user space.
    Spinlock;
    /// A condition variable, or a futex that tasks wait in.
    Condition;
    /// A barrier.
    Barrier;
    /// A SysV semaphore.
    Semaphore;
    /// A region of simulated memory, made of physical pages.
    Region;
    /// An address space. Its tasks share memory, and switches between them are cheap.
    Mm;
    /// A network card.
    Nic;
    /// A peer on another machine: a client that costs this machine no CPU time of its own.
    Remote;
}

impl Mm {
    /// The address space as an index into a table with one entry per address space.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A name for data that a program uses: fragment `number` of application `app`, both of the
/// program's choice. Tasks that use the same data name the same fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment {
    /// The application.
    pub app: u32,
    /// The fragment within it.
    pub number: u32,
}

/// Accesses to `lines` lines of a region: line `first`, then each `stride` lines further on,
/// wrapping around at the region's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The memory.
    pub region: Region,
    /// The first line, counted from the region's start.
    pub first: u64,
    /// How many lines.
    pub lines: u64,
    /// Lines from one access to the next; 1 is sequential, an odd number scatters.
    pub stride: u64,
    /// Read or write.
    pub access: Access,
    /// Work on each line besides the access itself.
    pub work: Cycles,
}

impl Touch {
    /// Reads `lines` lines in sequence from line `first`.
    pub fn read(region: Region, first: u64, lines: u64) -> Touch {
        Touch {
            region,
            first,
            lines,
            stride: 1,
            access: Access::Read,
            work: Cycles(0),
        }
    }

    /// The same accesses as writes.
    pub fn writing(self) -> Touch {
        Touch {
            access: Access::Write,
            ..self
        }
    }

    /// The same accesses `stride` lines apart.
    pub fn stride(self, stride: u64) -> Touch {
        Touch { stride, ..self }
    }

    /// The same accesses with `work` on each line.
    pub fn working(self, work: Cycles) -> Touch {
        Touch { work, ..self }
    }
}

/// Looks at a spin lock of user space, until it is free or there were enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) lock: Spinlock,
    /// Looks after this one.
    pub(crate) left: u64,
    /// Looks of the bout that goes on, which `left` has not.
    pub(crate) bout: u64,
    /// What the task computes before each of these.
    pub(crate) pause: Duration,
    /// Whoever releases the lock is to wake one that sleeps in it.
    pub(crate) marks: bool,
}

/// How looks at a spin lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Whether it was taken.
    pub taken: bool,
    /// How many of the looks were left.
    pub left: u64,
}

impl Looked {
    /// The most looks that can be asked for.
    pub const MOST: u64 = u64::MAX >> 1;

    pub(crate) fn to_answer(self) -> u64 {
        self.left << 1 | u64::from(self.taken)
    }

    pub(crate) fn of_answer(answer: u64) -> Looked {
        Looked {
            taken: answer & 1 == 1,
            left: answer >> 1,
        }
    }
}

/// A task to be made.
pub(crate) struct NewTask {
    pub(crate) spec: TaskSpec,
    pub(crate) program: BoxedProgram,
}

/// A system call, or computation. It is handed over at each of them, so what is large and rare is
/// elsewhere.
pub(crate) enum Operation {
    Compute(Cycles),
    /// Computes for as long as it takes a CPU that does nothing else.
    ComputeFor(Duration),
    /// Reads the clock, at no cost.
    Now,
    /// Reads how long the task has run, at no cost.
    Ran,
    /// Reads on which CPU the task runs, at no cost.
    Cpu,
    /// Records that a span begins or ends, at no cost.
    Span {
        span: Span,
        edge: SpanEdge,
    },
    /// Ends the run: the program cannot go on as it is written.
    GiveUp(Rc<str>),
    /// Ends the run: the program does one thing after another that takes no time.
    NoProgress,
    Touch(Touch),
    Sleep(Duration),
    Yield,
    Send {
        socket: Socket,
        left: Bytes,
    },
    Receive {
        socket: Socket,
        at_most: Bytes,
    },
    SendDatagram {
        socket: Socket,
        bytes: Bytes,
    },
    ReceiveDatagram {
        socket: Socket,
        /// Where to put the sender, if anybody wants to know.
        from: Option<SenderSlot>,
    },
    /// Answers a datagram of a remote peer, which came to `socket`.
    Answer {
        socket: Socket,
        to: Origin,
        bytes: Bytes,
    },
    Close(Socket),
    Accept(Listener),
    Lock(Mutex),
    Unlock(Mutex),
    Look(Look),
    ReleaseSpinlock(Spinlock),
    SleepInSpinlock(Spinlock),
    WakeInSpinlock(Spinlock),
    /// Raises or lowers a SysV semaphore by one.
    Semop {
        semaphore: Semaphore,
        up: bool,
    },
    /// Waits until it is notified, or a time is over. The mutex is unlocked meanwhile.
    Wait {
        condition: Condition,
        mutex: Option<Mutex>,
        timeout: Option<Duration>,
    },
    Notify {
        condition: Condition,
        all: bool,
    },
    Meet(Barrier),
    Spawn(Box<NewTask>),
    Change(Change),
    SetFragment(Option<Fragment>),
}

/// The operations of a remote peer.
pub(crate) enum RemoteOperation {
    Pause(Duration),
    Connect {
        listener: Listener,
        nic: Nic,
    },
    Send {
        socket: Socket,
        bytes: Bytes,
    },
    SendDatagram {
        socket: Socket,
        nic: Nic,
        bytes: Bytes,
        /// Which of the peer's datagrams, if it is one whose answer is waited for.
        number: Option<u64>,
    },
    /// Says which CPUs take the interrupts of a card.
    Steer {
        nic: Nic,
        cpus: CpuSet,
    },
    Receive {
        socket: Socket,
        bytes: Bytes,
    },
    Close(Socket),
}
