//! A group of much weight runs beside it: containers beside system services and threads of the
//! kernel.
//!
//! The group of all containers has a weight that grows with the machine (kubelet gives
//! `kubepods.slice` 39 for each CPU: 313 with 8, 2,500 with 64), and the weight counts where its
//! tasks run. Where these are on few CPUs, whoever is outside of the group has next to nothing
//! there: a service of `system.slice`, of weight 100, and threads of the kernel, which are in the
//! root group and weigh as much each.

use warmq_units::{CpuId, TaskId};

use super::{got, late_or_waited};
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::preference::Rival;
use crate::verdict::Finding;
use crate::words::count;

/// Of what it wanted it waited so much, in thousandths, unless it is late at its wakeups. Of two
/// groups whose tasks compute that is another rule: it is what their weights ask for.
const LEAST_WAITED: u64 = 800;
/// The group weighs so many times as much, in all and on the CPU, in tenths.
const LEAST_TIMES: u64 = 20;
/// Its tasks had so much of the CPU meanwhile, in thousandths.
const LEAST_BESIDE: u64 = 500;
/// The weight of a task of nice 0, and of a group of the usual `cpu.weight`. Who weighs less was
/// given less.
const USUAL: u64 = 1_024;

const CURES: &[Cure] = &[
    Cure::new(
        "give its own group more weight (`systemctl set-property system.slice CPUWeight=`)",
        "the other group has less whenever both want a CPU",
    ),
    Cure::new(
        "give the other group less weight (cpu.weight of kubepods.slice)",
        "the same; what its members have among themselves stays",
    ),
    Cure::new(
        "give threads of the kernel a lower nice value (`renice`, \
         /sys/devices/virtual/workqueue/*/nice)",
        "programs wait for them, for as long as they work",
    ),
    Cure::new(
        "let the other group use more CPUs: its weight is divided by where its tasks run",
        "they leave warm caches, and disturb more CPUs",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    let waits = case.waited_long && case.waited >= LEAST_WAITED && case.group() == 0;
    let judged = shares_by_groups(facts.header) && !case.starves && (waits || case.late.is_some());
    let cpu = *case.where_it_waited().first()?;
    let heavier = |id: TaskId| is_outweighed(case, cpu, id);
    if !judged || case.share_beside(heavier) < LEAST_BESIDE {
        return None;
    }
    let first = case.tally.beside.iter().find(|(id, _)| heavier(*id))?.0;
    let (other, own) = facts.rivals(first, case.id);
    let name = facts.group_name(other.group?);
    Some(Finding {
        cause: name.clone(),
        says: format!(
            "{}, beside {name}, which weighs {} on CPU {} against {}",
            late_or_waited(case),
            count(weight_on(case, cpu, other)),
            cpu.0,
            count(weight_on(case, cpu, own)),
        ),
        because: format!(
            "{}. In all the group weighs {}, where {} are usual, and the part counts on each CPU \
             that its load has there; {}.",
            case.had("Groups of at least twice its weight", heavier),
            count(other.weight),
            count(USUAL),
            got(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// Whether `id` is of a group that was given much weight, and counts for much on `cpu`.
fn is_outweighed(case: &Case<'_, '_>, cpu: CpuId, id: TaskId) -> bool {
    let (other, own) = case.facts.rivals(id, case.id);
    let times = |other: u64, own: u64| other * 10 >= own * LEAST_TIMES;
    other.group.is_some()
        && own.weight >= USUAL
        && times(other.weight, own.weight)
        && times(weight_on(case, cpu, other), weight_on(case, cpu, own))
}

fn weight_on(case: &Case<'_, '_>, cpu: CpuId, rival: Rival) -> u64 {
    let dues = &case.facts.dues;
    let of_group = rival.group.map(|group| dues.weight_on(cpu, group));
    of_group.unwrap_or(rival.weight)
}
