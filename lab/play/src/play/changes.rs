//! `[[change]]`: what is set while a scenario runs.

use std::rc::Rc;

use warmq_kernel::{Boot, Change, Fragment, GroupId, Operator, group_weight_of_nice};
use warmq_scenario::program::{APP, Planned, To, Whom};
use warmq_units::{CpuSet, TaskId};

use super::specs::{NO_CPU, policy};
use super::stage::Stage;
use super::{Trouble, cards};

/// Sees to it that every change takes place at its time.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
    for (place, change) in stage.changes.iter().enumerate() {
        lacking(change).map_or(Ok(()), |what| Err(Trouble::Lacking(what.to_owned())))?;
        let (stage, mut times) = (stage.clone(), change.times);
        match (&change.whom, times.next()) {
            // A source knows its changes itself.
            (Whom::Sources(..), _) | (_, None) => {}
            (_, Some(first)) => boot.operator(first, async move |operator| {
                let change = &stage.changes[place];
                take_place(&stage, change, &operator).await;
                for at in times {
                    operator.until(at).await;
                    take_place(&stage, change, &operator).await;
                }
            }),
        }
    }
    Ok(())
}

/// What is wrong with a change that names CPUs, none of which the machine has.
fn lacking(change: &Planned) -> Option<&'static str> {
    let of_set = change.set.iter().find_map(|to| match to {
        To::Cpus(cpus) if cpus.is_empty() => Some(NO_CPU),
        To::Arrival(cpus) if cpus.is_empty() => Some(cards::NO_CPU),
        _ => None,
    });
    match &change.whom {
        Whom::Cpus(cpus) if cpus.is_empty() => Some("a change of CPUs that the machine lacks"),
        _ => of_set,
    }
}

/// All that is set, for one of whom it is set after the other.
async fn take_place(stage: &Stage, change: &Planned, operator: &Operator) {
    for to in &change.set {
        let changes: Vec<Change> = match &change.whom {
            Whom::Tasks(kind, numbers) => {
                let tasks = stage.alive(*kind, numbers).into_iter();
                tasks.filter_map(|task| of_task(to, task, stage)).collect()
            }
            Whom::Groups(groups) => {
                let groups = stage.objects.groups[groups.clone()].iter();
                groups.filter_map(|group| of_group(to, *group)).collect()
            }
            Whom::Cpus(cpus) => of_cpus(to, cpus),
            Whom::Sources(..) | Whom::Scheduler => Vec::new(),
        };
        for change in changes {
            operator.change(change).await;
        }
    }
}

fn of_cpus(to: &To, cpus: &CpuSet) -> Vec<Change> {
    match to {
        To::Online(online) => cpus
            .iter()
            .map(|cpu| Change::Online(cpu, *online))
            .collect(),
        _ => Vec::new(),
    }
}

/// What sets it for a task.
pub(super) fn of_task(to: &To, task: TaskId, stage: &Stage) -> Option<Change> {
    let fragment = |number| Fragment { app: APP, number };
    Some(match to {
        To::Cpus(cpus) => Change::Affinity(task, cpus.clone()),
        To::Nice(nice) => Change::Nice(task, *nice),
        To::Policy(wanted) => Change::Policy(task, policy(wanted)),
        To::Slice(slice) => Change::Slice(task, Some(*slice)),
        To::UclampMin(min) => Change::UclampMin(task, *min),
        To::UclampMax(max) => Change::UclampMax(task, *max),
        To::Group(group) => Change::Group(task, stage.objects.groups[*group]),
        To::Fragment(number) => Change::Fragment(task, number.map(fragment)),
        To::Stopped(true) => Change::Stop(task),
        To::Stopped(false) => Change::Continue(task),
        _ => return None,
    })
}

fn of_group(to: &To, group: GroupId) -> Option<Change> {
    Some(match to {
        To::Weight(weight) => Change::Weight(group, *weight),
        // Of groups, only autogroups have a nice value.
        To::Nice(nice) => Change::Weight(group, group_weight_of_nice(*nice)),
        To::Quota(quota) => Change::Quota(group, *quota),
        To::Burst(burst) => Change::Burst(group, *burst),
        To::Idle(idle) => Change::Idle(group, *idle),
        To::Cpus(cpus) => Change::Cpuset(group, cpus.clone()),
        To::Frozen(true) => Change::Freeze(group),
        To::Frozen(false) => Change::Thaw(group),
        _ => return None,
    })
}
