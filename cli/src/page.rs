//! The files of `--out`, each written whole or not at all.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use warmq_report::{Report, Row, WriteError, write_csv, write_html};

use crate::failure::Failure;
use crate::files::{Unfinished, refused};

/// Writes `report.html` and `rows.csv` into `folder`, which the command has taken
/// ([`crate::files::folder`]). Answers the path of the page.
///
/// # Errors
/// When a file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<PathBuf, Failure> {
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
