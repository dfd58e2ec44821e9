//! A diagnosis: verdicts, and what they rest on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warmq_units::{Duration, Instant, TaskId};

use crate::activity::Activity;
use crate::case::Case;
use crate::facts::Facts;
use crate::need::{self, NotGiven};
use crate::release::kernel_of;
use crate::verdict::{Finding, ns};
use crate::words::{count, list, share, span, thousandths};
use crate::{Kind, Unbound, Verdict, Watcher, doubt, rules, unbound};

/// From when to when was measured, in ns of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The beginning.
    pub from_ns: u64,
    /// The end.
    pub to_ns: u64,
}

/// What a trace says about who waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The time that was looked at.
    pub window: Window,
    /// How many CPUs there are, as far as the trace shows.
    pub cpus: usize,
    /// How many tasks there are.
    pub tasks: usize,
    /// How many records were looked at.
    pub records: u64,
    /// Why it is not fit to judge a scheduler by, a few words each; none: it is.
    pub unfit: Vec<String>,
    /// Why whom waited; none: nobody starved. Whoever waited longest comes first.
    pub verdicts: Vec<Verdict>,
    /// Verdicts that were not looked for, because the recording lacks what they need.
    pub not_given: Vec<NotGiven>,
    /// Who waited while CPUs idled, where nobody recorded which CPUs tasks may use.
    pub idle_beside: Option<Unbound>,
    /// Who waited, who is woken, who moves between caches.
    pub activity: Activity,
    /// What limits the diagnosis, a sentence each.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// Of all that `watcher` saw.
    pub fn of(mut watcher: Watcher) -> Diagnosis {
        let (from, to) = watcher.close();
        let facts = Facts::of_all(&watcher, (from, to));
        let (from_ns, to_ns) = ns((from, to));
        let idle_beside = Unbound::of(&facts);
        Diagnosis {
            window: Window { from_ns, to_ns },
            cpus: watcher.cpu_count(),
            tasks: watcher.tasks.iter().count(),
            records: watcher.records,
            unfit: doubt::unfit(&facts),
            verdicts: verdicts(&facts),
            not_given: need::not_given(&watcher.lacks),
            activity: Activity::of(&facts),
            notes: notes(&facts, idle_beside.as_ref()),
            idle_beside,
        }
    }
}

/// Of one kind and one cause: the tasks, and what was found of the first.
struct Together {
    kind: Kind,
    tasks: Vec<TaskId>,
    worst: Found,
}

/// What was found of a task, and when.
struct Found {
    finding: Finding,
    longest: (Instant, Instant),
    when: (Instant, Instant),
    bursts: u64,
    /// For how long it was kept from running.
    lost: Duration,
}

fn verdicts(facts: &Facts<'_>) -> Vec<Verdict> {
    let mut all = of_all(facts);
    let known = all.iter().map(|(kind, id, _)| (*kind, *id));
    let known: BTreeSet<(Kind, TaskId)> = known.collect();
    all.extend(of_bursts(facts, &known));
    // What a part of the time explains is not unexplained.
    let explained = all.iter().filter(|(kind, _, _)| *kind != Kind::Unexplained);
    let explained: BTreeSet<TaskId> = explained.map(|(_, id, _)| *id).collect();
    all.retain(|(kind, id, _)| *kind != Kind::Unexplained || !explained.contains(id));
    all.sort_by_key(|(_, id, found)| (Reverse(found.lost), *id));
    let mut together: BTreeMap<(Kind, String), Together> = BTreeMap::new();
    for (kind, id, found) in all {
        let key = (kind, found.finding.cause.clone());
        let of_cause = together.entry(key).or_insert_with(|| Together {
            kind,
            tasks: Vec::new(),
            worst: found,
        });
        of_cause.tasks.push(id);
    }
    let mut all: Vec<Together> = together.into_values().collect();
    all.sort_by_key(|of_cause| Reverse(of_cause.worst.lost));
    all.into_iter()
        .map(|of_cause| verdict(facts, of_cause))
        .collect()
}

/// What the whole time shows.
fn of_all(facts: &Facts<'_>) -> Vec<(Kind, TaskId, Found)> {
    let sure = facts
        .ids()
        .filter(|id| doubt::contradicted(facts, *id).is_none());
    let all = sure.filter_map(|id| {
        let case = Case::of(facts, id)?;
        let (kind, finding) = rules::first(&case)?;
        let longest = case.tally.longest;
        let found = Found {
            finding,
            longest: (longest.from, longest.to),
            when: (facts.from, facts.to),
            bursts: 0,
            lost: case.lost(),
        };
        Some((kind, id, found))
    });
    all.collect()
}

/// What parts of the time show, and the whole does not. Of a real kernel a group's quota looks like
/// a wait, and only the sum of its throttling is known: what that may explain is no verdict.
fn of_bursts<'f>(
    facts: &'f Facts<'_>,
    known: &'f BTreeSet<(Kind, TaskId)>,
) -> impl Iterator<Item = (Kind, TaskId, Found)> + 'f {
    let all = facts.watcher.bursts.iter();
    // What a recording lacks may be known at its end only.
    let barred = need::not_given(&facts.watcher.lacks).into_iter();
    let barred: BTreeSet<Kind> = barred.map(|not| not.kind).collect();
    let new = all.filter(move |(kind, id, burst)| {
        if barred.contains(kind) {
            return false;
        }
        let groups = facts.watcher.groups.upwards(facts.task(*id).who.group);
        let throttled = groups.into_iter().map(|group| facts.throttled(group));
        let held = throttled.max().unwrap_or_default();
        !known.contains(&(*kind, *id))
            && doubt::contradicted(facts, *id).is_none()
            && (matches!(kind, Kind::Quota | Kind::QuotaStranded) || held < burst.lost)
    });
    new.map(|(kind, id, burst)| {
        let when = (burst.from, burst.to);
        let found = Found {
            finding: burst.finding.clone(),
            longest: when,
            when,
            bursts: burst.times,
            lost: burst.lost,
        };
        (kind, id, found)
    })
}

fn verdict(facts: &Facts<'_>, together: Together) -> Verdict {
    let Together { kind, tasks, worst } = together;
    let others = match tasks.len() - 1 {
        0 => String::new(),
        1 => "; and so did 1 other".to_owned(),
        others => format!("; and so did {} others", count(others as u64)),
    };
    let release = kernel_of(facts.header).map(|(_, release)| release);
    let cures = worst.finding.cures.iter().copied();
    let cures = cures.filter(|cure| cure.helps(release)).collect();
    Verdict {
        kind,
        says: format!("{}{}{others}.", worst.finding.says, when(&worst)),
        because: worst.finding.because,
        cures,
        kernels: rules::kernels(kind),
        longest_ns: ns(worst.longest),
        when_ns: ns(worst.when),
        bursts: worst.bursts,
        tasks: tasks.iter().map(|id| facts.about(*id)).collect(),
    }
}

/// Of a part of the time, when that was.
fn when(found: &Found) -> String {
    let at = |at: Instant| span(at.since(Instant::START));
    let (from, to) = (at(found.when.0), at(found.when.1));
    match found.bursts {
        0 => String::new(),
        1 => format!(", from {from} to {to}"),
        times => format!(", from {from} to {to}, the worst of {} times", count(times)),
    }
}

/// The tasks of which records are missing.
fn doubtful(facts: &Facts<'_>) -> Vec<String> {
    let all = facts.watcher.tasks.iter();
    let those = all.filter(|(_, task)| task.tally.doubts > 0);
    those.map(|(id, _)| facts.name(id)).collect()
}

/// Interrupts are mentioned from this share of a CPU's time on, in thousandths.
const INTERRUPTS_MENTIONED: u64 = 50;

fn notes(facts: &Facts<'_>, idle_beside: Option<&Unbound>) -> Vec<String> {
    let watcher = facts.watcher;
    let lacks = need::sentence(&need::not_given(&watcher.lacks));
    let mut notes: Vec<String> = idle_beside.map(unbound::sentence).into_iter().collect();
    notes.extend(lacks);
    if watcher.lost > 0 {
        notes.push(format!(
            "{} events were lost: times around the gaps are guesses.",
            count(watcher.lost)
        ));
    }
    let doubtful: Vec<String> = doubtful(facts);
    if !doubtful.is_empty() {
        notes.push(format!(
            "The trace does not record each time that these ran; what is not recorded counts \
             neither as running nor as waiting: {}.",
            list(&doubtful, 5)
        ));
    }
    notes.extend(doubt::contradictions(facts));
    if facts.cpus_take_turns() {
        notes.push(
            "The guest's CPUs took turns: what happened between them is not as on hardware, and \
             interrupts are not judged."
                .to_owned(),
        );
    }
    if !watcher.interrupts_seen {
        notes.push("The trace has no interrupts: what they took counts as running.".to_owned());
    }
    for (cpu, all, softirqs) in watcher.interrupts() {
        let of_time = thousandths(all, facts.recorded(cpu));
        if of_time >= INTERRUPTS_MENTIONED {
            notes.push(format!(
                "Interrupts had {} of CPU {}, {} of it softirqs.",
                share(of_time),
                cpu.0,
                span(softirqs)
            ));
        }
    }
    notes
}
