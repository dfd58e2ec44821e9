//! The walk as JSON: a row a line.

use serde::Serialize;
use warmq_report::Versioned;
use warmq_walk::{LevelLatency, SimulatedWalk, WalkFacts, WalkRow};

use super::{Twin, Walk};

/// A line: what was measured, its simulated twin, and where it was.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a WalkRow,
    #[serde(flatten)]
    simulated: Simulated<'a>,
    latencies: &'a [LevelLatency],
    latencies_after: &'a [LevelLatency],
    facts: &'a WalkFacts,
}

/// One walk where the sets are known, and otherwise the two between which it must lie, so that
/// nobody takes a range for a number.
#[derive(Serialize)]
#[serde(untagged)]
enum Simulated<'a> {
    Known {
        simulated: &'a SimulatedWalk,
        simulated_over_measured: f64,
    },
    Between {
        simulated_least: &'a SimulatedWalk,
        simulated_most: &'a SimulatedWalk,
        simulated_over_measured_least: f64,
        simulated_over_measured_most: f64,
    },
}

/// All rows, an object a line, without an end of line after the last.
pub fn json_lines(walk: &Walk) -> String {
    let text = |(row, twin)| {
        let line = Line {
            row,
            simulated: simulated(walk, row, twin),
            latencies: &walk.latencies.levels,
            latencies_after: &walk.latencies_after.levels,
            facts: &walk.report.facts,
        };
        serde_json::to_string(&Versioned::of(line)).expect("plain data becomes JSON")
    };
    itertools::join(walk.rows().map(text), "\n")
}

fn simulated<'a>(walk: &Walk, row: &WalkRow, twin: &'a Twin) -> Simulated<'a> {
    let (least, most) = twin.ratios(row);
    if walk.sets_known() {
        return Simulated::Known {
            simulated: &twin.least,
            simulated_over_measured: least,
        };
    }
    Simulated::Between {
        simulated_least: &twin.least,
        simulated_most: &twin.most,
        simulated_over_measured_least: least,
        simulated_over_measured_most: most,
    }
}
