//! It may not use CPUs that idled.

use warmq_trace::Allowed;
use warmq_units::CpuSet;

use super::waited;
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{share, thousandths};

/// Of what it wanted it waited so much, in thousandths. Two tasks that share a CPU wait for half.
const LEAST_WAITED: u64 = 400;
/// Of its wait some CPU outside of its affinity idled, in thousandths.
const LEAST_IDLE: u64 = 500;

const CURES: &[Cure] = &[
    Cure::new(
        "widen its affinity (taskset -p, sched_setaffinity, the cpuset of its group)",
        "it may leave a warm cache, and run beside whom it was kept from",
    ),
    Cure::new(
        "bind what runs beside it to another CPU",
        "the same for those",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let idle = thousandths(case.tally.idle.outside, case.tally.waited);
    // Threads of the kernel that are bound to a CPU do its work, and nobody else's.
    let may_move = !case.facts.is_kernel(case.id);
    if !may_move || case.waited < LEAST_WAITED || idle < LEAST_IDLE {
        return None;
    }
    let cpus = &case.facts.task(case.id).who.cpus;
    Some(Finding {
        cause: String::new(),
        says: format!("{}, and may run on {} only", waited(case), shown(cpus)),
        because: format!(
            "For {} of its wait another CPU idled that its affinity excludes.{}",
            share(idle),
            of_cpuset(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// That all of its group are bound alike: so a cpuset does it.
fn of_cpuset(case: &Case<'_, '_>) -> String {
    let (facts, group) = (case.facts, case.group());
    let cpus = &facts.task(case.id).who.cpus;
    let mut members = facts.members(group);
    let alike = group != 0 && members.all(|(_, task)| task.who.cpus == *cpus);
    match alike && facts.members(group).nth(1).is_some() {
        true => format!(
            " All tasks of {} are bound so: that is its cpuset.",
            facts.group_name(group)
        ),
        false => String::new(),
    }
}

/// `CPU 1` or `CPUs 0-3,8`.
fn shown(cpus: &Allowed) -> String {
    let cpus: CpuSet = cpus.known().collect();
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {cpus}")
}

#[cfg(test)]
mod tests {
    use warmq_units::CpuId;

    use super::*;

    fn allowed(words: &[u64]) -> Allowed {
        let mut allowed = Allowed::default();
        for (word, cpus) in (0..).zip(words) {
            allowed.set(CpuId(64 * word), *cpus);
        }
        allowed
    }

    #[test]
    fn sets_of_cpus_are_shown_as_the_kernel_shows_them() {
        assert_eq!(shown(&allowed(&[2])), "CPU 1");
        assert_eq!(shown(&allowed(&[0b1_0000_1111, 1])), "CPUs 0-3,8,64");
    }
}
