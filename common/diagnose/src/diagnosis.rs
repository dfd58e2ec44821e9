//! A diagnosis: verdicts, and what they rest on.

use std::collections::BTreeMap;

use serde::Serialize;
use warmq_trace::Header;
use warmq_units::TaskId;

use crate::case::Case;
use crate::facts::Facts;
use crate::told::Told;
use crate::verdict::{Finding, ns};
use crate::words::{count, list, share, span, thousandths};
use crate::{Kind, Verdict, Watcher, rules};

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
    /// How many CPUs there are, as far as the trace tells.
    pub cpus: usize,
    /// How many tasks there are.
    pub tasks: usize,
    /// How many records were looked at.
    pub records: u64,
    /// Why whom waited; none: nobody starved. Whoever waited longest comes first.
    pub verdicts: Vec<Verdict>,
    /// What there is to see beside.
    pub told: Told,
    /// What limits the diagnosis, a sentence each.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// Of all that `watcher` saw of a trace with this header.
    pub fn of(mut watcher: Watcher, header: &Header) -> Diagnosis {
        let (from, to) = watcher.close();
        let facts = Facts::new(&watcher, header, (from, to));
        let (from_ns, to_ns) = ns((from, to));
        Diagnosis {
            window: Window { from_ns, to_ns },
            cpus: watcher.cpu_count(),
            tasks: watcher.tasks.iter().count(),
            records: watcher.records,
            verdicts: verdicts(&facts),
            told: Told::of(&facts),
            notes: notes(&facts),
        }
    }
}

/// Findings of one kind and one cause.
struct Together {
    kind: Kind,
    tasks: Vec<TaskId>,
    worst: Finding,
}

fn verdicts(facts: &Facts<'_>) -> Vec<Verdict> {
    let mut together: BTreeMap<(Kind, String), Together> = BTreeMap::new();
    let mut ids: Vec<TaskId> = facts.watcher.tasks.iter().map(|(id, _)| id).collect();
    ids.sort_by_key(|id| (std::cmp::Reverse(lost(facts, *id)), *id));
    for id in ids {
        let Some(case) = Case::of(facts, id) else {
            continue;
        };
        let Some((kind, finding)) = rules::first(&case) else {
            continue;
        };
        let key = (kind, finding.cause.clone());
        let of_cause = together.entry(key).or_insert_with(|| Together {
            kind,
            tasks: Vec::new(),
            worst: finding,
        });
        of_cause.tasks.push(id);
    }
    let mut all: Vec<Together> = together.into_values().collect();
    all.sort_by_key(|it| std::cmp::Reverse(lost(facts, it.tasks[0])));
    all.into_iter().map(|it| verdict(facts, it)).collect()
}

/// For how long a task was kept from running.
fn lost(facts: &Facts<'_>, id: TaskId) -> u64 {
    let tally = &facts.task(id).tally;
    (tally.waited + tally.held.throttled).0
}

fn verdict(facts: &Facts<'_>, together: Together) -> Verdict {
    let Together { kind, tasks, worst } = together;
    let others = tasks.len() - 1;
    let and_others = match others {
        0 => String::new(),
        1 => "; and so did 1 other".to_owned(),
        others => format!("; and so did {} others", count(others as u64)),
    };
    let longest = facts.task(tasks[0]).tally.longest;
    Verdict {
        kind,
        says: format!("{}{and_others}.", worst.says),
        because: worst.because,
        cures: worst.cures,
        longest_ns: ns((longest.from, longest.to)),
        task: tasks[0].0,
        tasks: tasks.iter().map(|id| facts.name(*id)).collect(),
    }
}

/// The tasks of which records are missing.
fn doubtful(facts: &Facts<'_>) -> Vec<String> {
    let all = facts.watcher.tasks.iter();
    let those = all.filter(|(_, task)| task.tally.doubts > 0);
    those.map(|(id, _)| facts.name(id)).collect()
}

/// Of a CPU's time interrupts are told from here on, in thousandths.
const INTERRUPTS_TOLD: u64 = 50;

fn notes(facts: &Facts<'_>) -> Vec<String> {
    let watcher = facts.watcher;
    let mut notes = Vec::new();
    if watcher.lost > 0 {
        notes.push(format!(
            "{} events were lost: times around the gaps are guesses.",
            count(watcher.lost)
        ));
    }
    let doubtful: Vec<String> = doubtful(facts);
    if !doubtful.is_empty() {
        notes.push(format!(
            "The trace does not tell each time that these ran; what is not told counts neither as \
             running nor as waiting: {}.",
            list(&doubtful, 5)
        ));
    }
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
    if facts.header.places.is_empty() {
        notes.push(
            "The trace does not say which CPUs share a cache: moves between caches are not told."
                .to_owned(),
        );
    }
    for (cpu, all, softirqs) in watcher.interrupts() {
        let of_time = thousandths(all, facts.period);
        if of_time >= INTERRUPTS_TOLD {
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
