//! What was taken of a trace.

use std::collections::{BTreeMap, BTreeSet};

use warmq_trace::{Comm, Groups, Header, Table};
use warmq_units::{Duration, Instant, TaskId};

use crate::missing::Missing;
use crate::task::Task;

/// What was taken of a trace.
#[derive(Debug)]
pub struct Taken {
    pub(crate) header: Header,
    pub(crate) tasks: Table<TaskId, Task>,
    pub(crate) groups: Groups,
    pub(crate) missing: Missing,
    pub(crate) cpus: usize,
    pub(crate) from: Instant,
    pub(crate) until: Instant,
    /// There was more than is kept.
    pub(crate) full: bool,
}

impl Taken {
    /// How many CPUs the recorded machine has, as far as its trace shows.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// For how long was taken.
    pub fn time(&self) -> Duration {
        self.until.since(self.from)
    }

    /// Whether what came later was left out, because there was too much.
    pub fn is_cut(&self) -> bool {
        self.full
    }

    /// How many moments there are.
    pub fn moments(&self) -> usize {
        let rows = self.tasks.iter().map(|(_, task)| task.row.moments.len());
        rows.sum()
    }

    /// How many tasks did anything.
    pub fn tasks(&self) -> usize {
        self.tasks
            .iter()
            .filter(|(_, task)| did_anything(task))
            .count()
    }

    /// The tasks of the scenario, in the order of its tables, and what people call each.
    pub fn named(&self) -> Vec<(TaskId, String)> {
        let mut names = self.names();
        let tasks = self.tasks.iter().filter(|(_, task)| did_anything(task));
        let named = tasks.map(|(id, _)| (id, names.remove(&id).unwrap_or_default()));
        named.collect()
    }

    /// What people call each task, by its id.
    pub(crate) fn names(&self) -> BTreeMap<TaskId, String> {
        let several = self.several();
        let tasks = self.tasks.iter();
        tasks
            .map(|(id, task)| (id, self.name(id, task, &several)))
            .collect()
    }

    /// The tables of the scenario that have more than one task.
    fn several(&self) -> BTreeSet<u32> {
        let roles = self.tasks.iter().filter_map(|(_, task)| task.who.role);
        let several = roles.filter(|(_, number)| *number > 0);
        several.map(|(table, _)| table).collect()
    }

    fn name(&self, id: TaskId, task: &Task, several: &BTreeSet<u32>) -> String {
        let who = &task.who;
        if let Some((table, number)) = who.role
            && let Some(name) = self.header.names.tasks.get(table as usize)
        {
            return match several.contains(&table) {
                true => format!("{name} {number}"),
                false => name.clone(),
            };
        }
        let comm = match who.comm == Comm::default() {
            true => "task".to_owned(),
            false => who.comm.to_string(),
        };
        format!("{comm} {}", who.tid.unwrap_or(id.0))
    }
}

/// Whether a task has anything to play.
pub(crate) fn did_anything(task: &Task) -> bool {
    !task.row.moments.is_empty()
}
