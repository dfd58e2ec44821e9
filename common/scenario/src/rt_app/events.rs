//! Events into steps.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Entry, Item, Node, Place};

use super::global::Global;
use super::memory;
use super::numbers::{ANY, LARGEST, text_or, whole, whole_or};
use super::objects::Objects;
use super::remarks::Remarks;
use super::threads::{Facts, Thread};
use super::tree::{endless, entry, flag, microseconds, step, step_with, text, whole as number};
use crate::object::Class;

/// How keys of an event begin, and what translates its value into steps.
pub(super) type Verb = (&'static str, Translate);
type Translate = fn(&mut Script<'_, '_>, &mut Body<'_, '_>, &Item<'_>) -> Steps;

/// All events. Of those that fit a key the first counts.
pub(super) const VERBS: &[Verb] = &[
    ("runtime", |_, _, item| spun(item)),
    ("run", |_, _, item| timed("run", item)),
    ("sleep", |_, _, item| timed("sleep", item)),
    ("memrun", |script, body, item| script.memrun(body, item)),
    ("mem", |script, body, item| script.mem(body, item)),
    ("iorun", |script, _, item| script.iorun(item)),
    ("lock", |script, body, item| script.lock(body, item)),
    ("unlock", |script, body, item| script.unlock(body, item)),
    ("signal", |script, _, item| script.signal(item, false)),
    ("broad", |script, _, item| script.signal(item, true)),
    ("wait", |script, _, item| Some(vec![script.wait(item)?.2])),
    ("sync", |script, body, item| script.sync(body, item)),
    ("barrier", |script, _, item| script.barrier(item)),
    ("timer", |script, body, item| script.timer(body, item)),
    ("resume", |script, _, item| script.resume(item)),
    ("suspend", |script, body, item| script.suspend(body, item)),
    ("yield", |_, _, item| Some(vec![yields(item)])),
    ("fork", |script, _, item| script.fork(item)),
    ("sem_post", |script, _, item| {
        script.semaphore("raise", item)
    }),
    ("sem_wait", |script, _, item| {
        script.semaphore("lower", item)
    }),
];

/// The event that `key` stands for: its beginning counts, so that keys can be numbered.
pub(super) fn verb(key: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|(name, _)| key.starts_with(name))
}

/// An event of a phase.
pub(super) struct Event<'a> {
    pub(super) verb: &'static Verb,
    /// Its value.
    pub(super) item: Item<'a>,
}

/// The script that is being translated.
pub(super) struct Script<'s, 'a> {
    pub(super) global: &'s Global<'a>,
    pub(super) facts: &'s Facts,
    pub(super) remarks: &'s Remarks,
    pub(super) objects: Objects,
    /// The names of all threads.
    pub(super) threads: Vec<String>,
    /// By thread of the script: the table of those that it forks.
    pub(super) forks: BTreeMap<String, String>,
    /// What was said of each region's size: it must be the same everywhere.
    pub(super) regions: BTreeMap<String, memory::Shape>,
}

/// The thread whose events are translated.
pub(super) struct Body<'b, 'a> {
    pub(super) thread: &'b Thread<'a>,
    /// Our name of it.
    pub(super) key: &'b str,
    /// The mutexes that it has locked so far.
    pub(super) held: BTreeSet<String>,
}

pub(super) type Steps = Option<Vec<Node>>;

impl Script<'_, '_> {
    pub(super) fn event(&mut self, body: &mut Body<'_, '_>, event: &Event<'_>) -> Steps {
        let (_, translate) = event.verb;
        translate(self, body, &event.item)
    }

    fn lock(&mut self, body: &mut Body<'_, '_>, item: &Item<'_>) -> Steps {
        let mutex = self.mutex(&item.text()?, &item.node.place);
        body.held.insert(mutex.clone());
        Some(vec![step("lock", text(&item.node.place, mutex))])
    }

    fn unlock(&mut self, body: &mut Body<'_, '_>, item: &Item<'_>) -> Steps {
        let mutex = self.mutex(&item.text()?, &item.node.place);
        body.held.remove(&mutex);
        Some(vec![step("unlock", text(&item.node.place, mutex))])
    }

    fn object(&mut self, class: Class, name: &str, place: &Place) -> String {
        self.objects.get(class, name, name, place, Vec::new)
    }

    fn mutex(&mut self, name: &str, place: &Place) -> String {
        self.object(Class::Mutex, name, place)
    }

    fn signal(&mut self, item: &Item<'_>, all: bool) -> Steps {
        let condition = self.object(Class::Condition, &item.text()?, &item.node.place);
        Some(vec![signalled(condition, &item.node.place, all)])
    }

    /// The names of condition and mutex, and the step.
    fn wait(&mut self, item: &Item<'_>) -> Option<(String, String, Node)> {
        let (fields, place) = (item.table()?, &item.node.place);
        let (condition, mutex) = (
            text_or(&fields, "ref", "unknown"),
            text_or(&fields, "mutex", "unknown"),
        );
        let condition = self.object(Class::Condition, &condition?, place);
        let mutex = self.mutex(&mutex?, place);
        let wait = waited(condition.clone(), mutex.clone(), place);
        Some((condition, mutex, wait))
    }

    /// Signals and waits. The tutorial says that it locks the mutex, the program leaves that to
    /// the script: where the script does not, it is locked here.
    fn sync(&mut self, body: &Body<'_, '_>, item: &Item<'_>) -> Steps {
        let place = &item.node.place;
        let (condition, mutex, wait) = self.wait(item)?;
        let signal = signalled(condition, place, false);
        if body.held.contains(&mutex) {
            return Some(vec![signal, wait]);
        }
        let why = "the script has not locked the mutex of `sync`";
        self.remarks
            .say(item, "`sync` locks its mutex by itself", why);
        let locked = step("lock", text(place, mutex.clone()));
        let unlocked = step("unlock", text(place, mutex));
        Some(vec![locked, signal, wait, unlocked])
    }

    fn barrier(&mut self, item: &Item<'_>) -> Steps {
        let (name, place) = (item.text()?, &item.node.place);
        let tasks = self.facts.barriers.get(&name).copied().unwrap_or(1);
        let keys = || vec![entry("tasks", number(place, tasks))];
        let barrier = self.objects.get(Class::Barrier, &name, &name, place, keys);
        Some(vec![step("barrier", text(place, barrier))])
    }

    fn timer(&mut self, body: &Body<'_, '_>, item: &Item<'_>) -> Steps {
        let (fields, place) = (item.table()?, &item.node.place);
        let name = text_or(&fields, "ref", "unknown");
        let period = whole_or(&fields, "period", ANY, 0);
        let mode = text_or(&fields, "mode", "relative");
        let (name, period, _) = (name?, period?, mode?);
        if period < 0 {
            return Some(vec![sleep_for_ever(place)]);
        }
        let (own, absolute) = (
            name.starts_with("unique"),
            self.facts.is_absolute(body.thread, &name),
        );
        let keys = || {
            let shared = (!own).then(|| entry("shared", flag(place, true)));
            let mode = absolute.then(|| entry("mode", text(place, "absolute")));
            shared.into_iter().chain(mode).collect()
        };
        let id = format!("{own} {absolute} {name}");
        let timer = self.objects.get(Class::Timer, &id, &name, place, keys);
        let period = entry("period", microseconds(place, period));
        Some(vec![step_with("timer", text(place, timer), vec![period])])
    }

    /// As rt-app does it: a condition and a mutex of the thread's name.
    fn suspend(&mut self, body: &Body<'_, '_>, item: &Item<'_>) -> Steps {
        let place = &item.node.place;
        let name = self.suspended(body.thread, item)?;
        let (condition, mutex) = (
            self.object(Class::Condition, &name, place),
            self.mutex(&name, place),
        );
        let wait = waited(condition, mutex.clone(), place);
        Some(guarded(wait, mutex, place))
    }

    /// Under which name a thread is resumed. rt-app ignores what is written at `suspend`; older
    /// versions did not, and scripts for them give several threads one name.
    fn suspended(&self, thread: &Thread<'_>, item: &Item<'_>) -> Option<String> {
        let written = match item.node.kind {
            warmq_config::NodeKind::Other("nothing") => String::new(),
            _ => item.text()?,
        };
        let resumed = &self.facts.resumed;
        if resumed.contains(&thread.name) || !resumed.contains(&written) {
            return Some(thread.name.clone());
        }
        let why = "nobody resumes the thread by its own name, as rt-app wants it today";
        let what = "a thread waits for the name that is written at `suspend`";
        self.remarks.say(item, what, why);
        Some(written)
    }

    fn resume(&mut self, item: &Item<'_>) -> Steps {
        let (name, place) = (item.text()?, &item.node.place);
        let (condition, mutex) = (
            self.object(Class::Condition, &name, place),
            self.mutex(&name, place),
        );
        Some(guarded(signalled(condition, place, true), mutex, place))
    }

    fn fork(&mut self, item: &Item<'_>) -> Steps {
        let name = item.text()?;
        let Some(table) = self.forks.get(&name) else {
            let known = self.threads.iter().map(String::as_str);
            item.unknown(format!("there is no thread `{name}`"), &name, known);
            return None;
        };
        Some(vec![step("spawn", text(&item.node.place, table.clone()))])
    }

    fn semaphore(&mut self, verb: &str, item: &Item<'_>) -> Steps {
        let (name, place) = (item.text()?, &item.node.place);
        let why = "the language has no other";
        self.remarks
            .say(item, "semaphores are those of SysV, not of POSIX", why);
        let semaphore = self.object(Class::Semaphore, &name, place);
        Some(vec![step(verb, text(place, semaphore))])
    }
}

fn yields(item: &Item<'_>) -> Node {
    step("yield", flag(&item.node.place, true))
}

/// `run` and `sleep`: a negative time never ends.
fn timed(verb: &str, item: &Item<'_>) -> Steps {
    let (place, span) = (&item.node.place, whole(item, ANY)?);
    let of = |span| step(verb, microseconds(place, span));
    Some(vec![match span {
        0.. => of(span),
        _ => endless(place, vec![of(LARGEST)]),
    }])
}

/// `runtime` looks at the clock after each 32 us of work: a negative time is over at the first
/// look.
fn spun(item: &Item<'_>) -> Steps {
    const BETWEEN_LOOKS: i64 = 32;
    let (place, span) = (&item.node.place, whole(item, ANY)?);
    Some(vec![match span {
        0.. => step("spin", microseconds(place, span)),
        _ => step("run", microseconds(place, BETWEEN_LOOKS)),
    }])
}

/// A sleep that never ends.
pub(super) fn sleep_for_ever(place: &Place) -> Node {
    endless(place, vec![step("sleep", microseconds(place, LARGEST))])
}

fn signalled(condition: String, place: &Place, all: bool) -> Node {
    let all = all.then(|| entry("all", flag(place, true)));
    let all: Vec<Entry> = all.into_iter().collect();
    step_with("signal", text(place, condition), all)
}

fn waited(condition: String, mutex: String, place: &Place) -> Node {
    let mutex = entry("mutex", text(place, mutex));
    step_with("wait", text(place, condition), vec![mutex])
}

/// `inner` with the mutex locked.
fn guarded(inner: Node, mutex: String, place: &Place) -> Vec<Node> {
    let locked = step("lock", text(place, mutex.clone()));
    vec![locked, inner, step("unlock", text(place, mutex))]
}
