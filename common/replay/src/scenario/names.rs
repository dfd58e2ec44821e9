//! Names of tables, each used once.

use std::collections::{BTreeMap, BTreeSet};

use warmq_units::TaskId;

use crate::row::Kind;
use crate::taken::Taken;
use crate::task::Task;

/// What tables are called.
pub(super) struct Names {
    tasks: BTreeMap<TaskId, String>,
    inboxes: BTreeMap<TaskId, Kind>,
    groups: BTreeMap<u32, String>,
    /// Those of more than one task that are all in the same group: an autogroup has whole
    /// processes.
    processes: BTreeSet<u32>,
}

impl Names {
    pub fn of(taken: &Taken, tasks: &[(TaskId, &Task)]) -> Names {
        let called = taken.names();
        let mut used = BTreeSet::new();
        let mut names = BTreeMap::new();
        for (id, _) in tasks {
            let plain = identifier(&called[id], "task");
            let name = match used.contains(&plain) {
                false => plain,
                true => format!("{plain}_{}", id.0),
            };
            used.insert(name.clone());
            names.insert(*id, name);
        }
        let groups = taken.groups.iter().map(|(number, group)| {
            let name = identifier(group.name.raw(), "group");
            (number, format!("{name}_{number}"))
        });
        Names {
            tasks: names,
            inboxes: tasks.iter().map(|(id, task)| (*id, task.inbox)).collect(),
            groups: groups.collect(),
            processes: processes(tasks),
        }
    }

    pub fn task(&self, id: TaskId) -> &str {
        self.tasks.get(&id).map_or("", String::as_str)
    }

    pub fn group(&self, group: u32) -> String {
        let known = self.groups.get(&group).cloned();
        known.unwrap_or_else(|| format!("group_{group}"))
    }

    pub fn processes(&self) -> Vec<u32> {
        self.processes.iter().copied().collect()
    }

    pub fn process(&self, tgid: Option<u32>) -> Option<u32> {
        tgid.filter(|tgid| self.processes.contains(tgid))
    }

    /// What other tasks post to when they wake `id`.
    pub fn inbox(&self, id: TaskId) -> (Kind, String) {
        let kind = self.inboxes.get(&id).copied().unwrap_or_default();
        (kind, self.object(id, kind))
    }

    /// What `id` waits for.
    pub fn object(&self, id: TaskId, kind: Kind) -> String {
        let to = match kind {
            Kind::Semaphore => "wakes",
            Kind::Pipe => "pipe_to",
            Kind::Socket => "sent_to",
            Kind::Outside => "packets_for",
            Kind::Shared(object) => return format!("semaphore_{object}"),
            Kind::Turn(of) => return format!("turn_of_{}_at_{}", self.task(of), self.task(id)),
        };
        format!("{to}_{}", self.task(id))
    }
}

fn processes(tasks: &[(TaskId, &Task)]) -> BTreeSet<u32> {
    let mut groups: BTreeMap<u32, (u32, bool, u32)> = BTreeMap::new();
    for (_, task) in tasks {
        if let Some(tgid) = task.who.tgid {
            let known = groups.entry(tgid).or_insert((task.who.group, true, 0));
            known.1 &= known.0 == task.who.group;
            known.2 += 1;
        }
    }
    let shared = groups.into_iter();
    let shared = shared.filter(|(_, (_, alike, count))| *alike && *count > 1);
    shared.map(|(tgid, _)| tgid).collect()
}

/// Letters, digits and _, beginning with a letter.
fn identifier(text: &str, otherwise: &str) -> String {
    let name = text.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    let name = name.trim_matches('_');
    match name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => format!("{otherwise}_{name}")
            .trim_end_matches('_')
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        let made = ["kworker/0:1-events", "hog 3", "7zip", "", "(sd-pam)"];
        let made = made.map(|name| identifier(name, "task"));
        let wanted = ["kworker_0_1_events", "hog_3", "task_7zip", "task", "sd_pam"];
        assert_eq!(made, wanted);
    }
}
