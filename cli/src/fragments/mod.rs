//! What `warmq bench fragments` shows.

use serde::Serialize;
use warmq_bench::compare::Host;
use warmq_bench::fragments::{FragmentsReport, FragmentsRow};

use crate::{compared, listing};

const LEGEND: &str = "Times are seconds; work is accesses; ×plain: the speed, median of the \
                      repetitions. waits: voluntary switches, preempts: involuntary ones; moves: \
                      times that a thread was seen on another CPU; together: the share of \
                      accesses on the CPU where most of their fragment's took place.";

/// Where it was measured, the rows, and what follows from them.
pub fn table(report: &FragmentsReport) -> String {
    let mut table = listing::table();
    let heads = ["threads", "size"].map(str::to_owned).into_iter();
    let heads = heads.chain(compared::heads("work/s"));
    let more = compared::HEADS_OF_SWITCHES
        .into_iter()
        .chain(["moves", "together"]);
    table.set_header(heads.chain(more.map(str::to_owned)));
    for row in &report.rows {
        table.add_row(cells(row));
    }
    listing::align_numbers(&mut table, Some(2));
    let rounds = report
        .rows
        .iter()
        .map(|row| row.compared.summary.repetitions)
        .max();
    let place = compared::on_what(&report.host, rounds.unwrap_or(0));
    let what = report.rows.first().map(what).unwrap_or_default();
    let intro = listing::paragraph(&format!("{what} {place}"));
    let (rows, legend) = (table.trim_fmt(), listing::paragraph(LEGEND));
    let follows = follows(report).join("\n");
    format!("Fragments\n{intro}\n\n{rows}\n\n{legend}\n\n{follows}")
}

fn what(row: &FragmentsRow) -> String {
    format!(
        "{} accesses per thread, {} % of them writes; {} fragments.",
        row.iterations, row.write_share, row.fragments
    )
}

fn cells(row: &FragmentsRow) -> Vec<String> {
    let mut cells = vec![row.threads.to_string(), row.size.to_string()];
    cells.extend(compared::cells(&row.compared));
    cells.extend(compared::switches(&row.compared));
    cells.push(compared::whole(&row.moves));
    cells.push(format!("{:.0} %", 100.0 * row.together.median));
    cells
}

fn follows(report: &FragmentsReport) -> Vec<String> {
    let said = |row: &FragmentsRow| {
        let sentence = compared::sentence(&row.compared)?;
        let (threads, size) = (row.threads, row.size);
        Some(format!("{threads} threads, size {size}, {sentence}"))
    };
    let modes = report.rows.iter().map(|row| &row.compared);
    let notes = compared::notes(&report.host, report.cut, report.others_share, modes);
    let sentences = report.rows.iter().filter_map(said).chain(notes);
    sentences
        .map(|sentence| listing::paragraph(&sentence))
        .collect()
}

/// A line: a row, and where it was measured.
#[derive(Serialize)]
struct Line<'a> {
    program: &'static str,
    #[serde(flatten)]
    row: &'a FragmentsRow,
    cut: bool,
    others_share: Option<f64>,
    host: &'a Host,
}

/// All rows, an object a line, without an end of line after the last.
pub fn json_lines(report: &FragmentsReport) -> String {
    let line = |row| Line {
        program: "fragments",
        row,
        cut: report.cut,
        others_share: report.others_share,
        host: &report.host,
    };
    let text = |row| serde_json::to_string(&line(row)).expect("plain data becomes JSON");
    report.rows.iter().map(text).collect::<Vec<_>>().join("\n")
}
