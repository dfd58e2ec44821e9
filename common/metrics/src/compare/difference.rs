//! The first decision on which two recordings differ.

use std::collections::BTreeMap;

use warmq_units::CpuId;

use super::decisions::{Decision, Decisions};
use super::moment::{Moment, Waits, Woken};
use super::roles::Roles;
use super::{Agreement, Recording, end_of};

/// How many decisions before the difference are kept.
const BEFORE: usize = 6;

/// The first decision on which two recordings differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The CPU.
    pub cpu: CpuId,
    /// How many decisions there are the same before it.
    pub place: usize,
    /// Either recording; none: it has no more decisions there.
    pub sides: [Option<Side>; 2],
    /// The last decisions before it, which are the same in both but for their times.
    pub before: [Vec<Decision>; 2],
}

/// A recording at the difference.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it decided.
    pub decision: Decision,
    /// Who could run then, whoever waits longest first: the task that was switched to, and the one
    /// that was preempted, are among them.
    pub waiting: Vec<Waits>,
    /// The last wakeups before it.
    pub wakeups: Vec<Woken>,
}

/// The earliest of the first differences of all CPUs, by the earlier of its two times. A recording
/// that ends before the other one decides does not differ from it.
pub(super) fn first(
    both: [&Recording; 2],
    roles: &[Roles; 2],
    sides: &[Decisions; 2],
    cpus: &BTreeMap<CpuId, Agreement>,
) -> Option<Difference> {
    let ends = both.map(|recording| end_of(&recording.records));
    let found = cpus.iter().filter_map(|(cpu, agreement)| {
        let place = agreement.same;
        let at = |side: usize| sides[side].on(*cpu).get(place).map(|decision| decision.at);
        let time = match (at(0), at(1)) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) => Some(a).filter(|at| *at <= ends[1])?,
            (None, Some(b)) => Some(b).filter(|at| *at <= ends[0])?,
            (None, None) => return None,
        };
        Some((time, *cpu, place))
    });
    let (_, cpu, place) = found.min()?;
    let side = |index: usize| {
        let decision = sides[index].on(cpu).get(place)?.clone();
        let moment = Moment::before(both[index], &roles[index], decision.index);
        Some(Side {
            decision,
            waiting: moment.waiting,
            wakeups: moment.wakeups,
        })
    };
    let before = |index: usize| {
        let decisions = sides[index].on(cpu);
        decisions[place.saturating_sub(BEFORE)..place].to_vec()
    };
    Some(Difference {
        cpu,
        place,
        sides: [side(0), side(1)],
        before: [before(0), before(1)],
    })
}
