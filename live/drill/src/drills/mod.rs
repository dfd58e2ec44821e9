//! The drills, by subject.

mod affinity;
mod cores;
mod fairness;
mod hints;
mod others;
mod robust;
mod sleepers;
mod starved;
mod switch;

use crate::report::Drill;

/// Every drill there is, in the order in which they are run.
pub fn all() -> Vec<&'static Drill> {
    [
        affinity::DRILLS,
        fairness::DRILLS,
        sleepers::DRILLS,
        hints::DRILLS,
        others::DRILLS,
        robust::DRILLS,
        starved::DRILLS,
        cores::DRILLS,
        switch::DRILLS,
    ]
    .into_iter()
    .flatten()
    .collect()
}
