//! Parts of the time that are judged by themselves, since an average over a long time hides them:
//! each long wait alone, and windows that slide over the trace.
//!
//! Of each task and each kind of verdict the worst is kept. Only kinds count that name who or what
//! is to blame: a single wait is no sign that there are too many tasks.

use std::collections::BTreeMap;

use warmq_units::{Duration, Instant, TaskId};

use crate::Kind;
use crate::case::Case;
use crate::facts::Facts;
use crate::rules;
use crate::verdict::Finding;
use crate::watch::{EndedWait, LONG_WAIT, Mark, Watcher};

/// A part of the time, and what a rule found there.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    pub from: Instant,
    pub to: Instant,
    /// For how long the task was kept from running.
    pub lost: Duration,
    pub finding: Finding,
    /// How many there were that do not overlap.
    pub times: u64,
    /// When the latest of them ended.
    latest: Instant,
}

/// The worst of each kind and task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bursts(BTreeMap<(Kind, TaskId), Burst>);

impl Bursts {
    pub fn iter(&self) -> impl Iterator<Item = (Kind, TaskId, &Burst)> {
        self.0.iter().map(|((kind, id), burst)| (*kind, *id, burst))
    }

    fn note(&mut self, kind: Kind, id: TaskId, burst: Burst) {
        let Some(known) = self.0.get_mut(&(kind, id)) else {
            self.0.insert((kind, id), burst);
            return;
        };
        let another = burst.from >= known.latest;
        let times = known.times + u64::from(another);
        let latest = known.latest.max(burst.to);
        if burst.lost > known.lost {
            *known = burst;
        }
        (known.times, known.latest) = (times, latest);
    }
}

/// Judges long waits that ended by `after`; the sums `before` are of about when they began.
pub(crate) fn of_waits(
    bursts: &mut Bursts,
    watcher: &Watcher,
    (before, after): (&Mark, &Mark),
    waits: &[EndedWait],
) {
    if after.at.since(before.at) < LONG_WAIT / 2 {
        return;
    }
    let facts = Facts::between(watcher, (before, after));
    for wait in waits {
        if let Some(case) = Case::of_wait(&facts, wait) {
            let longest = wait.tally.longest;
            judge(bursts, &case, (longest.from, longest.to));
        }
    }
}

/// Judges all tasks in a window.
pub(crate) fn of_window(bursts: &mut Bursts, watcher: &Watcher, marks: (&Mark, &Mark)) {
    let facts = Facts::between(watcher, marks);
    for id in facts.ids() {
        if let Some(case) = Case::of(&facts, id)
            && case.lost() >= LONG_WAIT
        {
            judge(bursts, &case, (facts.from, facts.to));
        }
    }
}

fn judge(bursts: &mut Bursts, case: &Case<'_, '_>, (from, to): (Instant, Instant)) {
    let Some((kind, finding)) = rules::first(case) else {
        return;
    };
    if kind.blames() {
        let burst = Burst {
            from,
            to,
            lost: case.lost(),
            finding,
            times: 1,
            latest: to,
        };
        bursts.note(kind, case.id, burst);
    }
}
