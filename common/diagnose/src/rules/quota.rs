//! A quota of its group held it back.

use super::owned;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{list, share, span, thousandths};

/// In thousandths of the time that it asked for. A quota that is seldom met is there for peaks.
const LEAST: u64 = 200;

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let own = case.tally.held.throttled;
    let all = case.facts.watcher.groups.upwards(case.group());
    let throttled = |group: &u32| case.facts.throttled(*group);
    let group = all.iter().copied().max_by_key(throttled);
    // A recorder sees no throttling of single tasks, which look as if they waited, on idle CPUs,
    // too; kernels count it for the group. What of that hit this task is at most what it seemed to
    // wait.
    let of_group = group.map(|group| throttled(&group)).unwrap_or_default();
    let held = own + of_group.min(case.tally.waited + case.tally.doubted);
    let asked = case.wanted + own + case.tally.doubted;
    if thousandths(held, asked) < LEAST {
        return None;
    }
    let name = list(
        &all.iter()
            .map(|group| case.facts.group_name(*group))
            .collect::<Vec<_>>(),
        3,
    );
    Some(Finding {
        cause: name.clone(),
        says: format!(
            "{} was held back by the quota of {name} for {} of {}",
            case.name(),
            span(held),
            span(asked)
        ),
        because: format!(
            "That is {} of the time for which it could have run; a throttled task runs on no CPU, \
             idle or not.",
            share(thousandths(held, asked))
        ),
        cures: owned(&[
            "raise cpu.max of the group, or lift it (`max`)",
            "if the quota is meant, spread the work over the period, or use fewer threads: each has \
             less of it",
        ]),
    })
}
