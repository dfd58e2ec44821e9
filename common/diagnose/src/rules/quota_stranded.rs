//! A quota held it back, though its group used less than that.
//!
//! A group has its quota in a pool, of which each CPU takes a slice (5 ms,
//! `sched_cfs_bandwidth_slice_us`) as its tasks begin to run there. What a CPU does not use of it
//! stays there but for what it gives back as it idles, and the next CPU finds the pool empty: its
//! tasks are throttled to the end of the period.

use super::quota::{Held, is_used_up};
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{span, thousandths};

/// Of the periods so many were throttled, in thousandths: fewer are peaks.
const LEAST_THROTTLED: u64 = 100;

const CURES: &[Cure] = &[
    Cure::new(
        "raise cpu.max (cgroup v1: cpu.cfs_quota_us) by some ms for each CPU that the group uses",
        "the group may use that much more",
    ),
    Cure::new(
        "use fewer CPUs at a time (fewer threads, a cpuset)",
        "less runs at a time",
    ),
    Cure::new(
        "let CPUs take less at once: `sysctl kernel.sched_cfs_bandwidth_slice_us=1000`",
        "they take the lock of the group's pool more often",
    ),
    Cure::new(
        "let the group keep what it leaves unused (cpu.max.burst; v1: cpu.cfs_burst_us)",
        "for a period it may use more than its quota",
    )
    .on("Linux 5.14 or later"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let held = Held::of(case)?;
    let (stat, used) = (held.stat(case)?, held.used(case)?);
    let throttled = stat.throttled * 1_000 / stat.periods;
    if is_used_up(used) || throttled < LEAST_THROTTLED {
        return None;
    }
    let idle = thousandths(case.tally.idle.inside, case.tally.waited);
    let idle = match idle >= 500 {
        true => " It seems to wait beside idle CPUs: so throttled tasks look in recordings.",
        false => "",
    };
    Some(Finding {
        cause: held.name.clone(),
        says: format!(
            "{} was held back by the quota of {} for {} of {}, though the group used {} of {} in a \
             period",
            case.name(),
            held.name,
            span(held.span),
            span(held.asked),
            span(used.0),
            span(used.1)
        ),
        because: format!(
            "CPUs take a quota in slices, and what one has left over another one cannot use.{}{idle}",
            held.counted(case)
        ),
        cures: CURES.to_vec(),
    })
}
