//! A CPU idled that it may use.

use super::{owned, waited};
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{share, thousandths};

/// Of what it wanted it waited so much, in thousandths.
const LEAST_WAITED: u64 = 400;
/// Of its wait some CPU idled that it may use, in thousandths. Less is the time that balancing
/// takes, and idle moments that are too short to be used.
const LEAST_IDLE: u64 = 500;

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let idle = thousandths(case.tally.idle_inside, case.tally.waited);
    if case.waited < LEAST_WAITED || idle < LEAST_IDLE {
        return None;
    }
    Some(Finding {
        cause: String::new(),
        says: format!("{}, though a CPU idled that it may use", waited(case)),
        because: format!(
            "For {} of its wait there was one: balancing left it where it was, or nobody woke the \
             CPU.",
            share(idle)
        ),
        cures: owned(&[
            "see whether the scheduler balances there: cpuset partitions, isolcpus and \
             sched_relax_domain_level switch it off",
            "try another scheduler (scx_warmq looks for waiting tasks before a CPU idles)",
        ]),
    })
}
