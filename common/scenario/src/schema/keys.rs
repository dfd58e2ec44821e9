//! The keys of each table, with what their values are. A test asks the reader whether it knows the
//! same ones.

use crate::object::Class;

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// An object, a task or a span, perhaps with indexes.
    Reference,
    Fragment,
    Pattern,
    When,
    Text,
    Flag,
    True,
    Words(&'static [&'static str]),
    Steps,
    /// Steps by names.
    NamedSteps,
    /// References by names.
    NamedReferences,
    /// Names of indexes and how many there are.
    Indexes,
    /// What a setting is by default, at least and at most.
    Value,
    /// The words that a setting may be.
    ListOfWords,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    pub(super) what: &'static str,
}

const fn may(name: &'static str, kind: Kind, what: &'static str) -> Key {
    Key {
        name,
        kind,
        required: false,
        what,
    }
}

const fn must(name: &'static str, kind: Kind, what: &'static str) -> Key {
    Key {
        required: true,
        ..may(name, kind, what)
    }
}

pub(super) const TOP: &[Key] = &[
    may("title", Kind::Text, "What it is, in a line."),
    may("about", Kind::Text, "What it is, in sentences."),
    may(
        "work",
        Kind::Text,
        "The counter that is the work done; by default `rounds`.",
    ),
    may(
        "order",
        Kind::Words(&["listed", "random"]),
        "In which order tasks start that start at the same time.",
    ),
];

pub(super) const SETTING: &[Key] = &[
    may("least", Kind::Value, "The least value allowed."),
    may("most", Kind::Value, "The greatest value allowed."),
    may("choices", Kind::ListOfWords, "The words allowed."),
    must("default", Kind::Value, "The value where none is chosen."),
    may("what", Kind::Text, "What it does, in a sentence."),
    may("source", Kind::Text, "Where the default comes from."),
];

/// Keys of all tables of objects and tasks.
pub(super) const MANY: &[Key] = &[
    may(
        "for",
        Kind::Indexes,
        "One for each combination of these indexes; the first is the slowest.",
    ),
    may(
        "count",
        Kind::Count,
        "So many, without a name for their index.",
    ),
];

/// By class, the keys of its tables besides [`MANY`].
const CLASSES: &[(&[Class], &[Key])] = &[
    (
        &[Class::Region],
        &[must("bytes", Kind::Size, "Its size, at most 64 GB.")],
    ),
    (&[Class::Mutex, Class::Condition, Class::Process], &[]),
    (
        &[Class::Semaphore],
        &[may("initial", Kind::Count, "Its value at the start; 0.")],
    ),
    (
        &[Class::Barrier],
        &[must("tasks", Kind::Count, "How many tasks it waits for.")],
    ),
    (
        &[Class::Queue],
        &[must("holds", Kind::Count, "How many items it holds.")],
    ),
    (
        &[Class::Pipe],
        &[may("buffer", Kind::Size, "How many bytes it holds; 64KB.")],
    ),
    (
        &[Class::Stream],
        &[
            RECEIVE_BUFFER,
            may(
                "nagle",
                Kind::Flag,
                "True if short segments wait for one another: no TCP_NODELAY.",
            ),
        ],
    ),
    (&[Class::Datagram], &[RECEIVE_BUFFER]),
    (&[Class::Source], SOURCE),
    (
        &[Class::Group],
        &[
            may("weight", Kind::Count, "From 1 to 10000; 100."),
            may("parent", Kind::Reference, "The group that it is in."),
            may("quota", Kind::Time, "CPU time in each period."),
            may("period", Kind::Time, "The period of the quota."),
            may(
                "burst",
                Kind::Time,
                "How much of what periods leave unused is kept; 0.",
            ),
            may(
                "idle",
                Kind::Flag,
                "True if its tasks run only where nobody else wants to.",
            ),
            may("cpus", Kind::Place, "The CPUs that its tasks may use."),
            may(
                "autogroup",
                Kind::Flag,
                "True if it is a session, which the kernel groups by itself, not a cgroup.",
            ),
            may(
                "nice",
                Kind::Count,
                "The nice value of an autogroup, from -20 to 19; 0.",
            ),
        ],
    ),
    (
        &[Class::Timer],
        &[
            may(
                "shared",
                Kind::Flag,
                "True if all tasks use one; by default each task has its own.",
            ),
            may(
                "mode",
                Kind::Words(&["relative", "absolute"]),
                "Whether a period that was missed moves the next ones.",
            ),
        ],
    ),
    (&[Class::File], &[must("path", Kind::Text, "Its path.")]),
];

/// Keys of the objects of `class`, besides [`MANY`].
pub(super) fn of_class(class: Class) -> &'static [Key] {
    let found = CLASSES.iter().find(|(classes, _)| classes.contains(&class));
    found.map_or(&[], |(_, keys)| keys)
}

const RECEIVE_BUFFER: Key = may(
    "buffer",
    Kind::Size,
    "Its receive buffer; by default the kernel's own.",
);

const SOURCE: &[Key] = &[
    must(
        "to",
        Kind::Reference,
        "The datagram socket that it sends to.",
    ),
    must("bytes", Kind::Size, "The payload of a datagram."),
    may("rate", Kind::Rate, "How many datagrams, at even distances."),
    may("every", Kind::AmountOfTime, "The time between two bursts."),
    may(
        "gaps",
        Kind::Text,
        "The times between bursts in turn, as in \"1ms 20us\".",
    ),
    may("burst", Kind::Count, "How many datagrams at a time; 1."),
    may("on", Kind::Time, "For how long it sends."),
    may("off", Kind::Time, "For how long it pauses then."),
    may("ramp_to", Kind::Rate, "The rate that it reaches linearly."),
    may("over", Kind::Time, "In what time it reaches it."),
    may("start", Kind::Time, "When it starts; at once."),
    may("end", Kind::Time, "When it ends; never."),
    may("packets", Kind::Count, "After how many datagrams it ends."),
    may("cpu", Kind::Place, "On which CPUs its datagrams arrive."),
    may(
        "card",
        Kind::Words(&["bcm5752", "intel-e100", "multi-queue", "per-packet"]),
        "The model of its network card, in the lab.",
    ),
    may(
        "echo",
        Kind::Flag,
        "Whether it measures how long answers take.",
    ),
    may("span", Kind::Text, "The latency span that it measures."),
];

/// Keys of a task, besides [`MANY`].
pub(super) const TASK: &[Key] = &[
    may("process", Kind::Reference, "Its address space; its own."),
    may(
        "group",
        Kind::Reference,
        "Its cgroup or autogroup; the root's.",
    ),
    may("start", Kind::AmountOfTime, "When it starts; at once."),
    may(
        "every",
        Kind::AmountOfTime,
        "How long after the last round began the next one begins.",
    ),
    may(
        "name",
        Kind::Text,
        "What the kernel calls it, at most 15 bytes.",
    ),
    may("spawned", Kind::Flag, "True if only a step starts it."),
    may(
        "background",
        Kind::Flag,
        "True if a run ends without it once all others have ended.",
    ),
    may("nice", Kind::Count, "Its nice value, from -20 to 19."),
    may("policy", Kind::Policy, "Its scheduling policy."),
    may("slice", Kind::Time, "The slice that it asks for."),
    may("cpus", Kind::Place, "The CPUs that it may use."),
    may(
        "fragment",
        Kind::Count,
        "The data that it names before it starts.",
    ),
    may("end", Kind::Time, "When it is stopped."),
    may("times", Kind::Count, "Rounds of the body; without end."),
    may(
        "setup",
        Kind::Steps,
        "What it does once before the first round.",
    ),
    must("body", Kind::Steps, "What it does in each round."),
];

const BYTES: Key = must("bytes", Kind::Size, "How much.");

/// A verb, its value, what the step does, and its other keys besides [`WHEN`].
type OfVerb = (&'static str, Kind, &'static str, &'static [Key]);

const VERBS: &[OfVerb] = &[
    (
        "run",
        Kind::AmountOfWork,
        "Computes, for a time that a free CPU needs.",
        &[],
    ),
    (
        "spin",
        Kind::AmountOfTime,
        "Computes until so much time has passed.",
        &[],
    ),
    ("touch", Kind::Reference, "Accesses memory.", TOUCH),
    ("sleep", Kind::AmountOfTime, "Sleeps.", &[]),
    (
        "timer",
        Kind::Reference,
        "Sleeps until the timer expires.",
        &[must(
            "period",
            Kind::AmountOfTime,
            "How long after it expired last.",
        )],
    ),
    ("lock", Kind::Reference, "Locks a mutex.", &[]),
    ("unlock", Kind::Reference, "Unlocks a mutex.", &[]),
    (
        "wait",
        Kind::Reference,
        "Waits for a condition.",
        &[must(
            "mutex",
            Kind::Reference,
            "The mutex that is unlocked meanwhile.",
        )],
    ),
    (
        "signal",
        Kind::Reference,
        "Wakes who waits for a condition.",
        &[may("all", Kind::Flag, "Everyone, not only one.")],
    ),
    ("raise", Kind::Reference, "Adds one to a semaphore.", &[]),
    ("lower", Kind::Reference, "Takes one from a semaphore.", &[]),
    ("barrier", Kind::Reference, "Waits at a barrier.", &[]),
    ("put", Kind::Reference, "Puts an item into a queue.", &[]),
    (
        "take",
        Kind::Reference,
        "Takes an item out of a queue.",
        &[],
    ),
    (
        "send",
        Kind::Reference,
        "Sends to a stream's end, a pipe or a datagram socket.",
        &[BYTES],
    ),
    (
        "reply",
        Kind::Reference,
        "Answers the last datagram received on a socket.",
        &[BYTES],
    ),
    (
        "receive",
        Kind::Reference,
        "Receives from a stream's end, a pipe or a datagram socket.",
        &[may(
            "bytes",
            Kind::Size,
            "Exactly so much; of a datagram socket one datagram.",
        )],
    ),
    ("write", Kind::Reference, "Writes to a file.", &[BYTES]),
    ("spawn", Kind::Reference, "Starts a thread.", &[]),
    ("fork", Kind::Reference, "Starts a process.", &[]),
    ("exit", Kind::True, "Ends the task.", &[]),
    ("yield", Kind::True, "Gives the CPU away.", &[]),
    (
        "fragment",
        Kind::Fragment,
        "Names the data that the task is about to use.",
        &[],
    ),
    ("nice", Kind::Count, "Sets the task's own nice value.", &[]),
    (
        "cpus",
        Kind::Place,
        "Sets the CPUs that the task may use.",
        &[],
    ),
    ("policy", Kind::Policy, "Sets the task's own policy.", &[]),
    ("slice", Kind::Time, "Sets the task's own slice.", &[]),
    ("group", Kind::Reference, "Moves the task to a cgroup.", &[]),
    ("begin", Kind::Reference, "Begins a latency span.", &[]),
    ("end", Kind::Reference, "Ends a latency span.", &[]),
    (
        "count",
        Kind::Text,
        "Adds to a counter.",
        &[may("by", Kind::Count, "How much; 1.")],
    ),
    (
        "recorded",
        Kind::Text,
        "Does what a task was seen to do: words that are times to compute (12us), sleeps (~1ms, @10ms), \
         names of steps, and parts that the message of a sender begins (wait<a).",
        &[
            may("steps", Kind::NamedSteps, "The steps, by their names."),
            may(
                "senders",
                Kind::NamedReferences,
                "The tasks whose messages begin parts, by the names that words have for them.",
            ),
        ],
    ),
    (
        "repeat",
        Kind::Count,
        "Does its body so many times.",
        &[
            may(
                "as",
                Kind::Text,
                "An index of the body, which counts from 0.",
            ),
            must("body", Kind::Steps, "What is repeated."),
        ],
    ),
    (
        "each",
        Kind::Text,
        "Does its body for each value of an index.",
        &[
            must("of", Kind::Count, "How many values there are."),
            may("except", Kind::Count, "A value that is left out."),
            must("body", Kind::Steps, "What is repeated."),
        ],
    ),
];

/// A verb's value, what the step does, and its other keys besides [`WHEN`].
pub(super) fn of_verb(verb: &str) -> Option<(Kind, &'static str, &'static [Key])> {
    let (_, kind, what, keys) = VERBS.iter().find(|(name, ..)| *name == verb)?;
    Some((*kind, what, keys))
}

const TOUCH: &[Key] = &[
    may(
        "lines",
        Kind::Count,
        "How many lines; by default all of the region.",
    ),
    may(
        "bytes",
        Kind::Size,
        "How many bytes; by default all of the region.",
    ),
    may("first", Kind::Count, "The first line; 0."),
    may("pattern", Kind::Pattern, "In which order."),
    may("write", Kind::Percent, "The part that writes; 0%."),
];

/// The condition that any step may have.
pub(super) const WHEN: Key = may(
    "when",
    Kind::When,
    "A setting that is a word and the word with which the step is done.",
);

pub(super) const AT: &[Key] = &[
    may("at", Kind::Time, "When, once."),
    may("every", Kind::Time, "How long after one another."),
    may("start", Kind::Time, "The first time; after one period."),
    may("end", Kind::Time, "When it ends; never."),
];

/// What a change may be of: the key, its value, and the keys of `set`.
pub(super) const TARGETS: &[(Key, &[Key])] = &[
    (
        must(
            "task",
            Kind::Reference,
            "The tasks that change: one, or all of a table.",
        ),
        &[
            may("cpus", Kind::Place, "The CPUs that they may use."),
            may("nice", Kind::Count, "Their nice value."),
            may("policy", Kind::Policy, "Their policy."),
            may("slice", Kind::Time, "Their slice."),
            may("group", Kind::Reference, "Their cgroup."),
            may("fragment", Kind::Fragment, "The data that they use."),
            may("stop", Kind::True, "They are stopped."),
            may("continue", Kind::True, "They go on."),
        ],
    ),
    (
        must(
            "group",
            Kind::Reference,
            "The groups that change: one, or all of a table.",
        ),
        &[
            may("weight", Kind::Count, "Their weight."),
            may("nice", Kind::Count, "The nice value of autogroups."),
            may("quota", Kind::Time, "Their CPU time in each period."),
            may(
                "burst",
                Kind::Time,
                "How much of what periods leave unused they keep.",
            ),
            may("idle", Kind::Flag, "Whether they are idle."),
            may("cpus", Kind::Place, "The CPUs that their tasks may use."),
            may("freeze", Kind::True, "They are frozen."),
            may("thaw", Kind::True, "They are thawed."),
        ],
    ),
    (
        must("cpu", Kind::Place, "The CPUs that change."),
        &[may("online", Kind::Flag, "Whether they are online.")],
    ),
    (
        must(
            "source",
            Kind::Reference,
            "The sources that change: one, or all of a table.",
        ),
        &[
            may("cpu", Kind::Place, "On which CPUs their datagrams arrive."),
            may("rate", Kind::Rate, "How many datagrams, at even distances."),
            may("stop", Kind::True, "They send no more."),
            may("continue", Kind::True, "They send again."),
        ],
    ),
];

/// The keys of a change of the scheduler, besides [`AT`].
pub(super) const SCHEDULER: &[Key] = &[
    must(
        "scheduler",
        Kind::Text,
        "`kernel`, `first` (the one that the run began with), or the scheduler that is loaded.",
    ),
    may(
        "options",
        Kind::Text,
        "The options that it is started with.",
    ),
];

pub(super) const PHASE: &[Key] = &[
    must("name", Kind::Text, "What it is called."),
    must("at", Kind::Time, "When it begins."),
];
