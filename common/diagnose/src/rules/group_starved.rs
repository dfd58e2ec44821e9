//! It waited beside a group whose tasks are woken often: the fault of Linux 6.13 to 7.0.
//!
//! Each wakeup and each sleep changes how the group's weight is divided between its CPUs, and the
//! kernels from 6.13 on multiply what the group owes or is owed at each such change while it runs.
//! The other group waits for good. It takes some 400 wakeups a second on the CPU, and something of
//! the group that is runnable on another CPU, whether it runs there or waits: with all of it on one
//! CPU nothing is divided.

use warmq_trace::Header;
use warmq_units::{Release, TaskId};

use super::{capital, got, waited};
use crate::Cure;
use crate::case::Case;
use crate::release::kernel_of;
use crate::verdict::Finding;
use crate::words::{count, list, share};

/// Wakeups a second of the group's tasks on the CPU. Measured: 400 do not starve, 500 do.
const LEAST_WOKEN: u64 = 400;
/// Of those who ran where it waited, the group's tasks had so much, in thousandths.
const LEAST_BESIDE: u64 = 700;
/// Of the time some task of the group was runnable elsewhere for so much, in thousandths.
const LEAST_ELSEWHERE: u64 = 100;

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    if !case.starves {
        return None;
    }
    let facts = case.facts;
    let own = case.group();
    let (group, had) = group_beside(case)?;
    let cpus = case.where_it_waited();
    let of_group = || facts.members(group);
    let woken: Vec<(TaskId, u64)> = of_group()
        .map(|(id, _)| (id, facts.woken_on(id, &cpus)))
        .filter(|(_, often)| *often > 0)
        .collect();
    let often: u64 = woken.iter().map(|(_, often)| often).sum();
    let elsewhere: u64 = of_group()
        .map(|(id, _)| facts.wanted_elsewhere(id, cpus.first().copied()))
        .sum();
    if had < LEAST_BESIDE || often < LEAST_WOKEN || elsewhere < LEAST_ELSEWHERE {
        return None;
    }
    let most = woken.into_iter().max_by_key(|(id, often)| (*often, *id));
    let most = most.map_or(String::new(), |(id, _)| facts.name(id));
    let (own, other) = (facts.group_name(own), facts.group_name(group));
    let names = list(&case.names_beside(|id| is_of(case, id, group)), 3);
    Some(Finding {
        cause: other.clone(),
        says: format!(
            "{}, of {own}, beside {} wakeups a second of {other}",
            waited(case),
            count(often)
        ),
        because: format!(
            "{}. {most} is woken there most often, and something of the group was runnable elsewhere for \
             {} of the time; {}. {}",
            capital(&case.had(&format!("{other} ({names})"), |id| is_of(case, id, group))),
            share(elsewhere.min(1_000)),
            got(case),
            about_kernel(facts.header),
        ),
        cures: cures(&facts.header.preemption),
    })
}

fn is_of(case: &Case<'_, '_>, id: TaskId, group: u32) -> bool {
    let of = case.facts.task(id).who.group;
    of == group || case.facts.watcher.groups.upwards(of).contains(&group)
}

/// The other group whose tasks ran most where it waited, and what they had in thousandths.
fn group_beside(case: &Case<'_, '_>) -> Option<(u32, u64)> {
    let own = case.group();
    let mut groups: Vec<u32> = Vec::new();
    for (id, _) in &case.tally.beside {
        let of = case.facts.task(*id).who.group;
        groups.extend(case.facts.outermost_own_group(of, own));
    }
    groups.sort_unstable();
    groups.dedup();
    let all = groups.into_iter();
    let had = all.map(|group| (group, case.share_beside(|id| is_of(case, id, group))));
    had.max_by_key(|(_, had)| *had)
}

const LAZY: Cure = Cure::new(
    "use lazy preemption, which helps if wakeups come from another CPU under the same last-level \
     cache: `preempt=lazy`, or `echo lazy > /sys/kernel/debug/sched/preempt`",
    "whoever is woken may wait for a tick",
)
.on("Linux 6.13 or later");
const CURES: &[Cure] = &[
    Cure::new(
        "upgrade to Linux 7.1, or to 6.18.45 or a later one of 6.18",
        "a reboot",
    ),
    Cure::new(
        "switch sessions' groups off: `sysctl kernel.sched_autogroup_enabled=0` (not for cgroups)",
        "a session of many tasks has as much more than one of few",
    ),
    LAZY,
    Cure::new(
        "give the group that starves three to four times the weight (`cpu.weight`), if that is \
         right otherwise (tried in the lab only)",
        "the other group has less by as much",
    ),
    Cure::new("load scx_warmq", "another scheduler for all tasks")
        .on("Linux 6.16 to 7.0, or 7.3, with sched_ext"),
    Cure::new(
        "SCHED_BATCH for the task that is woken does not help",
        "nothing is gained",
    ),
];

/// What helps under a kernel of this preemption model, which may be unknown. A trace of lazy
/// preemption shows that this model did not help.
fn cures(preemption: &str) -> Vec<Cure> {
    let mut cures = CURES.to_vec();
    cures.retain(|cure| preemption != "lazy" || *cure != LAZY);
    cures
}

/// Whether a kernel has the fault.
pub(super) fn has_fault(release: Release) -> bool {
    match (release.major, release.minor) {
        (6, 18) => release.patch.is_none_or(|patch| patch < 45),
        (6, minor) => minor >= 13,
        (7, minor) => minor == 0,
        _ => false,
    }
}

fn about_kernel(header: &Header) -> String {
    let sign = "These are the signs of the fault of Linux 6.13 to 7.0";
    match kernel_of(header) {
        Some((who, release)) if has_fault(release) => {
            format!("{sign}, and {who} is one of those that have it.")
        }
        Some((who, _)) => format!("{sign}, though {who} should not have it."),
        None => format!("{sign}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lazy_preemption_is_no_cure_where_it_is_in_force() {
        let lazy = |preemption| {
            let cures = cures(preemption);
            cures.iter().filter(|cure| **cure == LAZY).count()
        };
        assert_eq!(["full", "none", "", "lazy"].map(lazy), [1, 1, 1, 0]);
        assert!(
            cures("lazy")
                .iter()
                .any(|cure| cure.does.contains("cpu.weight"))
        );
    }

    #[test]
    fn kernels_with_the_fault_are_known_by_their_release() {
        let has = [
            "6.13.1",
            "6.18.15+deb14-amd64",
            "6.18",
            "6.18.44-x",
            "6.19.3",
            "7.0.1",
        ];
        let fault = |release| Release::at_start_of(release).map(has_fault);
        for release in has {
            assert_eq!(fault(release), Some(true), "{release}");
        }
        for release in ["6.12.117", "6.18.45", "7.1.5", "5.15.0"] {
            assert_eq!(fault(release), Some(false), "{release}");
        }
    }
}
