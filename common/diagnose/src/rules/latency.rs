//! It is woken often, and waits for longer than it runs.
//!
//! It has what it is due, so that no average shows it: a key or a request that takes a millisecond
//! of work is answered after five. Who had the CPU, and by which rule, says what would change it.

use std::collections::BTreeMap;

use warmq_trace::{Header, Policy};
use warmq_units::{Duration, printable};

use super::late_or_waited;
use crate::case::Case;
use crate::cure::SLICES;
use crate::due::shares_by_groups;
use crate::late::Late;
use crate::preference::Preference;
use crate::release::kernel_of;
use crate::verdict::Finding;
use crate::words::{count, list, part, share, thousandths};
use crate::{Cure, Need};

/// So many of those who ran instead are named.
const MOST_NAMED: usize = 3;
/// From this share of its waits on, in thousandths, it is said that a CPU idled.
const IDLE_MENTIONED: u64 = 250;
/// It uses at most so much of its share, in thousandths.
const MOST_USED: u64 = 500;
/// One task, in thousandths.
const ONE: u64 = 1_000;
/// What must be known of tasks for a reason why one goes before another.
const OF_REASONS: &[Need] = &[
    Need::Groups,
    Need::GroupWeights,
    Need::Weights,
    Need::Policies,
];

const SHORT_SLICE: Cure = Cure::new(
    "let it ask for a slice a little longer than what it runs at a time, if that is shorter than \
     the kernel's own of 0.7 to 3 ms (`chrt --sched-runtime`, sched_setattr(2))",
    "nothing of anybody's share; where it computes for longer it is preempted, and waits then",
)
.on(SLICES);
const MORE_WEIGHT: Cure = Cure::new(
    "give it more weight (`renice -n -5`)",
    "the others wait when it computes, for three times as long",
);
const OTHERS_IDLE: Cure = Cure::new(
    "give those that run instead SCHED_IDLE (`chrt --idle 0`), if they have time",
    "beside anybody else they have next to nothing",
);
const SHORT_BASE: Cure = Cure::new(
    "shorten the slices of all tasks (/sys/kernel/debug/sched/base_slice_ns)",
    "more switches on the whole machine; slices shorter than a tick end with it all the same",
)
.on("Linux 6.6 or later");
const FULL: Cure = Cure::new(
    "let wakeups preempt at once (`preempt=full`)",
    "more switches; whoever computes is interrupted more often",
)
.on("Linux 5.12 or later");
const GROUP_WEIGHT: Cure = Cure::new(
    "give its group more weight (cpu.weight; cgroup v1: cpu.shares; of a session, /proc/PID/autogroup)",
    "the other group has less whenever both want the CPU",
);
const OTHER_POLICY: Cure = Cure::new(
    "give it SCHED_OTHER (`chrt --other 0`)",
    "its wakeups take CPUs from others, with a switch each",
);
const LESS_URGENT: Cure = Cure::new(
    "keep the real-time tasks on other CPUs, or let them sleep",
    "they have fewer CPUs, or wait themselves",
);
const OTHER_SCHEDULER: Cure = Cure::new(
    "see what the scheduler does at wakeups and how long its slices are, or compare it with others \
     (`warmq judge`)",
    "another scheduler, or other settings, for all tasks",
);
const SPREAD: Cure = Cure::new(
    "spread the interrupts of the device over CPUs, or keep the task on others",
    "other CPUs are interrupted, or the task has fewer",
);

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let (facts, late) = (case.facts, case.late?);
    // Nobody waits for most of what threads of the kernel do; who does is judged himself.
    let judged = !case.starves && !facts.is_kernel(case.id) && !facts.is_realtime(case.id);
    if !judged
        || uses_its_share(case)
        || late.p99 <= in_turn(case, &late)
        || may_be_quota(case, &late)
    {
        return None;
    }
    let preference = preferred(case);
    let known = OF_REASONS
        .iter()
        .all(|need| !facts.watcher.lacks.contains(need));
    let is = |id| !known || facts.preference(id, case.id) == preference;
    let names = list(&case.names_beside(is), MOST_NAMED);
    let mut because = vec![format!("{}.", case.had(&names, is))];
    match known {
        true => because.extend(reasons(case, preference)),
        false => because.push("The recording does not say by which rule they ran.".to_owned()),
    }
    Some(Finding {
        cause: String::new(),
        says: late_or_waited(case),
        because: because.join(" "),
        cures: cures(case, preference),
    })
}

/// What it has of a CPU, in thousandths.
fn used(case: &Case<'_, '_>) -> u64 {
    thousandths(case.tally.ran, case.facts.lived(case.facts.task(case.id)))
}

/// Whether it has most of its share of a CPU: who does is owed nothing, and served in turn with
/// others, as late as their turns are long.
pub(super) fn uses_its_share(case: &Case<'_, '_>) -> bool {
    used(case) > case.was_due() * MOST_USED / 1_000
}

/// How long it would wait if each that wants the CPU had it for as long as it has.
fn in_turn(case: &Case<'_, '_>, late: &Late) -> Duration {
    let cpus = case.where_it_waited();
    let tasks = cpus.iter().map(|cpu| case.facts.dues.tasks_on(*cpu));
    let each = tasks.sum::<u64>() / (cpus.len() as u64).max(1);
    part(late.runs, each.max(ONE))
}

/// Of a real kernel a throttled task looks as if it waited.
fn may_be_quota(case: &Case<'_, '_>, late: &Late) -> bool {
    let groups = case.facts.watcher.groups.upwards(case.group());
    let mut throttled = groups.iter().map(|group| case.facts.throttled(*group));
    throttled.any(|span| span >= late.p99)
}

/// The rule by which those ran who had most of the CPU while it waited.
pub(super) fn preferred(case: &Case<'_, '_>) -> Preference {
    let mut had: BTreeMap<Preference, Duration> = BTreeMap::new();
    for (id, span) in &case.tally.beside {
        *had.entry(case.facts.preference(*id, case.id)).or_default() += *span;
    }
    // Of two that had as much, the stronger one.
    let most = had.into_iter().rev().max_by_key(|(_, span)| *span);
    most.map_or(Preference::Turn, |(preference, _)| preference)
}

/// Why they went before it, a sentence each.
fn reasons(case: &Case<'_, '_>, preference: Preference) -> Vec<String> {
    let facts = case.facts;
    let by_kernel = shares_by_groups(facts.header);
    let rule = match preference {
        _ if is_own_rule(preference, facts.header) => {
            let name = printable(&facts.header.scheduler);
            format!("{name} decides who goes first, and by which rule is not known here.")
        }
        Preference::RealTime => "Real-time tasks go before all fair ones.".to_owned(),
        // Real-time tasks are not judged here.
        Preference::LeftOver => String::new(),
        Preference::Softirqs => "They do the work of interrupts.".to_owned(),
        Preference::OwnPolicy => {
            "It is of SCHED_BATCH, whose wakeups preempt nobody: whoever runs goes on to the end \
             of a slice."
                .to_owned()
        }
        Preference::Group => of_groups(case),
        Preference::Weight => {
            "They weigh more: a deadline is as far away as the slice divided by the weight, so \
             that theirs are earlier."
                .to_owned()
        }
        Preference::Slice => {
            "They ask for shorter slices, so that their deadlines are earlier.".to_owned()
        }
        Preference::Turn => of_turns(facts.header),
    };
    let lag = format!(
        "It uses {} of a CPU, of which {} are its share: what it is owed (lag) is not what keeps \
         it waiting.",
        share(used(case)),
        share(case.was_due())
    );
    let lag = by_kernel.then_some(lag);
    let lazy = (by_kernel && facts.header.preemption == "lazy").then(|| {
        "Under lazy preemption a program that computes goes on to the next tick, whoever is woken."
            .to_owned()
    });
    let idle = thousandths(case.tally.idle.inside, case.tally.waited);
    let idle = (idle >= IDLE_MENTIONED).then(|| {
        let idle = share(idle);
        format!("For {idle} of its waits another CPU idled that it may use.")
    });
    [Some(rule), lag, lazy, idle]
        .into_iter()
        .flatten()
        .collect()
}

/// Which groups they are of, and what these weigh.
fn of_groups(case: &Case<'_, '_>) -> String {
    let facts = case.facts;
    let beside = case.tally.beside.iter().map(|(id, _)| *id);
    let mut of_groups = beside.filter(|id| facts.preference(*id, case.id) == Preference::Group);
    let Some(first) = of_groups.next() else {
        return String::new();
    };
    let (other, own) = facts.rivals(first, case.id);
    let name =
        |group: Option<u32>| group.map_or("the task".to_owned(), |group| facts.group_name(group));
    format!(
        "They are of {}, of weight {} against {} of {}: groups have lags and deadlines as a whole.",
        name(other.group),
        count(other.weight),
        count(own.weight),
        name(own.group)
    )
}

/// Why tasks that are alike keep it waiting.
fn of_turns(header: &Header) -> String {
    let release = kernel_of(header).map(|(_, release)| release);
    let of_linux = shares_by_groups(header) && header.scheduler != "cfs";
    if !of_linux || release.is_none_or(|release| !release.is_from(6, 6)) {
        return "They are as good as it is, and had their turns.".to_owned();
    }
    // From 7.1 on a timer ends slices (HRTICK).
    let by_timer = release.is_some_and(|release| release.is_from(7, 1));
    let tick = match header.hz.as_str() {
        "" => String::new(),
        _ if by_timer => String::new(),
        hz => format!(", or the tick after that ({hz} Hz)"),
    };
    format!(
        "They weigh no more and ask for no shorter slice: its deadline at a wakeup is not the \
         earliest, and whoever runs goes on to the end of the slice (RUN_TO_PARITY){tick}."
    )
}

/// Whether the rule is one of a scheduler that is not the kernel's: slices, weights and lags are
/// what it makes of them.
fn is_own_rule(preference: Preference, header: &Header) -> bool {
    let of_classes = matches!(preference, Preference::RealTime | Preference::Softirqs);
    !of_classes && !shares_by_groups(header)
}

/// What helps, the surest first.
fn cures(case: &Case<'_, '_>, preference: Preference) -> Vec<Cure> {
    let (facts, header) = (case.facts, case.facts.header);
    let mut cures = match preference {
        _ if is_own_rule(preference, header) => return vec![OTHER_SCHEDULER],
        Preference::RealTime => vec![LESS_URGENT],
        Preference::LeftOver => Vec::new(),
        Preference::Softirqs => vec![SPREAD],
        Preference::OwnPolicy => vec![OTHER_POLICY, OTHERS_IDLE],
        Preference::Group => vec![GROUP_WEIGHT, SHORT_SLICE],
        Preference::Weight => vec![MORE_WEIGHT, SHORT_SLICE, OTHERS_IDLE],
        Preference::Slice => vec![SHORT_SLICE, MORE_WEIGHT],
        Preference::Turn => vec![SHORT_SLICE, OTHERS_IDLE, MORE_WEIGHT, SHORT_BASE],
    };
    let mut had = case.tally.beside.iter();
    let are_idle = had.all(|(id, _)| facts.task(*id).who.policy() == Policy::Idle);
    cures.retain(|cure| !are_idle || *cure != OTHERS_IDLE);
    cures.extend((header.preemption == "lazy").then_some(FULL));
    cures
}
