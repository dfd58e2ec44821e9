//! A CPU idled that it may use.

use super::waited;
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::verdict::Finding;
use crate::words::{list, share, thousandths};

/// Of what it wanted it waited so much, in thousandths.
const LEAST_WAITED: u64 = 400;
/// Of its wait some CPU idled that it may use, in thousandths. Less is the time that balancing
/// takes, and idle moments that are too short to be used.
const LEAST_IDLE: u64 = 500;

/// Of those who ran where it waited so much may not leave, in thousandths.
const LEAST_BOUND: u64 = 500;

const CURES: &[Cure] = &[
    Cure::new(
        "see whether the scheduler balances there: cpuset partitions, isolcpus and \
         sched_relax_domain_level switch it off",
        "where that was meant, its CPUs are disturbed again",
    ),
    Cure::new(
        "try another scheduler (scx_warmq looks for waiting tasks before a CPU idles)",
        "another scheduler for all tasks",
    )
    .on("Linux 6.12 or later with sched_ext"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let idle = thousandths(case.tally.idle_inside, case.tally.waited);
    if case.waited < LEAST_WAITED || idle < LEAST_IDLE {
        return None;
    }
    let unknown = match may_have_a_quota(case) {
        true => {
            " The recording does not say whether its group has a quota, which this scheduler may \
             keep by itself."
        }
        false => "",
    };
    Some(Finding {
        cause: String::new(),
        says: format!("{}, though a CPU idled that it may use", waited(case)),
        because: format!(
            "For {} of its wait there was one: {}.{unknown}",
            share(idle),
            why(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// Why it was not moved, as far as the records show.
fn why(case: &Case<'_, '_>) -> String {
    let facts = case.facts;
    let near = thousandths(case.tally.idle_near, case.tally.idle_inside);
    if !facts.header.places.is_empty() && near < LEAST_IDLE {
        return format!(
            "under the cache of its own CPU for {} of that, so that tasks would have to move \
             between caches, which balancing does later and for more imbalance",
            share(near)
        );
    }
    let own = &facts.task(case.id).who.cpus;
    let is_bound = |id| {
        let cpus = &facts.task(id).who.cpus;
        !cpus.is_all() && cpus != own
    };
    if case.share_beside(is_bound) >= LEAST_BOUND {
        return format!(
            "{} may not use it, and balancing that meets tasks which it cannot move may leave the \
             others, too",
            list(&case.names_beside(is_bound), 3)
        );
    }
    "balancing left it where it was, or nobody woke the CPU".to_owned()
}

/// Whether a quota that nobody has recorded may be why: recorders say of each group whether it has
/// one (not so before `Record::Limit` was), and the lab of those that have.
fn may_have_a_quota(case: &Case<'_, '_>) -> bool {
    let header = case.facts.header;
    let groups = &case.facts.watcher.groups;
    let all = groups.upwards(case.group());
    let unknown = all.iter().any(|group| groups.limit(*group).is_none());
    unknown && header.clock != "simulated" && !shares_by_groups(header)
}
