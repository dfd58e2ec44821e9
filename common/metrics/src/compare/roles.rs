//! Which task of a scenario a task is.

use std::fmt;
use std::rc::Rc;

use warmq_trace::{Record, Table};
use warmq_units::TaskId;

use super::Recording;

/// A task of a scenario, by the name of its table and its number there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    table: Rc<str>,
    number: u32,
    /// Whether there are others of its table, in either recording.
    many: bool,
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.many {
            true => write!(formatter, "{}[{}]", self.table, self.number),
            false => formatter.write_str(&self.table),
        }
    }
}

/// The tasks of a recording.
#[derive(Debug, Default)]
pub(super) struct Roles(Table<TaskId, Option<Who>>);

impl Roles {
    /// Those of both. A role may be recorded after the task's first switch, so all records are
    /// searched.
    pub fn of(both: [&Recording; 2]) -> [Roles; 2] {
        let roles = both.map(roles);
        let many: Vec<Rc<str>> = roles
            .iter()
            .flatten()
            .filter(|(_, who)| who.number > 0)
            .map(|(_, who)| who.table.clone())
            .collect();
        roles.map(|roles| {
            let mut table = Table::default();
            for (task, who) in roles {
                let many = many.contains(&who.table);
                *table.touch(task) = Some(Who { many, ..who });
            }
            Roles(table)
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().next().is_none()
    }

    /// Whether any task is in both.
    pub fn know_of(&self, other: &Roles) -> bool {
        let both = |mine: &Who| other.all().any(|(_, who)| who.table == mine.table);
        self.all().any(|(_, who)| both(who))
    }

    pub fn who(&self, task: TaskId) -> Option<&Who> {
        self.0.get(task).and_then(Option::as_ref)
    }

    /// All of them, in the order of ids.
    pub fn all(&self) -> impl Iterator<Item = (TaskId, &Who)> {
        let all = self.0.iter();
        all.filter_map(|(task, who)| Some((task, who.as_ref()?)))
    }
}

fn roles(recording: &Recording) -> Vec<(TaskId, Who)> {
    let names = recording.header.names.tasks.iter();
    let names: Vec<Rc<str>> = names.map(|name| name.as_str().into()).collect();
    let records = recording.records.iter();
    records
        .filter_map(|(_, record)| match *record {
            Record::Role {
                task,
                table,
                number,
            } => {
                let table = names.get(table as usize)?.clone();
                let many = false;
                let who = Who {
                    table,
                    number,
                    many,
                };
                Some((task, who))
            }
            _ => None,
        })
        .collect()
}
