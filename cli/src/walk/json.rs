//! The walk as JSON: a row a line.

use serde::Serialize;
use warmq_bench::{LevelLatency, SimulatedWalk, WalkFacts, WalkRow};

use super::Walk;

/// A line: what was measured, its simulated twin, and where it was.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a WalkRow,
    simulated: &'a SimulatedWalk,
    simulated_over_measured: f64,
    latencies: &'a [LevelLatency],
    facts: &'a WalkFacts,
}

/// All rows, an object a line, without an end of line after the last.
pub fn json_lines(walk: &Walk) -> String {
    let line = |(row, simulated, simulated_over_measured)| Line {
        row,
        simulated,
        simulated_over_measured,
        latencies: &walk.latencies.levels,
        facts: &walk.report.facts,
    };
    let text = |it| serde_json::to_string(&line(it)).expect("plain data becomes JSON");
    walk.rows().map(text).collect::<Vec<String>>().join("\n")
}
