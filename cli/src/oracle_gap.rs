//! The gaps of drawn instances, which are computed and not simulated.

use std::path::Path;

use warmq_affinity::Gaps;
pub use warmq_experiment::gap::GAP;
use warmq_experiment::gap::{self, count, shapes};
use warmq_report::Section;

use crate::failure::Failure;
use crate::progress::Late;
use crate::typed;

/// Whether `name` is this section's, and not a file's.
pub fn is_named(name: &str) -> bool {
    name == GAP && !Path::new(name).exists()
}

/// Draws the instances and solves them.
///
/// # Errors
/// An instance that is too large for an exact answer.
pub fn section(quick: bool) -> Result<Section, Failure> {
    let count = count(quick);
    let mut found = Vec::new();
    for (name, shape) in shapes() {
        let mut progress = Late::over("instances");
        let mut see = |done| progress.see(done, count as usize, name);
        let gaps = Gaps::of(&shape, 1, count, &mut see);
        let large =
            |(seed, error)| Failure::usage(format!("the instance of seed {seed}: {error}"), "");
        found.push((name, gaps.map_err(large)?));
    }
    Ok(gap::section(
        count,
        &found,
        &typed::line("run", &[GAP], &[]),
    ))
}
