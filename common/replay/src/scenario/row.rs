//! The row of a task as a step.

use std::collections::BTreeMap;
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
    let mut posts: BTreeMap<String, String> = BTreeMap::new();
    let mut steps: BTreeMap<String, String> = BTreeMap::new();
    let mut words = Words::new("{ recorded = \"\"\"\n");
    let periodic = task.row.is_periodic();
    for moment in &task.row.moments {
        match *moment {
            Moment::Run(span) => words.push(&time("", span)),
            Moment::Sleep(span) => words.push(&time("~", span)),
            Moment::Timer { since, .. } if periodic => words.push(&time("@", since)),
            Moment::Timer { slept, .. } => words.push(&time("~", slept)),
            Moment::Await(kind) => {
                let name = awaited(kind);
                words.push(&name);
                let receive = || receive(&names.object(id, kind), kind);
                steps.entry(name).or_insert_with(receive);
            }
            // Nobody waits who is left out.
            Moment::Post(to, _) if names.task(to).is_empty() => {}
            Moment::Post(to, kind) => {
                let number = posts.len() + 1;
                let object = names.object(to, kind);
                let name = posts.entry(object.clone()).or_insert_with(|| {
                    let name = format!("wake{number}");
                    steps.insert(name.clone(), send(&object, kind));
                    name
                });
                words.push(name);
            }
        }
    }
    let mut text = words.finish();
    text.push_str("\n\"\"\"");
    let steps: Vec<String> = steps
        .iter()
        .map(|(name, step)| format!("{name} = {step}"))
        .collect();
    if !steps.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(text, ", steps = {{ {} }}", steps.join(", "));
    }
    text.push_str(" }");
    text
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
        Kind::Shared(object) => format!("wait{object}"),
    }
}

fn receive(object: &str, kind: Kind) -> String {
    match kind {
        Kind::Semaphore | Kind::Shared(_) => format!("{{ lower = \"{object}\" }}"),
        Kind::Pipe => format!("{{ receive = \"{object}\", bytes = \"1B\" }}"),
        Kind::Socket => format!("{{ receive = \"{object}\" }}"),
    }
}

fn send(object: &str, kind: Kind) -> String {
    match kind {
        Kind::Semaphore | Kind::Shared(_) => format!("{{ raise = \"{object}\" }}"),
        Kind::Pipe | Kind::Socket => format!("{{ send = \"{object}\", bytes = \"1B\" }}"),
    }
}
