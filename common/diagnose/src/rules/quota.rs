//! A quota of its group held it back.

use warmq_trace::{Limit, QuotaStat};
use warmq_units::Duration;

use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::verdict::Finding;
use crate::words::{count, list, part, share, span, thousandths};

/// In thousandths of the time that it asked for. A quota that is seldom met is there for peaks.
const LEAST: u64 = 200;

/// A group that has run for so much of what its quota allows, in thousandths, has used it up: what
/// is missing are parts of periods.
const USED_UP: u64 = 900;

const CURES: &[Cure] = &[
    Cure::new(
        "raise cpu.max of the group, or lift it (`max`; cgroup v1: cpu.cfs_quota_us, -1)",
        "the group may take more of the machine from others",
    ),
    Cure::new(
        "if the quota is meant, spread the work over the period, or use fewer threads: each has \
         less of it",
        "less runs at a time",
    ),
    Cure::new(
        "let the group keep what it leaves unused (cpu.max.burst; v1: cpu.cfs_burst_us)",
        "for a period it may use more than its quota",
    )
    .on("Linux 5.14 or later"),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let held = Held::of(case)?;
    Some(Finding {
        cause: held.name.clone(),
        says: format!(
            "{} was held back by the quota of {} for {} of {}",
            case.name(),
            held.name,
            span(held.span),
            span(held.asked)
        ),
        because: format!(
            "That is {} of the time for which it could have run; a throttled task runs on no CPU, \
             idle or not.{}",
            share(thousandths(held.span, held.asked)),
            held.counted(case)
        ),
        cures: CURES.to_vec(),
    })
}

/// A task that a quota has held back for long.
pub(super) struct Held {
    /// Its group, and what these are called that may have held it.
    group: Option<u32>,
    pub name: String,
    pub span: Duration,
    /// For how long it could have run.
    pub asked: Duration,
}

impl Held {
    pub fn of(case: &Case<'_, '_>) -> Option<Held> {
        let facts = case.facts;
        let own = case.tally.throttled;
        let all = facts.watcher.groups.upwards(case.group());
        let throttled = |group: &u32| facts.throttled(*group);
        let most = all.iter().copied().max_by_key(throttled);
        // A recorder sees no throttling of single tasks, which look as if they waited, on idle
        // CPUs, too; kernels count it for the group. What of that hit this task is at most what it
        // seemed to wait.
        let of_group = most.map(|group| throttled(&group)).unwrap_or_default();
        let by_kernel = of_group.min(case.tally.waited + case.tally.doubted);
        let span = own + by_kernel.max(by_scheduler(case, &all));
        let asked = case.wanted + own + case.tally.doubted;
        let names: Vec<String> = all.iter().map(|group| facts.group_name(*group)).collect();
        let counted = all.iter().copied().max_by_key(|group| {
            let stat = facts.watcher.quotas.of(*group);
            stat.map_or(0, |stat| stat.throttled)
        });
        (thousandths(span, asked) >= LEAST).then(|| Held {
            group: counted,
            name: list(&names, 3),
            span,
            asked,
        })
    }

    /// What the kernel counted of its group meanwhile, as its `cpu.stat` says.
    pub fn stat(&self, case: &Case<'_, '_>) -> Option<QuotaStat> {
        let watcher = case.facts.watcher;
        self.group.and_then(|group| watcher.quotas.of(group))
    }

    /// What its group used in a period on average, and what it may use.
    pub fn used(&self, case: &Case<'_, '_>) -> Option<(Duration, Duration)> {
        let (facts, group) = (case.facts, self.group?);
        let limit = facts.watcher.groups.limit(group)?;
        let most = allowed(limit, limit.period)?;
        let members = facts.members(group);
        let used: Duration = members.map(|(id, _)| facts.tally(id).ran).sum();
        let each =
            u128::from(used.0) * u128::from(limit.period.0) / u128::from(facts.period.0.max(1));
        Some((Duration(each as u64), most))
    }

    /// ` The kernel counted 32 periods ...`, if it did.
    pub fn counted(&self, case: &Case<'_, '_>) -> String {
        let stat = self.stat(case).map(|stat| {
            format!(
                " Of {} periods (nr_periods) {} were throttled (nr_throttled), for {} over all CPUs.",
                count(stat.periods),
                count(stat.throttled),
                span(stat.span)
            )
        });
        let used = self.used(case).map(|(used, most)| {
            format!(
                " The group used {} of {} in a period.",
                span(used),
                span(most)
            )
        });
        [stat, used].into_iter().flatten().collect()
    }
}

/// Whether a group that used so much of what it may had used it up: what is missing are parts of
/// periods.
pub(super) fn is_used_up((used, most): (Duration, Duration)) -> bool {
    part(most, USED_UP) <= used
}

/// For how long a scheduler has held it back that keeps quotas by itself (`cgroup_set_bandwidth`),
/// of which there is no record: its groups' own, while a CPU idled that it may use, if one of these
/// has used up its quota.
fn by_scheduler(case: &Case<'_, '_>, groups: &[u32]) -> Duration {
    let keeps_them = !shares_by_groups(case.facts.header);
    let used_up = groups.iter().any(|group| has_used_up(case, *group));
    match keeps_them && used_up {
        true => case.tally.idle.inside,
        false => Duration::ZERO,
    }
}

fn has_used_up(case: &Case<'_, '_>, group: u32) -> bool {
    let Some(limit) = case.facts.watcher.groups.limit(group) else {
        return false;
    };
    let members = case.facts.members(group);
    let used = members.map(|(id, _)| case.facts.tally(id).ran).sum();
    let most = allowed(limit, case.facts.period);
    most.is_some_and(|most| is_used_up((used, most)))
}

/// What a group may use in `span`; none: as much as it likes.
fn allowed(limit: Limit, span: Duration) -> Option<Duration> {
    let all = u128::from(limit.quota.0) * u128::from(span.0);
    let of_periods = all.checked_div(limit.period.0.into())?;
    let most = u64::try_from(of_periods).ok().map(Duration);
    most.filter(|most| *most > Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_quota_allows_is_in_proportion() {
        let ms = Duration::from_ms;
        let limit = |quota, period| Limit { quota, period };
        let table = [
            (limit(ms(6), ms(100)), Some(ms(60))),
            (limit(ms(150), ms(100)), Some(ms(1_500))),
            (limit(Duration(u64::MAX), ms(100)), None),
            (limit(Duration::ZERO, ms(100)), None),
            (limit(ms(6), Duration::ZERO), None),
        ];
        for (limit, expected) in table {
            assert_eq!(allowed(limit, ms(1_000)), expected, "{limit:?}");
        }
    }
}
