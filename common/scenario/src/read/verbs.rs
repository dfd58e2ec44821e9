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

const ENDS: crate::keys::Kind = Object(&[Class::Stream, Class::Pipe, Class::Datagram]);

/// All of them, in the order of the documentation.
#[rustfmt::skip]
pub(crate) const VERBS: &[Verb] = &[
    Verb { key: [must("run", AmountOfWork, "Computes, for a time that a free CPU needs.", "")],
           keys: &[], read: |it| it.get("run").map(Action::Run) },
    Verb { key: [must("spin", AmountOfTime, "Computes until so much time has passed.", "")],
           keys: &[], read: |it| it.get("spin").map(Action::Spin) },
    Verb { key: [must("touch", Object(&[Class::Region]), "Accesses memory.", "")],
           keys: TOUCH, read: touch },
    Verb { key: [must("sleep", AmountOfTime, "Sleeps.", "")],
           keys: &[], read: |it| it.get("sleep").map(Action::Sleep) },
    Verb { key: [must("timer", Object(&[Class::Timer]), "Sleeps until the timer expires.", "")],
           keys: &[must("period", AmountOfTime, "How long after it expired last.", "write period = \"10ms\"")],
           read: |it| Some(Action::Timer { timer: it.get("timer")?, period: it.get("period")? }) },
    Verb { key: [must("lock", Object(&[Class::Mutex]), "Locks a mutex.", "")],
           keys: &[], read: |it| it.get("lock").map(Action::Lock) },
    Verb { key: [must("unlock", Object(&[Class::Mutex]), "Unlocks a mutex.", "")],
           keys: &[], read: |it| it.get("unlock").map(Action::Unlock) },
    Verb { key: [must("wait", Object(&[Class::Condition]), "Waits for a condition.", "")],
           keys: &[must("mutex", Object(&[Class::Mutex]), "The mutex that is unlocked meanwhile.",
                        "name the mutex that is unlocked while it waits")],
           read: |it| Some(Action::Wait { condition: it.get("wait")?, mutex: it.get("mutex")? }) },
    Verb { key: [must("signal", Object(&[Class::Condition]), "Wakes who waits for a condition.", "")],
           keys: &[may("all", Flag, "Everyone, not only one.")],
           read: |it| Some(Action::Signal { condition: it.get("signal")?, all: it.flag("all") }) },
    Verb { key: [must("raise", Object(&[Class::Semaphore]), "Adds one to a semaphore.", "")],
           keys: &[], read: |it| it.get("raise").map(Action::Raise) },
    Verb { key: [must("lower", Object(&[Class::Semaphore]), "Takes one from a semaphore.", "")],
           keys: &[], read: |it| it.get("lower").map(Action::Lower) },
    Verb { key: [must("barrier", Object(&[Class::Barrier]), "Waits at a barrier.", "")],
           keys: &[], read: |it| it.get("barrier").map(Action::Barrier) },
    Verb { key: [must("put", Object(&[Class::Queue]), "Puts an item into a queue.", "")],
           keys: &[], read: |it| it.get("put").map(Action::Put) },
    Verb { key: [must("take", Object(&[Class::Queue]), "Takes an item out of a queue.", "")],
           keys: &[], read: |it| it.get("take").map(Action::Take) },
    Verb { key: [must("send", ENDS, "Sends to a stream's end, a pipe or a datagram socket.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"100B\"")],
           read: |it| Some(Action::Send { to: it.get("send")?, bytes: it.get("bytes")? }) },
    Verb { key: [must("reply", Object(&[Class::Datagram]), "Answers the last datagram received on a socket.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"64B\"")],
           read: |it| Some(Action::Reply { socket: it.get("reply")?, bytes: it.get("bytes")? }) },
    Verb { key: [must("receive", ENDS, "Receives from a stream's end, a pipe or a datagram socket.", "")],
           keys: &[may("bytes", Size, "Exactly so much; of a datagram socket one datagram.")],
           read: receive },
    Verb { key: [must("write", Object(&[Class::File]), "Writes to a file.", "")],
           keys: &[must("bytes", Size, "How much.", "write how much: bytes = \"4KB\"")],
           read: |it| Some(Action::Write { file: it.get("write")?, bytes: it.get("bytes")? }) },
    Verb { key: [must("spawn", Task, "Starts a thread.", "")],
           keys: &[], read: |it| it.get("spawn").map(Action::Spawn) },
    Verb { key: [must("fork", Task, "Starts a process.", "")],
           keys: &[], read: |it| it.get("fork").map(Action::Fork) },
    Verb { key: [must("exit", True, "Ends the task.", "")],
           keys: &[], read: |it| it.get("exit").map(|()| Action::Exit) },
    Verb { key: [must("yield", True, "Gives the CPU away.", "")],
           keys: &[], read: |it| it.get("yield").map(|()| Action::Yield) },
    Verb { key: [must("fragment", Fragment, "Names the data that the task is about to use.", "")],
           keys: &[], read: |it| it.get("fragment").map(Action::Fragment) },
    Verb { key: [must("nice", Count, "Sets the task's own nice value.", "")],
           keys: &[], read: |it| own(it, "nice") },
    Verb { key: [must("cpus", Place, "Sets the CPUs that the task may use.", "")],
           keys: &[], read: |it| own(it, "cpus") },
    Verb { key: [must("policy", Policy, "Sets the task's own policy.", "")],
           keys: &[], read: |it| own(it, "policy") },
    Verb { key: [must("slice", Time, "Sets the task's own slice.", "")],
           keys: &[], read: |it| own(it, "slice") },
    Verb { key: [must("group", Cgroup, "Moves the task to a cgroup.", "")],
           keys: &[], read: |it| own(it, "group") },
    Verb { key: [must("begin", Span, "Begins a latency span.", "")],
           keys: &[], read: |it| it.get("begin").map(Action::Begin) },
    Verb { key: [must("end", Span, "Ends a latency span.", "")],
           keys: &[], read: |it| it.get("end").map(Action::End) },
    Verb { key: [must("count", Text, "Adds to a counter.", "")],
           keys: &[may("by", Count, "How much; 1.")], read: count },
    Verb { key: [must("recorded", Text, "Does what a task was seen to do: words that are times to compute \
                  (12us), sleeps (~1ms, @10ms), names of steps, and parts that the message of a sender \
                  begins (wait<a).", "")],
           keys: &[may("steps", NamedSteps, "The steps, by their names."),
                   may("senders", NamedTasks, "The tasks whose messages begin parts, by the names that words \
                       have for them.")],
           read: |it| recorded(it).map(Action::Recorded) },
    Verb { key: [must("repeat", Count, "Does its body so many times.", "")],
           keys: &[may("as", Text, "An index of the body, which counts from 0."), BODY],
           read: |it| repeated(it, ("repeat", "as"), None) },
    Verb { key: [must("each", Text, "Does its body for each value of an index.", "")],
           keys: &[must("of", Count, "How many values there are.", "write how many there are"),
                   may("except", Count, "A value that is left out."), BODY],
           read: |it| { let except = it.get("except"); repeated(it, ("of", "each"), except) } },
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
fn own(it: &mut Table<'_, '_, '_>, key: &str) -> Option<Action> {
    set(it, key).map(Box::new).map(Action::Set)
}

fn touch(it: &mut Table<'_, '_, '_>) -> Option<Action> {
    let region = it.get("touch");
    if let (Some(_), Some(item)) = (it.item("lines"), it.item("bytes")) {
        let what = "`lines` says how much is touched already";
        item.report(what, "leave one of them out");
        return None;
    }
    let share = it.get("lines").map(Share::Lines);
    Some(Action::Touch(Box::new(Touch {
        share: share
            .or_else(|| it.get("bytes").map(Share::Bytes))
            .unwrap_or(Share::Whole),
        first: it.get("first"),
        pattern: it.get("pattern").unwrap_or(step::Pattern::Sequential),
        write_percent: it.or("write", 0)?,
        region: region?,
    })))
}

fn receive(it: &mut Table<'_, '_, '_>) -> Option<Action> {
    let (from, class): (Reference, Class) = it.get("receive")?;
    match (class, it.item("bytes")) {
        (Class::Datagram, Some(item)) => {
            let what = "one datagram is received, whatever its size";
            item.report(what, "leave `bytes` out");
        }
        (Class::Stream | Class::Pipe, None) => {
            it.fields
                .required("bytes", "write how much: bytes = \"100B\"");
        }
        _ => {}
    }
    let bytes = it.get("bytes");
    Some(Action::Receive { from, bytes })
}

fn count(it: &mut Table<'_, '_, '_>) -> Option<Action> {
    let by = it.or("by", 1);
    let name: String = it.get("count")?;
    let counter = it.scope.names.counter(&name);
    Some(Action::Count { counter, by: by? })
}

fn recorded(it: &mut Table<'_, '_, '_>) -> Option<Recorded> {
    let named = it.item("steps");
    let fields = match &named {
        Some(item) => Some(item.table()?),
        None => None,
    };
    let (mut names, mut steps) = (Vec::new(), Vec::new());
    for (entry, item) in fields.iter().flat_map(Fields::entries) {
        names.push(entry.key.clone());
        steps.push(steps::step(&item, it.scope).filter(|step| steps::in_a_row(step, &item)));
    }
    let (known, senders) = senders(it)?;
    let text: String = it.get("recorded")?;
    let moments = recorded::moments(&text, &names, &known).map_err(|word| {
        let what = format!("`{word}` is no moment");
        let help = "write times such as 12us, sleeps such as ~1ms and @10ms, names of `steps`, \
                    and wait<a where `wait` is a step and `a` one of `senders`";
        it.item("recorded")
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
fn senders(it: &mut Table<'_, '_, '_>) -> Option<(Vec<String>, Vec<TaskKindId>)> {
    let Some(item) = it.item("senders") else {
        return Some(Default::default());
    };
    let fields = item.table()?;
    let sender = |(entry, item): (&Entry, Item<'_>)| {
        Some((entry.key.clone(), references::task(&item, it.scope)?.task))
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
    it: &mut Table<'_, '_, '_>,
    (times, index): (&str, &str),
    except: Option<Expr>,
) -> Option<Action> {
    let (times, index) = (it.get(times), it.get(index));
    let (verb, body) = (it.fields.entries().next()?.1, it.item("body"));
    it.scope.push(index, &verb);
    let body = steps::list(body, it.scope);
    it.scope.pop();
    Some(Action::Repeat {
        times: times?,
        except,
        body,
    })
}
