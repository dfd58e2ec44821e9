//! It and the task that it wakes and is woken by move between caches again and again.
//!
//! What one of the two writes the other one reads. Under one cache that takes some ns, between
//! caches some 100 ns a line, and after a move nothing that it had used is in the new cache.

use warmq_trace::Context;
use warmq_units::TaskId;

use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{count, rate};

/// Of its wakeups so many are by that task, in thousandths.
const LEAST_BY: u64 = 500;
/// It moves at every so manyth wakeup, at least.
const LEAST_OFTEN: u64 = 10;

const CURES: &[Cure] = &[
    Cure::new(
        "bind both to the CPUs of one cache (taskset, a cpuset)",
        "they wait there while CPUs elsewhere idle",
    ),
    Cure::new(
        "let the kernel keep threads of a process under one cache (CONFIG_SCHED_CACHE)",
        "that cache's CPUs have more to do",
    )
    .on("Linux 7.2 or later"),
    Cure::new(
        "name what they share (warmq.h) under scx_warmq",
        "another scheduler for all tasks",
    )
    .on("Linux 6.16 to 7.0, or 7.3, with sched_ext"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let (facts, tally) = (case.facts, case.tally);
    let partner = partner_of(case, case.id)?;
    let is_pair = partner != case.id && partner_of(case, partner) == Some(case.id);
    if !is_pair || tally.llc_moves * LEAST_OFTEN < tally.wakeups {
        return None;
    }
    let often = |times| count(rate(times, facts.period));
    let mut pair = [case.id, partner];
    pair.sort_unstable();
    Some(Finding {
        cause: format!("{} and {}", facts.name(pair[0]), facts.name(pair[1])),
        says: format!(
            "{} moves between caches {} times a second, and so does not stay near {}",
            case.name(),
            often(tally.llc_moves),
            facts.name(partner)
        ),
        because: format!(
            "It is woken {} times a second, mostly by {}, which it wakes itself: what one writes the \
             other reads. That one moves {} times a second.",
            often(tally.wakeups),
            facts.name(partner),
            often(facts.tally(partner).llc_moves)
        ),
        cures: CURES.to_vec(),
    })
}

/// The task that wakes `id` most often, by half of its wakeups and more.
fn partner_of(case: &Case<'_, '_>, id: TaskId) -> Option<TaskId> {
    let tally = case.facts.tally(id);
    let known = tally.wakers.known.iter();
    let by_tasks = known.filter_map(|((waker, context), times)| {
        let of_task = matches!(context, Context::Task | Context::Unknown);
        Some((waker.filter(|_| of_task)?, *times))
    });
    let (waker, times) = by_tasks.max_by_key(|(_, times)| *times)?;
    (times * 1_000 >= tally.wakeups * LEAST_BY).then_some(waker)
}
