//! How many there may be.

use super::Findings;
use crate::bind::Bound;
use crate::expr::Spot;
use crate::object::ObjectId;
use crate::task::TaskKindId;

/// Tasks in a scenario.
pub(crate) const MOST_TASKS: u64 = 100_000;
/// Objects in a scenario: each takes memory of its own, in whatever table it is.
const MOST_OBJECTS: u64 = 1_000_000;

pub(crate) fn limits(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    let mut objects = Total::of("objects", MOST_OBJECTS);
    for (number, object) in (0..).zip(scenario.objects()) {
        objects.add(bound.objects(ObjectId(number)), &object.spot, findings);
    }
    let mut tasks = Total::of("tasks", MOST_TASKS);
    for (number, task) in (0..).zip(scenario.tasks()) {
        tasks.add(bound.tasks(TaskKindId(number)), &task.spot, findings);
    }
}

/// How many there are of a kind over all tables.
struct Total {
    kind: &'static str,
    most: u64,
    all: u64,
}

impl Total {
    fn of(kind: &'static str, most: u64) -> Total {
        Total { kind, most, all: 0 }
    }

    /// Adds a table of `count`, which is reported if it is the one that goes beyond the limit.
    fn add(&mut self, count: u64, spot: &Spot, findings: &mut Findings<'_>) {
        let Total { kind, most, .. } = *self;
        let before = self.all;
        self.all = before.saturating_add(count);
        if before <= most && self.all > most {
            let what = format!(
                "with these there are {} {kind}, and {most} are the most",
                self.all
            );
            findings.report(spot, what, "make fewer");
        }
    }
}
