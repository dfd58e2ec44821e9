//! Simplex as JSON: a row a line.

use serde::Serialize;
use warmq_bench::Spread;
use warmq_bench::simplex::{Cluster, SimplexFacts, SimplexReport, SimplexRow, clusters};

use super::GAP;

/// A line: what was measured, where its repetitions lie, and where it was.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a SimplexRow,
    work_share: Option<Spread>,
    clusters: Vec<Cluster>,
    facts: &'a SimplexFacts,
}

/// All rows, an object a line, without an end of line after the last.
pub fn json_lines(report: &SimplexReport) -> String {
    let line = |row| Line {
        row,
        work_share: row.spread(|it| Some(it.simplex.work_share)),
        clusters: clusters(&row.work_shares(), GAP),
        facts: &report.facts,
    };
    let text = |row| serde_json::to_string(&line(row)).expect("plain data becomes JSON");
    report.rows.iter().map(text).collect::<Vec<_>>().join("\n")
}
