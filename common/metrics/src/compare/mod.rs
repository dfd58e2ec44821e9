//! Two recordings of one scenario, decision by decision: where a second scheduler, kernel or world
//! first does otherwise than the first.
//!
//! Tasks are those of the scenario, by name and number, as kernels number them differently. Other
//! tasks (kernel threads, whatever else runs on a real machine) are left out, and counted: a switch
//! away from a task and back to it with such a one in between is no decision. Nor is idling: what
//! counts is who comes next, and why its predecessor left.

mod decisions;
mod difference;
mod letters;
mod moment;
mod roles;

use std::collections::BTreeMap;

use warmq_trace::{Header, Record};
use warmq_units::{CpuId, Duration, Instant};

use crate::PlayMeter;

pub use self::decisions::{Decision, Left};
pub use self::difference::{Difference, Side};
pub use self::letters::letters;
pub use self::moment::{Waits, Woken};
pub use self::roles::Who;

use self::decisions::Decisions;
use self::roles::Roles;

/// The records of a run, and what they are of.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What they are of.
    pub header: Header,
    /// The records, in the order of time.
    pub records: Vec<(Instant, Record)>,
}

/// What of two recordings is compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Only this CPU; none: all.
    pub cpu: Option<CpuId>,
    /// From this time on.
    pub from: Instant,
}

/// How two recordings differ.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Whether all records are the same.
    pub identical: bool,
    /// The agreement of each CPU on which either recording has decisions.
    pub cpus: BTreeMap<CpuId, Agreement>,
    /// The earliest decision on which they differ.
    pub first: Option<Difference>,
    /// Of each, what was left out.
    pub left_out: [LeftOut; 2],
    /// The figures of each, by name.
    pub figures: [BTreeMap<String, f64>; 2],
}

/// How far two sequences of decisions agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// How many decisions each has.
    pub decisions: [usize; 2],
    /// How many of the first are the same.
    pub same: usize,
    /// Of the first [`WINDOW`] decisions of each, how many are the same in order when others may be
    /// left out between them.
    pub in_order: usize,
    /// By how much the times of the same ones differ at most.
    pub time_difference: Duration,
    /// The first of them whose times differ by more than [`LATE`].
    pub late: Option<usize>,
}

/// Decisions whose times differ by more than this are the same for other reasons, as where two
/// tasks just take turns.
pub const LATE: Duration = Duration::from_ms(1);

/// How many decisions are looked at for those that are the same in order.
pub const WINDOW: usize = 1_000;

/// What a comparison leaves out of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Switches to tasks that are none of the scenario's.
    pub others: u64,
    /// Switches to the idle task.
    pub idle: u64,
    /// Events that the recorder lost.
    pub lost: u64,
}

/// Why a recording cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// It has no tasks of a scenario.
    #[error("it has no tasks of a scenario; record a scenario, not a program of the lab")]
    NoScenario,
    /// It has no task whose name the other one knows.
    #[error(
        "it is of another scenario: no name of its tasks is in both; record one scenario twice"
    )]
    OtherScenario,
    /// It has no switches of its scenario's tasks in the chosen extent.
    #[error(
        "no task of its scenario is switched to there; record it where switches are seen (the lab, \
         a guest, or with access to tracefs), or choose another CPU or time"
    )]
    NoSwitches,
}

/// The decisions of a recording, of each CPU.
pub fn decisions(recording: &Recording, extent: Extent) -> BTreeMap<CpuId, Vec<Decision>> {
    let [roles, _] = Roles::of([recording, &Recording::default()]);
    Decisions::of(recording, &roles, extent).cpus
}

/// Compares two recordings.
///
/// # Errors
/// Which of them (0 or 1) cannot be compared, and why.
pub fn compare(both: [&Recording; 2], extent: Extent) -> Result<Comparison, (usize, Incomparable)> {
    let roles = Roles::of(both);
    if !roles.iter().any(Roles::is_empty) && !roles[0].know_of(&roles[1]) {
        return Err((1, Incomparable::OtherScenario));
    }
    let decided = |index: usize| {
        let all = Decisions::of(both[index], &roles[index], extent);
        let why = match (roles[index].is_empty(), all.cpus.is_empty()) {
            (true, _) => Incomparable::NoScenario,
            (false, true) => Incomparable::NoSwitches,
            (false, false) => return Ok(all),
        };
        Err((index, why))
    };
    let sides = [decided(0)?, decided(1)?];
    let cpus: BTreeMap<CpuId, Agreement> = sides[0]
        .cpus
        .keys()
        .chain(sides[1].cpus.keys())
        .map(|cpu| (*cpu, agreement([sides[0].on(*cpu), sides[1].on(*cpu)])))
        .collect();
    let first = difference::first(both, &roles, &sides, &cpus);
    Ok(Comparison {
        identical: both[0].header.names == both[1].header.names
            && both[0].records == both[1].records,
        cpus,
        first,
        left_out: [sides[0].left_out, sides[1].left_out],
        figures: both.map(|recording| figures(recording, extent.from)),
    })
}

impl Comparison {
    /// Whether all decisions are the same.
    pub fn agrees(&self) -> bool {
        self.first.is_none()
    }
}

fn agreement([a, b]: [&[Decision]; 2]) -> Agreement {
    let pairs = a.iter().zip(b).take_while(|(a, b)| a.is_as(b));
    let difference = |(a, b): (&Decision, &Decision)| a.at.since(b.at).max(b.at.since(a.at));
    let differences: Vec<Duration> = pairs.map(difference).collect();
    Agreement {
        decisions: [a.len(), b.len()],
        same: differences.len(),
        time_difference: differences.iter().copied().max().unwrap_or_default(),
        late: differences.iter().position(|difference| *difference > LATE),
        in_order: in_order(&a[..a.len().min(WINDOW)], &b[..b.len().min(WINDOW)]),
    }
}

/// The length of the longest common subsequence, a row of its table at a time:
///
/// ```text
///     L(i, j) = L(i-1, j-1) + 1 where a(i) is as b(j), else max(L(i-1, j), L(i, j-1))
/// ```
fn in_order(a: &[Decision], b: &[Decision]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for one in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = match one.is_as(other) {
                true => diagonal + 1,
                false => row[j].max(above),
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// The figures from `from` to the end of the measurement.
fn figures(recording: &Recording, from: Instant) -> BTreeMap<String, f64> {
    let end = end_of(&recording.records);
    let mut meter = PlayMeter::starting_at(recording.header.names.clone(), from);
    for (at, record) in recording.records.iter().filter(|(at, _)| *at <= end) {
        warmq_trace::Observer::see(&mut meter, *at, record);
    }
    let mut figures = meter.figures(end);
    let seconds = end.since(from).as_s_f64();
    if seconds > 0.0 {
        let switches = meter.events().switches as f64 / seconds;
        figures.insert("switches_per_second".to_owned(), switches);
    }
    figures
}

/// When the measurement ends: real worlds count then for the last time, and end their tasks after
/// it.
fn end_of(records: &[(Instant, Record)]) -> Instant {
    let counted =
        |(at, record): &(Instant, Record)| matches!(record, Record::Count { .. }).then_some(*at);
    let last = records.last().map(|(at, _)| *at);
    let counted = records.iter().rev().find_map(counted);
    counted.or(last).unwrap_or(Instant::START)
}

#[cfg(test)]
mod tests;
