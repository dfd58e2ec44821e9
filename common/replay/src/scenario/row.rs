//! The row of a task as a step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use warmq_units::{Duration, TaskId};

use super::names::Names;
use crate::row::{Kind, Moment};
use crate::task::Task;

/// Lines end at the first word behind this column.
const WIDTH: usize = 90;

/// Words in lines.
pub(super) struct Words {
    text: String,
    column: usize,
}

impl Words {
    pub fn new(before: &str) -> Words {
        Words {
            text: before.to_owned(),
            column: 0,
        }
    }

    pub fn push(&mut self, word: &str) {
        match self.column {
            0 => {}
            column if column > WIDTH => {
                self.text.push('\n');
                self.column = 0;
            }
            _ => self.text.push(' '),
        }
        self.text.push_str(word);
        self.column += word.len() + 1;
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// The step that does what `id` did.
pub(super) fn body(id: TaskId, task: &Task, names: &Names) -> String {
    let mut body = Body {
        names,
        id,
        senders: senders(task, names),
        posts: BTreeMap::new(),
        steps: BTreeMap::new(),
        words: Words::new("{ recorded = \"\"\"\n"),
        is_periodic: task.row.is_periodic(),
    };
    task.row
        .moments
        .iter()
        .for_each(|moment| body.moment(*moment));
    body.finish()
}

/// The tasks that post to the inbox of `task`, and what its row calls them. A row of which one
/// other task posts needs no names: all is done in its order.
fn senders(task: &Task, names: &Names) -> BTreeMap<TaskId, String> {
    let from = task.row.moments.iter().filter_map(|moment| match moment {
        Moment::Await(kind, from) if kind.is_inbox() => *from,
        _ => None,
    });
    let from: BTreeSet<TaskId> = from.filter(|from| !names.task(*from).is_empty()).collect();
    let named = (1..)
        .zip(from)
        .map(|(number, from)| (from, format!("s{number}")));
    let named: BTreeMap<TaskId, String> = named.collect();
    if named.len() > 1 {
        named
    } else {
        BTreeMap::new()
    }
}

struct Body<'n> {
    names: &'n Names,
    id: TaskId,
    senders: BTreeMap<TaskId, String>,
    /// The names of steps that post, by object.
    posts: BTreeMap<String, String>,
    steps: BTreeMap<String, String>,
    words: Words,
    is_periodic: bool,
}

impl Body<'_> {
    fn moment(&mut self, moment: Moment) {
        match moment {
            Moment::Run(span) => self.words.push(&time("", span)),
            Moment::Sleep(span) => self.words.push(&time("~", span)),
            Moment::Timer { since, .. } if self.is_periodic => self.words.push(&time("@", since)),
            Moment::Timer { slept, .. } => self.words.push(&time("~", slept)),
            Moment::Await(kind, from) => self.awaits(kind, from),
            // Nobody waits who is left out.
            Moment::Post(to, _) if self.names.task(to).is_empty() => {}
            Moment::Post(to, kind) => self.posts(to, kind),
        }
    }

    fn awaits(&mut self, kind: Kind, from: Option<TaskId>) {
        let (kind, object) = self.object(self.id, kind);
        let name = awaited(kind);
        let sender = from.filter(|_| kind.is_inbox());
        let sender = sender.and_then(|sender| self.senders.get(&sender));
        match sender {
            Some(sender) => self.words.push(&format!("{name}<{sender}")),
            None => self.words.push(&name),
        }
        self.steps
            .entry(name)
            .or_insert_with(|| receive(&object, kind));
    }

    fn posts(&mut self, to: TaskId, kind: Kind) {
        let number = self.posts.len() + 1;
        let (kind, object) = self.object(to, kind);
        let name = self.posts.entry(object.clone()).or_insert_with(|| {
            let name = format!("wake{number}");
            self.steps.insert(name.clone(), send(&object, kind));
            name
        });
        self.words.push(name);
    }

    /// The object of `kind` that `id` waits for.
    fn object(&self, id: TaskId, kind: Kind) -> (Kind, String) {
        match kind.is_inbox() {
            true => self.names.inbox(id),
            false => (kind, self.names.object(id, kind)),
        }
    }

    fn finish(self) -> String {
        let mut text = self.words.finish();
        text.push_str("\n\"\"\"");
        let steps = self.steps.iter().map(|(name, step)| (name, step.clone()));
        table(&mut text, "steps", steps);
        let quoted = |task: &TaskId| format!("\"{}\"", self.names.task(*task));
        let senders = self.senders.iter().map(|(task, name)| (name, quoted(task)));
        table(&mut text, "senders", senders);
        text.push_str(" }");
        text
    }
}

/// Appends `, NAME = { key = value, ... }`, unless it is empty.
fn table<'n>(text: &mut String, name: &str, entries: impl Iterator<Item = (&'n String, String)>) {
    let entries: Vec<String> = entries
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    if !entries.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(text, ", {name} = {{ {} }}", entries.join(", "));
    }
}

/// Whole nanoseconds, which recorders count; zero is nothing.
fn time(before: &str, span: Duration) -> String {
    let ns = Duration::from_ns(span.as_ns());
    match ns {
        Duration::ZERO => format!("{before}0ns"),
        ns => format!("{before}{}", ns.exact()),
    }
}

fn awaited(kind: Kind) -> String {
    match kind {
        Kind::Semaphore => "wait".to_owned(),
        Kind::Pipe => "read".to_owned(),
        Kind::Socket => "receive".to_owned(),
        Kind::Outside => "packet".to_owned(),
        Kind::Shared(object) => format!("wait{object}"),
        Kind::Turn(of) => format!("turn{}", of.0),
    }
}

fn receive(object: &str, kind: Kind) -> String {
    match kind {
        Kind::Semaphore | Kind::Shared(_) | Kind::Turn(_) => format!("{{ lower = \"{object}\" }}"),
        Kind::Pipe => format!("{{ receive = \"{object}\", bytes = \"1B\" }}"),
        Kind::Socket | Kind::Outside => format!("{{ receive = \"{object}\" }}"),
    }
}

fn send(object: &str, kind: Kind) -> String {
    match kind {
        Kind::Semaphore | Kind::Shared(_) | Kind::Turn(_) => format!("{{ raise = \"{object}\" }}"),
        Kind::Pipe | Kind::Socket | Kind::Outside => {
            format!("{{ send = \"{object}\", bytes = \"1B\" }}")
        }
    }
}
