//! The walk as JSON: a row a line.

use std::collections::BTreeMap;

use serde::Serialize;
use warmq_walk::{LevelLatency, SimulatedWalk, WalkFacts, WalkRow};

use super::Walk;
use super::section::ends;
use crate::failure::Failure;
use crate::output;

/// A line: what was measured, its simulated twin, and where it was. There is one twin where the
/// sets are known, and otherwise the two between which it must lie, so that nobody takes a range
/// for a number.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a WalkRow,
    #[serde(flatten)]
    simulated: BTreeMap<String, &'a SimulatedWalk>,
    #[serde(flatten)]
    ratios: BTreeMap<String, f64>,
    latencies: &'a [LevelLatency],
    latencies_after: &'a [LevelLatency],
    facts: &'a WalkFacts,
}

/// All rows, an object a line, without an end of line after the last.
///
/// # Errors
/// A number that JSON does not have.
pub fn json_lines(walk: &Walk) -> Result<String, Failure> {
    output::lines_of(walk.rows().map(|(row, twin)| Line {
        row,
        simulated: ends(walk, "simulated", (&twin.least, &twin.most)),
        ratios: ends(walk, "simulated_over_measured", twin.ratios(row)),
        latencies: &walk.latencies.levels,
        latencies_after: &walk.latencies_after.levels,
        facts: &walk.report.facts,
    }))
}
