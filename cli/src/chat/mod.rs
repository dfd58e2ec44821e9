//! What `warmq bench chat` shows.

use serde::Serialize;
use warmq_bench::chat::{ChatReport, ChatRow};
use warmq_bench::compare::Host;

use crate::{compared, listing};

const LEGEND: &str = "Times are seconds, latencies milliseconds; a message counts when it is \
                      delivered to one user; ×plain: the speed, median of the repetitions. CPU \
                      time and switches are those of client and server together; waits: \
                      voluntary switches, preempts: involuntary ones.";

/// Where it was measured, the rows, and what follows from them.
pub fn table(report: &ChatReport) -> String {
    let mut table = listing::table();
    let heads = compared::heads("msgs/s").into_iter();
    let more = compared::HEADS_OF_SWITCHES
        .into_iter()
        .chain(["p50", "p99", "p99.9"]);
    let heads = heads.chain(more.map(str::to_owned));
    table.set_header(std::iter::once("rooms".to_owned()).chain(heads));
    for row in &report.rows {
        table.add_row(cells(row));
    }
    listing::align_numbers(&mut table, Some(1));
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
    format!("Chat\n{intro}\n\n{rows}\n\n{legend}\n\n{follows}")
}

fn what(row: &ChatRow) -> String {
    format!(
        "{} users per room, {} messages of {} bytes each; TCP over the loopback, two processes.",
        row.users, row.messages, row.size
    )
}

fn cells(row: &ChatRow) -> Vec<String> {
    let mut cells = vec![row.rooms.to_string()];
    cells.extend(compared::cells(&row.compared));
    cells.extend(compared::switches(&row.compared));
    let latency = row.latency_us;
    let ms = [latency.p50, latency.p99, latency.p999].map(|it| format!("{:.1}", it.median / 1e3));
    cells.extend(ms);
    cells
}

fn follows(report: &ChatReport) -> Vec<String> {
    let said = |row: &ChatRow| {
        let sentence = compared::sentence(&row.compared)?;
        let s = if row.rooms == 1 { "" } else { "s" };
        Some(format!("{} room{s}, {sentence}", row.rooms))
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
    row: &'a ChatRow,
    cut: bool,
    others_share: Option<f64>,
    host: &'a Host,
}

/// All rows, an object a line, without an end of line after the last.
pub fn json_lines(report: &ChatReport) -> String {
    let line = |row| Line {
        program: "chat",
        row,
        cut: report.cut,
        others_share: report.others_share,
        host: &report.host,
    };
    let text = |row| serde_json::to_string(&line(row)).expect("plain data becomes JSON");
    report.rows.iter().map(text).collect::<Vec<_>>().join("\n")
}
