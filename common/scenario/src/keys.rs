//! The language as tables: the keys of each kind of table, what their values are, and what the
//! schema says of them. The reader reads by them, and the schema is made of them.

use crate::object::{Card, Class, Family, Then};
use crate::quantity::Quantity;

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Time,
    Size,
    AmountOfTime,
    /// Time or cycles.
    AmountOfWork,
    Place,
    Policy,
    Rate,
    Percent,
    /// An object of one of these classes, perhaps with indexes.
    Object(&'static [Class]),
    /// A group that is no autogroup.
    Cgroup,
    Task,
    Span,
    Fragment,
    Pattern,
    When,
    Text,
    Flag,
    /// A flag, or an expression: a setting that is a switch.
    Switch,
    True,
    Words(&'static [&'static str]),
    Steps,
    /// Steps by names.
    NamedSteps,
    /// References to tasks by names.
    NamedTasks,
    /// Names of indexes and how many there are.
    Indexes,
    /// What a setting is by default, at least and at most.
    Value,
    /// The words that a setting may be.
    ListOfWords,
    /// Points of a curve.
    Points,
}

impl Kind {
    /// What an expression may count that is such a value.
    pub(crate) fn quantities(self) -> &'static [Quantity] {
        match self {
            Kind::Time | Kind::AmountOfTime => &[Quantity::Time],
            Kind::AmountOfWork => &[Quantity::Time, Quantity::Cycles],
            Kind::Size => &[Quantity::Size],
            _ => &[Quantity::Count],
        }
    }

    /// The classes of objects that it names.
    pub(crate) fn classes(self) -> &'static [Class] {
        match self {
            Kind::Object(classes) => classes,
            _ => &[Class::Group],
        }
    }
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it is, for people.
    pub(crate) what: &'static str,
    /// What to write where it is missing; none: it may be missing.
    pub(crate) missing: Option<&'static str>,
}

pub(crate) const fn may(name: &'static str, kind: Kind, what: &'static str) -> Key {
    Key {
        name,
        kind,
        what,
        missing: None,
    }
}

pub(crate) const fn must(
    name: &'static str,
    kind: Kind,
    what: &'static str,
    missing: &'static str,
) -> Key {
    Key {
        missing: Some(missing),
        ..may(name, kind, what)
    }
}

use Kind::*;

/// The key `name` of a table with these keys.
pub(crate) fn find<'k>(keys: &[&'k [Key]], name: &str) -> Option<&'k Key> {
    keys.iter().copied().flatten().find(|key| key.name == name)
}

/// Keys of all tables of objects and tasks.
#[rustfmt::skip]
pub(crate) const MANY: &[Key] = &[
    may("for", Indexes, "One for each combination of these indexes; the first is the slowest."),
    may("count", Count, "So many, without a name for their index."),
];

/// Keys of the objects of `class`, besides [`MANY`].
pub(crate) fn of_class(class: Class) -> &'static [Key] {
    match class {
        Class::Region => REGION,
        Class::Mutex | Class::Condition | Class::Futex | Class::Process => &[],
        Class::Spinlock => SPINLOCK,
        Class::Semaphore => SEMAPHORE,
        Class::Barrier => BARRIER,
        Class::Queue => QUEUE,
        Class::Pipe => PIPE,
        Class::Stream => STREAM,
        Class::Datagram => DATAGRAM,
        Class::Source => SOURCE,
        Class::Group => GROUP,
        Class::Timer => TIMER,
        Class::File => FILE,
    }
}

#[rustfmt::skip]
const REGION: &[Key] = &[must("bytes", Size, "Its size, at most 64 GB.", "write bytes = \"64KB\"")];

#[rustfmt::skip]
const SPINLOCK: &[Key] = &[
    may("per_cpu", Flag, "True if each CPU has one, and a task takes that of the CPU that it runs on."),
    may("pause", Time, "What a task computes between two looks; 38ns."),
    may("then", Words(&Then::WORDS), "What it does after so many looks in vain; it looks on (spin)."),
    may("spins", Count, "How many looks; 100."),
    may("delay", Time, "How long it sleeps first, with then = \"sleep\"; 1ms."),
    may("delay_most", Time, "How long it sleeps at most; 1s."),
];

#[rustfmt::skip]
const SEMAPHORE: &[Key] = &[may("initial", Count, "Its value at the start; 0.")];

#[rustfmt::skip]
const BARRIER: &[Key] = &[
    must("tasks", Count, "How many tasks it waits for.", "write how many tasks it waits for"),
];

#[rustfmt::skip]
const QUEUE: &[Key] = &[
    must("holds", Count, "How many items it holds.", "write how many items it holds"),
];

#[rustfmt::skip]
const PIPE: &[Key] = &[may("buffer", Size, "How many bytes it holds; 64KB.")];

#[rustfmt::skip]
const STREAM: &[Key] = &[
    may("family", Words(&Family::WORDS), "TCP over loopback (inet), or a pair of Unix sockets; inet."),
    may("buffer", Size, "Its receive buffer, of Unix sockets the send buffer; by default the kernel's own."),
    may("nagle", Switch, "True, or a setting that is, if short segments wait for one another: no TCP_NODELAY."),
];

#[rustfmt::skip]
const DATAGRAM: &[Key] = &[may("buffer", Size, "Its receive buffer; by default the kernel's own.")];

#[rustfmt::skip]
const GROUP: &[Key] = &[
    may("weight", Count, "From 1 to 10000; 100."),
    may("parent", Cgroup, "The group that it is in."),
    may("quota", Time, "CPU time in each period."),
    may("period", Time, "The period of the quota."),
    may("burst", Time, "How much of what periods leave unused is kept; 0."),
    may("idle", Flag, "True if its tasks run only where nobody else wants to."),
    may("cpus", Place, "The CPUs that its tasks may use."),
    may("autogroup", Flag, "True if it is a session, which the kernel groups by itself, not a cgroup."),
    may("nice", Count, "The nice value of an autogroup, from -20 to 19; 0."),
];

#[rustfmt::skip]
const TIMER: &[Key] = &[
    may("shared", Flag, "True if all tasks use one; by default each task has its own."),
    may("mode", Words(&["relative", "absolute"]), "Whether a period that was missed moves the next ones."),
];

#[rustfmt::skip]
const FILE: &[Key] = &[must("path", Text, "Its path.", "write path = \"/dev/null\"")];

#[rustfmt::skip]
const SOURCE: &[Key] = &[
    must("to", Object(&[Class::Datagram]), "The datagram socket that it sends to.",
         "name the datagram socket it sends to"),
    must("bytes", Size, "The payload of a datagram.", "write the payload: bytes = \"64B\""),
    may("rate", Rate, "How many datagrams, at even distances."),
    may("every", AmountOfTime, "The time between two bursts."),
    may("gaps", Text, "The times between bursts in turn, as in \"1ms 20us\"."),
    may("burst", Count, "How many datagrams at a time; 1."),
    may("on", Time, "For how long it sends."),
    may("off", Time, "For how long it pauses then."),
    may("ramp_to", Rate, "The rate that it reaches linearly."),
    may("over", Time, "In what time it reaches it."),
    may("start", Time, "When it starts; at once."),
    may("end", Time, "When it ends; never."),
    may("packets", Count, "After how many datagrams it ends."),
    may("cpu", Place, "On which CPUs its datagrams arrive."),
    may("card", Words(&Card::WORDS), "The model of its network card, in the lab."),
    may("echo", Flag, "Whether it measures how long answers take."),
    may("span", Text, "The latency span that it measures."),
];

/// Keys of a task, besides [`MANY`].
#[rustfmt::skip]
pub(crate) const TASK: &[Key] = &[
    may("process", Object(&[Class::Process]), "Its address space; its own."),
    may("group", Object(&[Class::Group]), "Its cgroup or autogroup; the root's."),
    may("start", AmountOfTime, "When it starts; at once."),
    may("every", AmountOfTime, "How long after the last round began the next one begins."),
    may("name", Text, "What the kernel calls it, at most 15 bytes."),
    may("spawned", Flag, "True if only a step starts it."),
    may("background", Flag, "True if a run ends without it once all others have ended."),
    may("nice", Count, "Its nice value, from -20 to 19."),
    may("policy", Policy, "Its scheduling policy."),
    may("slice", Time, "The slice that it asks for."),
    may("uclamp_min", Count, "As what utilization it counts at least, from 0 to 1024."),
    may("uclamp_max", Count, "As what utilization it counts at most, from 0 to 1024."),
    may("cpus", Place, "The CPUs that it may use."),
    may("fragment", Count, "The data that it names before it starts."),
    may("end", Time, "When it is stopped."),
    may("times", Count, "Rounds of the body; without end."),
    may("setup", Steps, "What it does once before the first round."),
    must("body", Steps, "What it does in each round.",
         "write what the task does: body = [{ run = \"10ms\" }]"),
];

/// The condition that any step may have.
#[rustfmt::skip]
pub(crate) const WHEN: &[Key] = &[
    may("when", When, "A setting that is a word and the word with which the step is done."),
];

/// What a change may be of: the key, its value, and the keys of `set`.
#[rustfmt::skip]
pub(crate) const TARGETS: &[(Key, &[Key])] = &[
    (may("task", Task, "The tasks that change: one, or all of a table."), &[
        may("cpus", Place, "The CPUs that they may use."),
        may("nice", Count, "Their nice value."),
        may("policy", Policy, "Their policy."),
        may("slice", Time, "Their slice."),
        may("uclamp_min", Count, "As what utilization they count at least."),
        may("uclamp_max", Count, "As what utilization they count at most."),
        may("group", Cgroup, "Their cgroup."),
        may("fragment", Fragment, "The data that they use."),
        may("stop", True, "They are stopped."),
        may("continue", True, "They go on."),
    ]),
    (may("group", Object(&[Class::Group]), "The groups that change: one, or all of a table."), &[
        may("weight", Count, "Their weight."),
        may("nice", Count, "The nice value of autogroups."),
        may("quota", Time, "Their CPU time in each period."),
        may("burst", Time, "How much of what periods leave unused they keep."),
        may("idle", Flag, "Whether they are idle."),
        may("cpus", Place, "The CPUs that their tasks may use."),
        may("freeze", True, "They are frozen."),
        may("thaw", True, "They are thawed."),
    ]),
    (may("cpu", Place, "The CPUs that change."), &[
        may("online", Flag, "Whether they are online."),
    ]),
    (may("source", Object(&[Class::Source]), "The sources that change: one, or all of a table."), &[
        may("cpu", Place, "On which CPUs their datagrams arrive."),
        may("rate", Rate, "How many datagrams, at even distances."),
        may("stop", True, "They send no more."),
        may("continue", True, "They send again."),
    ]),
];

#[rustfmt::skip]
pub(crate) const PHASE: &[Key] = &[
    must("name", Text, "What it is called.", "say in a word what the phase is"),
    must("at", Time, "When it begins.", "write when it begins: at = \"1s\""),
];
