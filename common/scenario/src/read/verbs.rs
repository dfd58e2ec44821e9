//! The verbs of steps: what each takes, what it does, and how its step is read.

use warmq_config::{Entry, Fields, Item};

use super::changes::set;
use super::references;
use super::steps;
use super::table::Table;
use crate::expr::Expr;
use crate::keys::Kind::*;
use crate::keys::{Key, may, must};
use crate::object::Class;
use crate::recorded::{self, Recorded};
use crate::step::{self, Action, Reference, Share, Touch};
use crate::task::TaskKindId;

/// A verb.
pub(crate) struct Verb {
    /// The verb, and the kind of its value.
    pub(crate) key: [Key; 1],
    /// The other keys of its step, besides [`keys::WHEN`](crate::keys::WHEN).
    pub(crate) keys: &'static [Key],
    pub(super) read: fn(&mut Table<'_, '_, '_>) -> Option<Action>,
}

const WAITED_ON: &[Class] = &[Class::Condition, Class::Futex];
const LOCKS: &[Class] = &[Class::Mutex, Class::Spinlock];
const ENDS: crate::keys::Kind = Object(&[Class::Stream, Class::Pipe, Class::Datagram]);

/// All of them, in the order of the documentation.
#[rustfmt::skip]
pub(crate) const VERBS: &[Verb] = &[
    Verb { key: [must("run", AmountOfWork, "Computes, for a time that a free CPU needs.", "")],
           keys: &[], read: |table| table.get("run").map(Action::Run) },
    Verb { key: [must("spin", AmountOfTime, "Computes until so much time has passed.", "")],
           keys: &[], read: |table| table.get("spin").map(Action::Spin) },
    Verb { key: [must("touch", Object(&[Class::Region]), "Accesses memory.", "")],
           keys: TOUCH, read: touch },
    Verb { key: [must("sleep", AmountOfTime, "Sleeps.", "")],
           keys: &[], read: |table| table.get("sleep").map(Action::Sleep) },
    Verb { key: [must("timer", Object(&[Class::Timer]), "Sleeps until the timer expires.", "")],
           keys: &[must("period", AmountOfTime, "How long after it expired last.", "write period = \"10ms\"")],
           read: |table| Some(Action::Timer { timer: table.get("timer")?, period: table.get("period")? }) },
    Verb { key: [must("lock", Object(LOCKS), "Locks a mutex or a spin lock.", "")],
           keys: &[], read: |table| table.get("lock").map(Action::Lock) },
    Verb { key: [must("unlock", Object(LOCKS), "Unlocks it.", "")],
           keys: &[], read: |table| table.get("unlock").map(Action::Unlock) },
    Verb { key: [must("wait", Object(WAITED_ON), "Waits for a condition, or in a futex.", "")],
           keys: &[may("mutex", Object(&[Class::Mutex]), "The mutex that is unlocked meanwhile, with a condition."),
                   may("timeout", AmountOfTime, "For how long at most; until it is woken.")],
           read: wait },
    Verb { key: [must("signal", Object(WAITED_ON), "Wakes who waits for a condition, or in a futex.", "")],
           keys: &[may("all", Flag, "Everyone, not only one.")],
           read: |table| Some(Action::Signal { on: table.get("signal")?, all: table.flag("all") }) },
    Verb { key: [must("raise", Object(&[Class::Semaphore]), "Adds one to a semaphore.", "")],
           keys: &[], read: |table| table.get("raise").map(Action::Raise) },
    Verb { key: [must("lower", Object(&[Class::Semaphore]), "Takes one from a semaphore.", "")],
           keys: &[], read: |table| table.get("lower").map(Action::Lower) },
    Verb { key: [must("barrier", Object(&[Class::Barrier]), "Waits at a barrier.", "")],
           keys: &[], read: |table| table.get("barrier").map(Action::Barrier) },
    Verb { key: [must("put", Object(&[Class::Queue]), "Puts an item into a queue.", "")],
           keys: &[], read: |table| table.get("put").map(Action::Put) },
    Verb { key: [must("take", Object(&[Class::Queue]), "Takes an item out of a queue.", "")],
           keys: &[], read: |table| table.get("take").map(Action::Take) },
    Verb { key: [must("send", ENDS, "Sends to a stream's end, a pipe or a datagram socket.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"100B\"")],
           read: |table| Some(Action::Send { to: table.get("send")?, bytes: table.get("bytes")? }) },
    Verb { key: [must("reply", Object(&[Class::Datagram]), "Answers the last datagram received on a socket.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"64B\"")],
           read: |table| Some(Action::Reply { socket: table.get("reply")?, bytes: table.get("bytes")? }) },
    Verb { key: [must("receive", ENDS, "Receives from a stream's end, a pipe or a datagram socket.", "")],
           keys: &[may("bytes", Size, "Exactly so much; of a datagram socket one datagram.")],
           read: receive },
    Verb { key: [must("write", Object(&[Class::File]), "Writes to a file.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"4KB\"")],
           read: |table| Some(Action::Write { file: table.get("write")?, bytes: table.get("bytes")? }) },
    Verb { key: [must("spawn", Task, "Starts a thread.", "")],
           keys: &[], read: |table| table.get("spawn").map(Action::Spawn) },
    Verb { key: [must("fork", Task, "Starts a process.", "")],
           keys: &[], read: |table| table.get("fork").map(Action::Fork) },
    Verb { key: [must("exit", True, "Ends the task.", "")],
           keys: &[], read: |table| table.get("exit").map(|()| Action::Exit) },
    Verb { key: [must("yield", True, "Gives the CPU away.", "")],
           keys: &[], read: |table| table.get("yield").map(|()| Action::Yield) },
    Verb { key: [must("fragment", Fragment, "Names the data that the task is about to use.", "")],
           keys: &[], read: |table| table.get("fragment").map(Action::Fragment) },
    Verb { key: [must("nice", Count, "Sets the task's own nice value.", "")],
           keys: &[], read: |table| own(table, "nice") },
    Verb { key: [must("cpus", Place, "Sets the CPUs that the task may use.", "")],
           keys: &[], read: |table| own(table, "cpus") },
    Verb { key: [must("policy", Policy, "Sets the task's own policy.", "")],
           keys: &[], read: |table| own(table, "policy") },
    Verb { key: [must("slice", Time, "Sets the task's own slice.", "")],
           keys: &[], read: |table| own(table, "slice") },
    Verb { key: [must("uclamp_min", Count, "Sets as what utilization the task counts at least.", "")],
           keys: &[], read: |table| own(table, "uclamp_min") },
    Verb { key: [must("uclamp_max", Count, "Sets as what utilization the task counts at most.", "")],
           keys: &[], read: |table| own(table, "uclamp_max") },
    Verb { key: [must("group", Cgroup, "Moves the task to a cgroup.", "")],
           keys: &[], read: |table| own(table, "group") },
    Verb { key: [must("begin", Span, "Begins a latency span.", "")],
           keys: &[may("due", Flag, "It began when the round (`every`), or the task's last timer, was due.")],
           read: |table| Some(Action::Begin { span: table.get("begin")?, due: table.flag("due") }) },
    Verb { key: [must("end", Span, "Ends a latency span.", "")],
           keys: &[], read: |table| table.get("end").map(Action::End) },
    Verb { key: [must("count", Text, "Adds to a counter.", "")],
           keys: &[may("by", Count, "How much; 1.")], read: count },
    Verb { key: [must("recorded", Text, "Does what a task was seen to do: words that are times to compute \
                  (12us), sleeps (~1ms, @10ms), names of steps, and parts that the message of a sender \
                  begins (wait<a).", "")],
           keys: &[may("steps", NamedSteps, "The steps, by their names."),
                   may("senders", NamedTasks, "The tasks whose messages begin parts, by the names that words \
                       have for them.")],
           read: |table| recorded(table).map(Action::Recorded) },
    Verb { key: [must("repeat", Count, "Does its body so many times.", "")],
           keys: &[may("as", Text, "An index of the body, which counts from 0."), BODY],
           read: |table| repeated(table, ("repeat", "as"), None) },
    Verb { key: [must("each", Text, "Does its body for each value of an index.", "")],
           keys: &[must("of", Count, "How many values there are.", "write how many there are"),
                   may("except", Count, "A value that is left out."), BODY],
           read: |table| { let except = table.get("except"); repeated(table, ("of", "each"), except) } },
];

#[rustfmt::skip]
const TOUCH: &[Key] = &[
    may("lines", Count, "How many lines; by default all of the region."),
    may("bytes", Size, "How many bytes; by default all of the region."),
    may("first", Count, "The first line; 0."),
    may("pattern", Pattern, "In which order."),
    may("write", Percent, "The part that writes; 0%."),
];

const BODY: Key = must(
    "body",
    Steps,
    "What is repeated.",
    "write the steps that are repeated: body = [...]",
);

/// The verb called `name`.
pub(super) fn find(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.key[0].name == name)
}

/// Their names.
pub(crate) fn verbs() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|verb| verb.key[0].name)
}

/// What a change of the task could set under the same key.
fn own(table: &mut Table<'_, '_, '_>, key: &str) -> Option<Action> {
    set(table, key).map(Box::new).map(Action::Set)
}

fn touch(table: &mut Table<'_, '_, '_>) -> Option<Action> {
    let region = table.get("touch");
    if let (Some(_), Some(item)) = (table.item("lines"), table.item("bytes")) {
        let what = "`lines` says how much is touched already";
        item.report(what, "leave one of them out");
        return None;
    }
    let share = table.get("lines").map(Share::Lines);
    Some(Action::Touch(Box::new(Touch {
        share: share
            .or_else(|| table.get("bytes").map(Share::Bytes))
            .unwrap_or(Share::Whole),
        first: table.get("first"),
        pattern: table.get("pattern").unwrap_or(step::Pattern::Sequential),
        write_percent: table.or("write", 0)?,
        region: region?,
    })))
}

fn wait(table: &mut Table<'_, '_, '_>) -> Option<Action> {
    let (on, class): (Reference, Class) = table.get("wait")?;
    match (class, table.item("mutex")) {
        (Class::Futex, Some(item)) => {
            item.report("who waits in a futex holds no mutex", "leave `mutex` out");
        }
        (Class::Condition, None) => {
            let help = "name the mutex that is unlocked while it waits";
            table.fields.required("mutex", help);
        }
        _ => {}
    }
    let (mutex, timeout) = (table.get("mutex"), table.get("timeout"));
    Some(Action::Wait { on, mutex, timeout })
}

fn receive(table: &mut Table<'_, '_, '_>) -> Option<Action> {
    let (from, class): (Reference, Class) = table.get("receive")?;
    match (class, table.item("bytes")) {
        (Class::Datagram, Some(item)) => {
            let what = "one datagram is received, whatever its size";
            item.report(what, "leave `bytes` out");
        }
        (Class::Stream | Class::Pipe, None) => {
            table
                .fields
                .required("bytes", "write how much: bytes = \"100B\"");
        }
        _ => {}
    }
    let bytes = table.get("bytes");
    Some(Action::Receive { from, bytes })
}

fn count(table: &mut Table<'_, '_, '_>) -> Option<Action> {
    let by = table.or("by", 1);
    let item = table.item("count")?;
    let name: String = table.get("count")?;
    if table.scope.names.is_of_spinlock(&name) {
        let what = format!("`{name}` is what a spin lock counts by itself");
        item.report(what, "give the counter another name");
    }
    let counter = table.scope.names.counter(&name);
    Some(Action::Count { counter, by: by? })
}

fn recorded(table: &mut Table<'_, '_, '_>) -> Option<Recorded> {
    let named = table.item("steps");
    let fields = match &named {
        Some(item) => Some(item.table()?),
        None => None,
    };
    let (mut names, mut steps) = (Vec::new(), Vec::new());
    for (entry, item) in fields.iter().flat_map(Fields::entries) {
        names.push(entry.key.clone());
        steps.push(steps::step(&item, table.scope).filter(|step| steps::in_a_row(step, &item)));
    }
    let (known, senders) = senders(table)?;
    let text: String = table.get("recorded")?;
    let moments = recorded::moments(&text, &names, &known).map_err(|word| {
        let what = format!("`{word}` is no moment");
        let help = "write times such as 12us, sleeps such as ~1ms and @10ms, names of `steps`, \
                    and wait<a where `wait` is a step and `a` one of `senders`";
        table
            .item("recorded")
            .iter()
            .for_each(|item| item.report(what.as_str(), help));
    });
    Some(Recorded {
        moments: moments.ok()?,
        steps: steps.into_iter().collect::<Option<_>>()?,
        senders,
    })
}

/// The tasks whose messages begin parts of a row, and what the row calls them.
fn senders(table: &mut Table<'_, '_, '_>) -> Option<(Vec<String>, Vec<TaskKindId>)> {
    let Some(item) = table.item("senders") else {
        return Some(Default::default());
    };
    let fields = item.table()?;
    let sender = |(entry, item): (&Entry, Item<'_>)| {
        Some((
            entry.key.clone(),
            references::task(&item, table.scope)?.task,
        ))
    };
    let all: Vec<Option<_>> = fields.entries().map(sender).collect();
    Some(
        all.into_iter()
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .unzip(),
    )
}

/// Repeats the body as often as the key `times` says; the key `index` names what counts.
fn repeated(
    table: &mut Table<'_, '_, '_>,
    (times, index): (&str, &str),
    except: Option<Expr>,
) -> Option<Action> {
    let (times, index) = (table.get(times), table.get(index));
    let (verb, body) = (table.fields.entries().next()?.1, table.item("body"));
    table.scope.push(index, &verb);
    let body = steps::list(body, table.scope);
    table.scope.pop();
    Some(Action::Repeat {
        times: times?,
        except,
        body,
    })
}
