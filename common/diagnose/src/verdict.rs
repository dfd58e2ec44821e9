//! What a diagnosis comes to.

use serde::Serialize;
use warmq_units::Instant;

use crate::{About, Cure};

warmq_units::named! {
    /// Why somebody waited, by the names that JSON has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        /// A quota of its group held it back, though the group used less than that.
        QuotaStranded = "quota-stranded",
        /// A quota of its group held it back.
        Quota = "quota",
        /// It has used up what SCHED_DEADLINE reserves for it.
        Reservation = "reservation",
        /// A hypervisor had the CPU.
        Steal = "steal",
        /// Real-time tasks or threads of the kernel had the CPU.
        Realtime = "realtime",
        /// Interrupts and softirqs had the CPU.
        Interrupts = "interrupts",
        /// It may not use CPUs that idled.
        Affinity = "affinity",
        /// A CPU idled that it may use.
        IdleBeside = "idle-beside",
        /// It waited beside a group whose tasks are woken often: the fault of Linux 6.13 to 7.0.
        GroupStarved = "group-starved",
        /// A task that sleeps often takes the CPU whenever it is woken.
        SleeperPreempts = "sleeper-preempts",
        /// A group of much weight runs beside it.
        Outweighed = "outweighed",
        /// Its nice value does not count against another group.
        NiceWithoutEffect = "nice-without-effect",
        /// It has the least weight, and got what that is worth.
        LeastWeight = "least-weight",
        /// There are more tasks than the CPUs can serve at once.
        TooMany = "too-many",
        /// It is woken often, and asks for a slice that is too long for that.
        SlicesLong = "slices-long",
        /// Others ask for very short slices, and it is switched away all the time.
        SlicesShort = "slices-short",
        /// It is woken often, and waits for longer than it runs.
        Latency = "latency",
        /// It moves between caches, away from whom it wakes.
        Moves = "moves",
        /// It starved, and no rule says why.
        Unexplained = "unexplained",
    }
}

impl Kind {
    /// Whether it says who or what is to blame, so that a short time may show it.
    pub(crate) fn blames(self) -> bool {
        match self {
            Kind::QuotaStranded | Kind::Quota | Kind::Reservation => true,
            Kind::Steal | Kind::Realtime | Kind::Interrupts => true,
            Kind::Affinity | Kind::IdleBeside => true,
            Kind::GroupStarved | Kind::SleeperPreempts => true,
            Kind::Outweighed | Kind::NiceWithoutEffect | Kind::LeastWeight | Kind::TooMany => false,
            Kind::SlicesLong | Kind::SlicesShort | Kind::Latency => false,
            Kind::Moves | Kind::Unexplained => false,
        }
    }

    /// What it is about, in some words.
    pub fn title(self) -> &'static str {
        match self {
            Kind::QuotaStranded => "held back by a quota that is not used up",
            Kind::Quota => "held back by a quota",
            Kind::Reservation => "its runtime of SCHED_DEADLINE is used up",
            Kind::Steal => "the hypervisor took its CPU",
            Kind::Realtime => "real-time or kernel threads had the CPU",
            Kind::Interrupts => "interrupts and softirqs had the CPU",
            Kind::Affinity => "its affinity is too narrow",
            Kind::IdleBeside => "it waited beside an idle CPU",
            Kind::GroupStarved => "starved by another group whose tasks are woken often",
            Kind::SleeperPreempts => "a task that sleeps often takes the CPU at its wakeups",
            Kind::Outweighed => "a group of much weight runs beside it",
            Kind::NiceWithoutEffect => "nice has no effect between groups",
            Kind::LeastWeight => "it has the least weight",
            Kind::TooMany => "too many tasks for the CPUs",
            Kind::SlicesLong => "its slice is too long for its wakeups",
            Kind::SlicesShort => "others have very short slices",
            Kind::Latency => "woken often, and late each time",
            Kind::Moves => "it moves between caches, away from its partner",
            Kind::Unexplained => "starved, and no rule says why",
        }
    }
}

/// Why some tasks waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The kind.
    pub kind: Kind,
    /// Whom it is about; whoever waited longest comes first.
    pub tasks: Vec<About>,
    /// What happened, in a sentence.
    pub says: String,
    /// Why the rule takes it for that.
    pub because: String,
    /// What helps, the surest first.
    pub cures: Vec<Cure>,
    /// The kernels of which that is true.
    pub kernels: &'static str,
    /// Of the first task, from when to when it waited longest, in ns.
    pub longest_ns: (u64, u64),
    /// From when to when it was so, in ns: the time that was looked at, or a part that its average
    /// hides.
    pub when_ns: (u64, u64),
    /// How many such parts there were of the first task, of which this is the worst; 0 where it is
    /// the whole time.
    pub bursts: u64,
}

/// What a rule found of one task.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Findings of a rule that have the same cause become one verdict.
    pub cause: String,
    pub says: String,
    pub because: String,
    pub cures: Vec<Cure>,
}

pub(crate) fn ns((from, to): (Instant, Instant)) -> (u64, u64) {
    let ns = |at: Instant| at.since(Instant::START).as_ns();
    (ns(from), ns(to))
}
