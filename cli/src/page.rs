//! Pages: the frame of those that commands make by themselves, and the files of `--out`, each
//! written whole or not at all.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use warmq_report::{Report, Row, WriteError, write_csv, write_html};

use crate::failure::Failure;
use crate::files::{Unfinished, refused};

const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A page that needs no network; `style` is added to that of all pages.
pub fn page_of(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

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
