//! An autogroup is a session, and a session consists of whole processes: who is in one cannot leave
//! it, and nobody can join it later.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use super::spawns::{starts, threads};
use crate::bind::{Bound, EvalError};
use crate::change::{Set, Target};
use crate::object::{ObjectId, ObjectKind};
use crate::scenario::Scenario;
use crate::step::{Action, Reference};
use crate::task::{TaskKind, TaskKindId};

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    named_by_those_who_inherit(scenario, findings);
    let members = members(scenario);
    for id in &members {
        let member = scenario.task(*id);
        moves(member, findings);
        threads_in_cgroups(scenario, member, findings);
    }
    for change in scenario.changes() {
        let (Target::Task(crate::step::TaskReference { task, .. }) | Target::Tasks(task)) =
            &change.target
        else {
            continue;
        };
        if members.contains(task) {
            let groups = change.set.iter().filter_map(group_set);
            groups.for_each(|group| cannot_leave(scenario.task(*task), group, findings));
        }
    }
}

/// Whether the group `id` is an autogroup.
fn is_autogroup(scenario: &Scenario, id: ObjectId) -> bool {
    matches!(scenario.object(id).kind, ObjectKind::Autogroup { .. })
}

/// The autogroup that the table of `task` names.
fn own_autogroup<'t>(scenario: &Scenario, task: &'t TaskKind) -> Option<&'t Reference> {
    let group = task.group.as_ref();
    group.filter(|group| is_autogroup(scenario, group.object))
}

/// A task that a step starts is in the session of the one that starts it, whatever it names.
fn named_by_those_who_inherit(scenario: &Scenario, findings: &mut Findings<'_>) {
    for task in scenario.tasks().iter().filter(|task| task.spawned) {
        if let Some(group) = own_autogroup(scenario, task) {
            let what = format!(
                "a step starts `{}`, which is then in the session of the task that starts it",
                task.key
            );
            let help =
                "leave `group` out here, and name it in the table of the task that starts it";
            findings.report(&group.spot, what, help);
        }
    }
}

/// The tables of tasks that are in an autogroup, or may be: those that name one, and those that
/// these start and that name no group.
fn members(scenario: &Scenario) -> BTreeSet<TaskKindId> {
    let tables = (0..).map(TaskKindId).zip(scenario.tasks());
    let own = tables.filter(|(_, task)| own_autogroup(scenario, task).is_some());
    let mut left: Vec<TaskKindId> = own.map(|(id, _)| id).collect();
    let mut members = BTreeSet::new();
    while let Some(id) = left.pop() {
        if members.insert(id) {
            let started = starts(scenario.task(id))
                .into_iter()
                .map(|start| start.task);
            left.extend(started.filter(|id| scenario.task(*id).group.is_none()));
        }
    }
    members
}

fn group_set(set: &Set) -> Option<&Reference> {
    match set {
        Set::Group(group) => Some(group),
        _ => None,
    }
}

fn cannot_leave(member: &TaskKind, group: &Reference, findings: &mut Findings<'_>) {
    let what = format!(
        "`{}` is in an autogroup, which is a matter of whole processes, and moves to a cgroup",
        member.key
    );
    let help = "leave the step or change out, or let the task begin in a cgroup";
    findings.report(&group.spot, what, help);
}

/// Steps by which a member moves to a cgroup.
fn moves(member: &TaskKind, findings: &mut Findings<'_>) {
    for step in member.steps() {
        if let Action::Set(set) = &step.action
            && let Some(group) = group_set(set)
        {
            cannot_leave(member, group, findings);
        }
    }
}

/// Threads of a member's process that are in a cgroup.
fn threads_in_cgroups(scenario: &Scenario, member: &TaskKind, findings: &mut Findings<'_>) {
    for thread in threads(member) {
        let thread = scenario.task(thread.task);
        let Some(group) = &thread.group else {
            continue;
        };
        if !is_autogroup(scenario, group.object) {
            let what = format!(
                "`{}` is in a cgroup, and a thread of `{}`, whose process is in an autogroup",
                thread.key, member.key
            );
            let help = "leave `group` out here, or start it as a process: { fork = \"NAME\" }";
            findings.report(&group.spot, what, help);
        }
    }
}

/// The group of a task: none, or which of which table.
type InGroup = Option<(ObjectId, u64)>;

/// All tasks of one process are in the same autogroup, or none of them is in any.
pub(super) fn bound(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    let mut objects = scenario.objects().iter();
    if !objects.any(|object| matches!(object.kind, ObjectKind::Autogroup { .. })) {
        return;
    }
    let mut processes: BTreeMap<(ObjectId, u64), (&TaskKind, InGroup)> = BTreeMap::new();
    for (id, task) in (0..).map(TaskKindId).zip(scenario.tasks()) {
        let Some(process) = task.process.as_ref().filter(|_| !task.spawned) else {
            continue;
        };
        for number in 0..bound.tasks(id) {
            // What cannot be computed was reported already.
            let Ok((process, group)) =
                place(bound, task, process, &bound.indexes_of_task(id, number))
            else {
                continue;
            };
            let (first, its) = *processes.entry(process).or_insert((task, group));
            if its != group
                && [its, group]
                    .into_iter()
                    .flatten()
                    .any(|(id, _)| is_autogroup(scenario, id))
            {
                apart(bound, (first, its), (task, group), findings);
                break;
            }
        }
    }
}

/// The process and the group of a task with these indexes.
fn place(
    bound: &Bound,
    task: &TaskKind,
    process: &Reference,
    at: &[u64],
) -> Result<((ObjectId, u64), InGroup), EvalError> {
    let process = (process.object, bound.object_number(process, at)?);
    let group = task.group.as_ref();
    let group =
        group.map(|group| Ok::<_, EvalError>((group.object, bound.object_number(group, at)?)));
    Ok((process, group.transpose()?))
}

/// Reports two tasks of one process that are not in the same session.
fn apart(
    bound: &Bound,
    (first, its): (&TaskKind, InGroup),
    (second, group): (&TaskKind, InGroup),
    findings: &mut Findings<'_>,
) {
    let name = |group: InGroup| match group {
        Some((id, number)) => {
            let name = &bound.scenario().object(id).name;
            match bound.objects(id) {
                1 => format!("in `{name}`"),
                _ => format!("in number {number} of `{name}`"),
            }
        }
        None => "in no group".to_owned(),
    };
    let what = format!(
        "`{}` ({}) and `{}` ({}) are in one process, and a session consists of whole processes",
        first.key,
        name(its),
        second.key,
        name(group)
    );
    let spot = second
        .group
        .as_ref()
        .map_or(&second.spot, |group| &group.spot);
    let help = "name the same autogroup in both tables, or give them processes of their own";
    findings.report(spot, what, help);
}
