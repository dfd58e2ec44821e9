//! It has the least weight, and got what that is worth.

use warmq_trace::Policy;
use warmq_units::CpuId;

use super::{got, waited};
use crate::Cure;
use crate::case::Case;
use crate::due::shares_by_groups;
use crate::preference::Rival;
use crate::verdict::Finding;
use crate::weight;
use crate::words::count;

/// It waited for so much of what it wanted, in thousandths.
const LEAST_WAITED: u64 = 800;
/// Those who ran where it waited have so many times its weight on average, in tenths.
const LEAST_TIMES: u64 = 20;
/// They had so much of the CPU meanwhile, in thousandths.
const LEAST_BESIDE: u64 = 500;

/// The weight of nice 0.
const USUAL: u64 = 1_024;

const OF_TASK: Cure = Cure::new(
    "that is what the weight asks for; if it is not meant, `renice` or `chrt --other`",
    "the others have less by as much as it has more",
);
const OF_GROUP: Cure = Cure::new(
    "that is what cpu.weight asks for; if it is not meant, raise it",
    "the other groups have less by as much as it has more",
);

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    if !case.waited_long || case.starves || case.waited < LEAST_WAITED {
        return None;
    }
    of_task(case).or_else(|| of_group(case))
}

/// Its own weight among tasks of its group. Between groups the weights of tasks count only where a
/// group has tasks elsewhere, and its weight is divided by what those weigh.
fn of_task(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if !facts.is_settled(case.id) {
        return None;
    }
    let own = facts.weight(case.id);
    let by_groups = shares_by_groups(facts.header);
    let cpus = case.where_it_waited();
    let counts = |rival: &Rival| {
        let on = |cpu: &CpuId| rival.group.map(|group| facts.dues.weight_on(*cpu, group));
        cpus.iter().find_map(on).unwrap_or(rival.weight)
    };
    let heavier = |id| {
        let (other, rival) = facts.rivals(id, case.id);
        let between_groups = by_groups && (other.group.is_some() || rival.group.is_some());
        let (other, rival) = match between_groups {
            true if own >= USUAL => return false,
            true => (counts(&other), counts(&rival)),
            false => (facts.weight(id), own),
        };
        facts.is_settled(id) && other * 10 >= rival * LEAST_TIMES
    };
    let had = case.share_beside(heavier);
    if had < LEAST_BESIDE {
        return None;
    }
    let who = &facts.task(case.id).who;
    let what = match who.policy() {
        Policy::Idle => "SCHED_IDLE".to_owned(),
        _ => format!("nice {}", who.nice),
    };
    Some(Finding {
        cause: what.clone(),
        says: format!("{} because of its weight: {what}", waited(case)),
        because: format!(
            "{}; {}.",
            case.had(
                &format!("Tasks of at least twice its weight of {}", count(own)),
                heavier
            ),
            got(case)
        ),
        cures: vec![OF_TASK],
    })
}

/// The weight of its group among others.
fn of_group(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    let own = case.group();
    let weight_of = |group: u32| weight::of_group(facts.watcher.groups.get(group).weight);
    let heavier = |id| {
        let other = facts.task(id).who.group;
        match (
            facts.outermost_own_group(own, other),
            facts.outermost_own_group(other, own),
        ) {
            (Some(own), Some(other)) => weight_of(other) * 10 >= weight_of(own) * LEAST_TIMES,
            _ => false,
        }
    };
    let had = case.share_beside(heavier);
    if had < LEAST_BESIDE {
        return None;
    }
    let name = facts.group_name(own);
    Some(Finding {
        cause: name.clone(),
        says: format!("{} because of the weight of {name}", waited(case)),
        because: format!(
            "{}; {}.",
            case.had("Groups of at least twice its weight", heavier),
            got(case)
        ),
        cures: vec![OF_GROUP],
    })
}

#[cfg(test)]
mod tests {
    use warmq_trace::{Comm, Header, Observer, Record};
    use warmq_units::{CpuId, Duration, Instant, TaskId};

    use crate::{Diagnosis, Kind, Watcher};

    const LEAST: TaskId = TaskId(1);
    const BESIDE: TaskId = TaskId(2);

    /// In five seconds on one CPU a task whose group weighs 1 runs for so long, beside one whose
    /// group weighs 100: 49.5 ms are its due.
    fn kinds(runs: Duration) -> Vec<Kind> {
        let header = Header {
            places: vec![(0, 0)],
            ..Header::default()
        };
        let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
        let group = |group, weight| Record::Cgroup {
            group,
            parent: 0,
            weight,
            name: Comm::new(&format!("g{weight}")),
        };
        let of = |task, group| Record::Group { task, group };
        let woken = |task| Record::Wakeup {
            waker: CpuId(0),
            task,
            target: CpuId(0),
        };
        let switch = |prev: Option<TaskId>, next| Record::Switch {
            cpu: CpuId(0),
            prev,
            prev_runnable: prev.is_some(),
            next: Some(next),
        };
        let second = Duration::from_s(1);
        for (at, record) in [
            (Duration::ZERO, group(1, 1)),
            (Duration::ZERO, group(2, 100)),
            (Duration::ZERO, of(LEAST, 1)),
            (Duration::ZERO, of(BESIDE, 2)),
            (Duration::ZERO, woken(LEAST)),
            (Duration::ZERO, woken(BESIDE)),
            (Duration::ZERO, switch(None, BESIDE)),
            (second, switch(Some(BESIDE), LEAST)),
            (second + runs, switch(Some(LEAST), BESIDE)),
            (second * 5, switch(Some(BESIDE), LEAST)),
        ] {
            watcher.see(Instant::START + at, &record);
        }
        let verdicts = Diagnosis::of(watcher).verdicts;
        verdicts.iter().map(|verdict| verdict.kind).collect()
    }

    /// A fifth of what is due may be all that is, where shares of cgroup v1 are rounded up.
    #[test]
    fn a_group_of_the_least_weight_starves_if_it_has_next_to_nothing() {
        assert_eq!(kinds(Duration::from_ms(8)), [Kind::LeastWeight]);
        let starved = kinds(Duration::from_ms(2));
        assert!(!starved.contains(&Kind::LeastWeight), "{starved:?}");
        assert!(!starved.is_empty());
    }
}
