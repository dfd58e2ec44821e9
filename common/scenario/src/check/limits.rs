//! How many there may be.

use super::Findings;
use crate::bind::Bound;
use crate::object::ObjectId;
use crate::task::TaskKindId;

/// Tasks in a scenario.
pub(crate) const MOST_TASKS: u64 = 100_000;
/// Objects in a table.
const MOST_OBJECTS: u64 = 1_000_000;

pub(crate) fn limits(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    for (number, object) in (0..).zip(scenario.objects()) {
        let count = bound.objects(ObjectId(number));
        if count > MOST_OBJECTS {
            let what = format!("these are {count} objects, and a table has at most {MOST_OBJECTS}");
            findings.report(&object.spot, what, "make fewer");
        }
    }
    let mut all = 0_u64;
    for (number, task) in (0..).zip(scenario.tasks()) {
        let before = all;
        all = all.saturating_add(bound.tasks(TaskKindId(number)));
        if before <= MOST_TASKS && all > MOST_TASKS {
            let what = format!("with these there are {all} tasks, and {MOST_TASKS} are the most");
            findings.report(&task.spot, what, "make fewer");
        }
    }
}
