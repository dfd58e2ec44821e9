//! Who comes next on a CPU, as a sequence.

use std::collections::BTreeMap;

use warmq_trace::Record;
use warmq_units::{CpuId, Instant};

use super::roles::{Roles, Who};
use super::{Extent, LeftOut, Recording, end_of};

/// Why a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// It was preempted, or yielded.
    Preempted,
    /// It went to sleep, or exited.
    Slept,
}

/// A task of the scenario gets a CPU that another one had, or that it left itself to sleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Instant,
    /// Who had the CPU before, and why it left; none at first.
    pub prev: Option<(Who, Left)>,
    /// Who has it now.
    pub next: Who,
    /// The place of its record.
    pub(super) index: usize,
}

impl Decision {
    /// Whether the same was decided at another time.
    pub fn is_as(&self, other: &Decision) -> bool {
        (&self.prev, &self.next) == (&other.prev, &other.next)
    }
}

/// The decisions of a recording.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    pub cpus: BTreeMap<CpuId, Vec<Decision>>,
    pub left_out: LeftOut,
}

impl Decisions {
    /// Those of `recording` in `extent`.
    pub fn of(recording: &Recording, roles: &Roles, extent: Extent) -> Decisions {
        let mut decisions = Decisions::default();
        let end = end_of(&recording.records);
        // Who of the scenario had the CPU last since the extent began, and why it left.
        let mut last: BTreeMap<CpuId, (Who, Left)> = BTreeMap::new();
        for (index, (at, record)) in recording.records.iter().enumerate() {
            let counts = *at >= extent.from && *at <= end;
            let Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } = *record
            else {
                decisions.left_out.lost += lost(record, counts);
                continue;
            };
            if !counts || extent.cpu.is_some_and(|only| only != cpu) {
                continue;
            }
            if let Some(who) = prev.and_then(|task| roles.who(task)) {
                let left = match prev_runnable {
                    true => Left::Preempted,
                    false => Left::Slept,
                };
                last.insert(cpu, (who.clone(), left));
            }
            let who = next.and_then(|task| roles.who(task));
            match (who, next) {
                (Some(who), _) => {
                    let prev = last.insert(cpu, (who.clone(), Left::Preempted));
                    let same = prev == Some((who.clone(), Left::Preempted));
                    if !same {
                        let next = who.clone();
                        let decision = Decision {
                            at: *at,
                            prev,
                            next,
                            index,
                        };
                        decisions.cpus.entry(cpu).or_default().push(decision);
                    }
                }
                (None, Some(_)) => decisions.left_out.others += 1,
                (None, None) => decisions.left_out.idle += 1,
            }
        }
        decisions
    }

    /// Those of `cpu`.
    pub fn on(&self, cpu: CpuId) -> &[Decision] {
        self.cpus.get(&cpu).map_or(&[], Vec::as_slice)
    }
}

fn lost(record: &Record, counts: bool) -> u64 {
    match *record {
        Record::Lost { events, .. } if counts => events.max(1),
        _ => 0,
    }
}
