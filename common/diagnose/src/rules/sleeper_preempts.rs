//! A task that sleeps often takes the CPU whenever it is woken.
//!
//! Schedulers that favour whoever has slept let it run at once. Where it is woken again and again,
//! a task that never sleeps has nothing but the time in between.

use warmq_units::TaskId;

use super::group_starved::has_fault;
use super::{got, waited};
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::release::kernel_of;
use crate::verdict::Finding;
use crate::words::{count, list, rate};

/// Wakeups a second on average of each task that counts as a frequent sleeper.
const LEAST_WOKEN: u64 = 20;
/// Of those who ran where it waited, frequent sleepers had so much, in thousandths.
const LEAST_BESIDE: u64 = 600;

const CURES: &[Cure] = &[
    Cure::new(
        "give the sleepers SCHED_BATCH, or more work at each wakeup",
        "they start later after a wakeup",
    ),
    Cure::new(
        "give them a higher nice value, or the waiting task a lower one",
        "they have less of the CPU",
    ),
    Cure::new(
        "use a kernel whose scheduler keeps what a task owes while it sleeps (EEVDF)",
        "another kernel",
    )
    .on("Linux 6.12 or later")
    .before(6, 12),
    Cure::new(
        "switch PLACE_LAG and DELAY_DEQUEUE on, if they are off (/sys/kernel/debug/sched/features)",
        "nothing: it is what the kernel starts with",
    )
    .from(6, 12),
    Cure::new(
        "use a scheduler that keeps what a task owes while it sleeps (scx_warmq)",
        "another scheduler for all tasks",
    )
    .on("Linux 6.12 or later"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if !case.starves {
        return None;
    }
    let woken = |id: TaskId| rate(facts.tally(id).wakeups, facts.period);
    // Between groups, kernels with the fault of `group-starved` look the same.
    let release = kernel_of(facts.header).map(|(_, release)| release);
    let faulty = shares_by_groups(facts.header) && release.is_some_and(has_fault);
    let competes = |id: TaskId| !faulty || facts.rivals(id, case.id).0.group.is_none();
    let naps = |id: TaskId| woken(id) >= LEAST_WOKEN && woken(id) > 2 * woken(case.id);
    let sleeps = |id: TaskId| naps(id) && competes(id);
    let had = case.share_beside(sleeps);
    if had < LEAST_BESIDE {
        return None;
    }
    let those = case.tally.beside.iter().map(|(id, _)| *id);
    let those: Vec<TaskId> = those.filter(|id| sleeps(*id)).collect();
    let often: u64 = those.iter().map(|id| woken(*id)).sum();
    let took: u64 = those.iter().map(|id| facts.tally(*id).took_at_wakeup).sum();
    let who = list(&case.names_beside(sleeps), 3);
    Some(Finding {
        cause: who.clone(),
        says: format!(
            "{} beside tasks that sleep and wake {} times a second: {who}",
            waited(case),
            count(often)
        ),
        because: format!(
            "{}. They took it from another task at a wakeup {} times a second; {}.",
            case.had("They", sleeps),
            count(rate(took, facts.period)),
            got(case)
        ),
        cures: CURES.to_vec(),
    })
}
