//! It is of SCHED_DEADLINE, and had used up its runtime.

use warmq_trace::Policy;

use super::waited;
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;

/// Of the time that it wanted, in thousandths.
const LEAST_WAITED: u64 = 400;

const CURES: &[Cure] = &[
    Cure::new(
        "reserve more runtime, or the same in a shorter period (sched_setattr(2))",
        "less can be reserved by others, and fair tasks have less",
    ),
    Cure::new(
        "if it is to run on when others leave time, give it SCHED_FIFO or a negative nice value",
        "nothing is promised to it any more, or nothing limits it",
    ),
];

/// Nothing records that such a task is throttled: it seems to wait, beside idle CPUs, too. Before
/// its runtime is used up, only tasks of its own kind keep it waiting.
pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let who = &case.facts.task(case.id).who;
    if case.waited < LEAST_WAITED || who.policy() != Policy::Deadline {
        return None;
    }
    Some(Finding {
        cause: String::new(),
        says: format!("{}, as SCHED_DEADLINE limits it", waited(case)),
        because:
            "Such a task runs for its runtime in each period, and then on no CPU, idle or not, \
                  until the next one begins."
                .to_owned(),
        cures: CURES.to_vec(),
    })
}
