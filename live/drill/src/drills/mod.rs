//! The drills, by subject.

mod affinity;
mod fairness;
mod hints;
mod robust;
mod sleepers;

use crate::report::Drill;

/// Every drill there is, in the order in which they are run.
pub fn all() -> Vec<&'static Drill> {
    [
        affinity::DRILLS,
        fairness::DRILLS,
        sleepers::DRILLS,
        hints::DRILLS,
        robust::DRILLS,
    ]
    .into_iter()
    .flatten()
    .collect()
}
