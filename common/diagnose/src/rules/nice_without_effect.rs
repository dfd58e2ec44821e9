//! Nice values count within a group only: between sessions and cgroups they have no effect.

use warmq_units::TaskId;

use super::{got, late_or_waited};
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::verdict::Finding;
use crate::words::{count, list};

/// Of what it wanted it waited so much, in thousandths: two tasks that share a CPU wait for half.
const LEAST_WAITED: u64 = 400;
/// It weighs so many times as much as those, in tenths: by four steps of nice and more.
const LEAST_TIMES: u64 = 20;
/// They had so much of the CPU meanwhile, in thousandths.
const LEAST_BESIDE: u64 = 400;
/// What groups of sessions are called by the kernel.
const AUTOGROUP: &str = "autogroup";

const CURES: &[Cure] = &[
    Cure::new(
        "give the other session a nice value: `echo 10 > /proc/PID/autogroup`, of any process of it",
        "all of that session has less",
    )
    .on("groups of sessions (autogroup)"),
    Cure::new(
        "between cgroups, set cpu.weight, or cpu.idle where it may wait for all others",
        "all of that group has less",
    ),
    Cure::new(
        "switch sessions' groups off: `sysctl kernel.sched_autogroup_enabled=0`",
        "a session of many tasks has as much more than one of few",
    ),
    Cure::new(
        "start both in one session or group",
        "they share what one group is due",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    let waits = case.waited >= LEAST_WAITED || case.late.is_some();
    if !shares_by_groups(facts.header) || !waits || case.starves {
        return None;
    }
    let in_vain = |id| weighs_more_in_vain(case, id);
    if case.share_beside(in_vain) < LEAST_BESIDE {
        return None;
    }
    let first = case.tally.beside.iter().find(|(id, _)| in_vain(*id))?.0;
    let (other, own) = facts.rivals(first, case.id);
    let (other, own) = (other.group?, own.group?);
    let nice = |id: TaskId| facts.task(id).who.nice;
    let name = facts.group_name(other);
    let sessions = [other, own].map(|group| facts.watcher.groups.get(group).name);
    let what = match sessions
        .iter()
        .all(|name| name.raw().starts_with(AUTOGROUP))
    {
        true => "sessions, which the kernel groups by itself (autogroup)",
        false => "groups (of sessions, or cgroups)",
    };
    let names = list(&case.names_beside(in_vain), 3);
    Some(Finding {
        cause: name.clone(),
        says: format!(
            "{}, beside {names} of {name}: nice {} against {} has no effect between groups",
            late_or_waited(case),
            nice(case.id),
            nice(first)
        ),
        because: format!(
            "{}. By their nice values it weighs {} against {}, but they are of different {what}, \
             which weigh as much; {}.",
            case.had("They", in_vain),
            count(facts.weight(case.id)),
            count(facts.weight(first)),
            got(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// Whether it weighs much more than `id`, where that has no effect: their groups weigh about the
/// same, and neither task changes its nice value or group all the time.
fn weighs_more_in_vain(case: &Case<'_, '_>, id: TaskId) -> bool {
    let facts = case.facts;
    let (other, own) = facts.rivals(id, case.id);
    let times = |more: u64, less: u64| more * 10 >= less * LEAST_TIMES;
    other.group.is_some()
        && own.group.is_some()
        && !facts.is_realtime(id)
        && facts.is_settled(case.id)
        && facts.is_settled(id)
        && times(facts.weight(case.id), facts.weight(id))
        && !times(own.weight, other.weight)
        && !times(other.weight, own.weight)
}
