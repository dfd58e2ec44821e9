//! The drills, by subject.

mod others;
mod starved;

use crate::report::Drill;

/// Every drill there is, in the order in which they are run.
pub fn all() -> Vec<&'static Drill> {
    [others::DRILLS, starved::DRILLS]
        .into_iter()
        .flatten()
        .collect()
}
