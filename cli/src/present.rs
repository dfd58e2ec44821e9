//! A finished report: on the terminal or as JSON, and as files.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use warmq_experiment::Study;
use warmq_report::{Report, Row, Terminal, WriteError};
use warmq_report::{write_csv, write_html, write_json_lines, write_json_profiles};
use warmq_units::printable;

use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::output;

/// Prints every row as a line of JSON.
///
/// # Errors
/// When standard output refuses.
pub fn json(report: &Report) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let rows = report.sections.iter().flat_map(|section| &section.rows);
    write_json_lines(rows, &mut lines)?;
    for section in &report.sections {
        write_json_profiles(&section.id, &section.profiles, &mut lines)?;
    }
    let lines = String::from_utf8_lossy(&lines);
    match lines.trim_end() {
        "" => Ok(()),
        lines => output::print(lines),
    }
}

/// Prints a section an experiment: its tables and claims; with `all`, every figure of a scenario.
///
/// # Errors
/// When standard output refuses.
pub fn sections(report: &Report, all: bool) -> Result<(), Failure> {
    let terminal = Terminal {
        all,
        ..output::results()
    };
    report
        .sections
        .iter()
        .try_for_each(|section| output::print(&terminal.section(section)))
}

/// Prints the summary.
///
/// # Errors
/// When standard output refuses.
pub fn summary(report: &Report, study: &Study) -> Result<(), Failure> {
    let (runs, seconds) = (study.count(), study.elapsed.as_secs_f64());
    let s = if runs == 1 { "" } else { "s" };
    let took = format!("{runs} run{s} in {seconds:.1} s");
    // A scenario that is only looked at claims nothing.
    if report.sections.iter().all(|section| section.together) {
        return output::print(&took);
    }
    output::print(output::results().summary(report).trim_end())?;
    let claims = claims(report.summary().claims(), study.claims().unchecked);
    output::print(&format!("{claims}; {took}"))
}

fn claims((held, all): (usize, usize), unchecked: usize) -> String {
    let unchecked = match unchecked {
        0 => String::new(),
        count => format!(", {count} not checked (they need points that were not run)"),
    };
    format!("claims: {held} hold, {} fail{unchecked}", all - held)
}

/// Writes the files and says where the page is: on standard output, unless that is for rows.
///
/// # Errors
/// When a file cannot be written.
pub fn files(report: &Report, folder: &Path, json: bool) -> Result<(), Failure> {
    let page = write(report, folder)?;
    let text = format!("page: {}", printable(&page));
    if json {
        output::say(&text);
        return Ok(());
    }
    output::print(&text)
}

/// Writes `report.html` and `rows.csv` into `folder`, which the command has taken
/// ([`crate::files::folder`]). Answers the path of the page.
fn write(report: &Report, folder: &Path) -> Result<PathBuf, Failure> {
    let sections = report.sections.iter();
    let rows: Vec<Row> = sections.flat_map(|section| section.rows.clone()).collect();
    file(&folder.join("rows.csv"), |out| write_csv(&rows, out))?;
    let page = folder.join("report.html");
    file(&page, |out| write_html(report, out))?;
    Ok(page)
}

fn file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), WriteError>,
) -> Result<(), Failure> {
    let (unfinished, mut out) = Unfinished::begin(path)?;
    write(&mut out).map_err(|error| refused(path, &error))?;
    unfinished.finish(out)
}
