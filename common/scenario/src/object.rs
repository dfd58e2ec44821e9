//! What there is: memory, locks, connections, groups.

use std::sync::Arc;

use warmq_units::Duration;

use crate::amount::Amount;
use crate::expr::{Expr, Spot};
use crate::place::Place;
use crate::program::SpinCounters;
use crate::step::{Reference, SpanId};

/// A table of objects, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// One object, or as many as the product of its dimensions; the first index is the slowest.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// How many there are along each index, by settings alone; empty for a single one.
    pub dimensions: Vec<Expr>,
    /// What it is.
    pub kind: ObjectKind,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

/// What an object is.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few sources")]
pub enum ObjectKind {
    /// Memory.
    Region {
        /// Its size.
        bytes: Expr,
    },
    /// A mutex of user space.
    Mutex,
    /// A spin lock of user space.
    Spinlock(Spinlock),
    /// A condition variable.
    Condition,
    /// A futex: a word that never changes, in which tasks wait and others wake them.
    Futex,
    /// A SysV semaphore. Those that differ in the last index only are one set.
    Semaphore {
        /// Its value at the start.
        initial: Expr,
    },
    /// A barrier, which opens when `tasks` wait.
    Barrier {
        /// How many tasks it waits for.
        tasks: Expr,
    },
    /// A bounded queue in memory: a mutex and two conditions.
    Queue {
        /// How many items it holds.
        holds: Expr,
    },
    /// A pipe.
    Pipe {
        /// How many bytes it holds.
        buffer: Expr,
    },
    /// Two connected ends.
    Stream {
        /// What connects them.
        family: Family,
        /// The receive buffer of each end, of Unix sockets the send buffer; none: the kernel's own.
        buffer: Option<Expr>,
        /// Unless it is 0, short segments wait for one another, as without `TCP_NODELAY`.
        nagle: Expr,
    },
    /// A UDP socket.
    Datagram {
        /// Its receive buffer; none: the kernel's own.
        buffer: Option<Expr>,
    },
    /// Sends datagrams from outside the machine.
    Source(Source),
    /// A cgroup.
    Group {
        /// Its weight; 100 is the usual.
        weight: Expr,
        /// The group it is in.
        parent: Option<Reference>,
        /// CPU time in each period, and the period.
        quota: Option<(Expr, Expr)>,
        /// How much CPU time that periods left unused is kept.
        burst: Option<Expr>,
        /// Whether all that is in it runs only where nobody else wants to.
        idle: bool,
        /// The CPUs that its tasks may use.
        cpus: Option<Place>,
    },
    /// The processes of one session, which the kernel groups by itself (CONFIG_SCHED_AUTOGROUP);
    /// also a table `group`.
    Autogroup {
        /// The nice value of the whole group, which its weight follows from.
        nice: Expr,
    },
    /// An address space.
    Process,
    /// A timer.
    ///
    /// It expires one period after it expired last; before the first time, after the task that
    /// uses it began its first round. Who comes too late does not sleep.
    Timer {
        /// True if all tasks use the same one; else each task has its own.
        shared: bool,
        /// True if it expires next one period after it *should* have expired last; else, where a
        /// task came too late, one period after that.
        absolute: bool,
    },
    /// A file or a device that is written to.
    File {
        /// Its path.
        path: String,
    },
}

warmq_units::named! {
    /// What connects the ends of a stream.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Family {
        /// TCP over loopback (AF_INET).
        Inet = "inet",
        /// A pair of Unix sockets (AF_UNIX).
        Unix = "unix",
    }
}

/// A spin lock of user space: who finds it held looks at it again and again, and may be preempted
/// meanwhile, as its holder may be.
#[derive(Clone, Debug)]
pub struct Spinlock {
    /// Whether there is one for each CPU: a task takes that of the CPU that it runs on.
    pub per_cpu: bool,
    /// What a task computes between two looks.
    pub pause: Expr,
    /// What it does when it has looked so often in vain.
    pub then: Then,
    /// What counts how it goes, of all locks of the table.
    pub counters: SpinCounters,
}

/// What a task does that finds a spin lock held.
#[derive(Clone, Debug)]
pub enum Then {
    /// It looks until the lock is free.
    Spin,
    /// After so many looks it gives its CPU away, and looks again.
    Yield(Expr),
    /// After so many looks it sleeps, and looks again.
    Sleep {
        /// How many looks.
        spins: Expr,
        /// How long it sleeps the first time; longer each time.
        delay: Expr,
        /// A sleep that would be longer than this is as short as the first one.
        most: Expr,
    },
    /// After so many looks it waits in the lock's futex, in which an unlock wakes one.
    Futex(Expr),
}

impl Then {
    /// The words for these.
    pub(crate) const WORDS: [&'static str; 4] = ["spin", "yield", "sleep", "futex"];
}

/// A sender outside the machine.
#[derive(Clone, Debug)]
pub struct Source {
    /// The socket that it sends to.
    pub to: Reference,
    /// The payload of a datagram.
    pub bytes: Expr,
    /// When datagrams arrive.
    pub arrivals: Arrivals,
    /// How many datagrams arrive at a time.
    pub burst: Expr,
    /// For how long it sends, and for how long it pauses then.
    pub on_off: Option<(Expr, Expr)>,
    /// The rate that it reaches linearly, and in what time.
    pub ramp: Option<(Rate, Expr)>,
    /// When it starts; none: at once.
    pub start: Option<Expr>,
    /// When it ends; none: never.
    pub end: Option<Expr>,
    /// After how many datagrams it ends.
    pub packets: Option<Expr>,
    /// On which CPUs its datagrams arrive: in the lab those that take the card's interrupts, in
    /// real worlds those that the sending thread may use.
    pub cpu: Option<Place>,
    /// The model of the card through which its datagrams come, in the lab; none: one that
    /// interrupts for each packet that finds it idle.
    pub card: Option<Card>,
    /// The latency span from a datagram to its answer ([`Action::Reply`](crate::Action::Reply)),
    /// as the source measures it. [`Bound::echo_number`](crate::Bound::echo_number) numbers them.
    pub echo: Option<SpanId>,
}

warmq_units::named! {
    /// The models of network cards, by their names, which are those in the lab, too. The lab says
    /// what each does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[allow(missing_docs, reason = "the lab says what each is")]
    pub enum Card {
        Bcm5752 = "bcm5752",
        IntelE100 = "intel-e100",
        MultiQueue = "multi-queue",
        PerPacket = "per-packet",
    }
}

/// When a source sends.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// At even distances.
    Rate(Rate),
    /// After a time that is drawn for each burst.
    Every(Amount),
    /// After these times in turn, again and again; one of them at least is more than zero.
    Listed(Arc<[Duration]>),
}

/// So many in a span of time: `5000 per s`.
#[derive(Clone, Debug)]
pub struct Rate {
    /// How many.
    pub count: Expr,
    /// In what time.
    pub per: Duration,
}

warmq_units::named! {
    /// The classes of objects, one for each kind of table, by its key and in the order of the
    /// documentation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "ObjectKind says what each is")]
    pub enum Class {
        Region = "region",
        Mutex = "mutex",
        Spinlock = "spinlock",
        Condition = "condition",
        Futex = "futex",
        Semaphore = "semaphore",
        Barrier = "barrier",
        Queue = "queue",
        Pipe = "pipe",
        Stream = "stream",
        Datagram = "datagram",
        Source = "source",
        Group = "group",
        Process = "process",
        Timer = "timer",
        File = "file",
    }
}

impl ObjectKind {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            ObjectKind::Region { .. } => Class::Region,
            ObjectKind::Mutex => Class::Mutex,
            ObjectKind::Spinlock(_) => Class::Spinlock,
            ObjectKind::Condition => Class::Condition,
            ObjectKind::Futex => Class::Futex,
            ObjectKind::Semaphore { .. } => Class::Semaphore,
            ObjectKind::Barrier { .. } => Class::Barrier,
            ObjectKind::Queue { .. } => Class::Queue,
            ObjectKind::Pipe { .. } => Class::Pipe,
            ObjectKind::Stream { .. } => Class::Stream,
            ObjectKind::Datagram { .. } => Class::Datagram,
            ObjectKind::Source(_) => Class::Source,
            ObjectKind::Group { .. } | ObjectKind::Autogroup { .. } => Class::Group,
            ObjectKind::Process => Class::Process,
            ObjectKind::Timer { .. } => Class::Timer,
            ObjectKind::File { .. } => Class::File,
        }
    }
}
