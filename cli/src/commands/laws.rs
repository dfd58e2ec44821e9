//! `warmq laws`: what any decent scheduler keeps.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use warmq_law::{Law, Verdict};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::laws::column::{Column, Columns};
use crate::laws::{self, Cell, Playing, matrix, page, shipped};
use crate::{listing, output};

const EXAMPLES: &str = "\
Examples:
  warmq laws                                             all laws, in the lab, under scx_warmq
  warmq laws nice --world lab,guest --scheduler scx_warmq
  warmq laws --world guest --kernel 6.12,6.18,7.2 --scheduler kernel
  warmq laws --world guest --scheduler kernel,scx_warmq,./scx_mine
  warmq laws mine.toml --out evidence                    a law of your own; traces of what is broken";

/// Hold schedulers to what any decent scheduler keeps.
///
/// A law is a scenario and bounds for its figures (docs/laws.md). A cell says `holds`, `broken`,
/// `inconclusive` (repetitions disagree, or what was too long may be the host's fault) or `skipped`.
/// Ends with 0 if nothing is broken or inconclusive, 1 if something is broken, else 2.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Names of laws, or files of your own [default: all that come with warmq].
    #[arg(value_name = "LAW")]
    names: Vec<String>,
    #[command(flatten)]
    columns: Columns,
    /// Say what each law says, and play nothing.
    #[arg(long)]
    list: bool,
    /// Repetitions by the wall clock, which guests of several CPUs and this machine have [default: 3].
    #[arg(long, value_name = "N")]
    repetitions: Option<NonZeroUsize>,
    /// Runs at the same time [default: one per CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write a line of JSON for each cell.
    #[arg(long)]
    json: bool,
    /// Write the matrix as a page (laws.html), and the traces of what does not hold, into this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Plays, judges, shows.
///
/// # Errors
/// A law that cannot be read or played; a law that is broken.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let laws = shipped::find(&arguments.names)?;
    if arguments.list {
        return output::print(&listed(&laws));
    }
    let columns = arguments.columns.all();
    let columns = columns.map_err(|what| Failure::usage(what, "use lab, guest or host"))?;
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::system(format!("make {}", folder.display()), &error))?;
    }
    let playing = Playing {
        repetitions: arguments.repetitions.map(|it| it.get() as u64),
        threads: arguments.jobs.map_or(0, NonZeroUsize::get),
        folder: arguments.out.as_deref(),
    };
    let cells = laws::judged(&laws, &columns, &playing)?;
    if let Some(folder) = &arguments.out {
        let page = matrix_page(arguments, &cells, &columns);
        let file = folder.join("laws.html");
        written(&file, &page)?;
        output::say(&format!("warmq: {}", file.display()));
    }
    output::print(&match arguments.json {
        true => matrix::json(&cells),
        false => matrix::table(&cells, &columns),
    })?;
    verdict(&cells)
}

fn matrix_page(arguments: &Arguments, cells: &[Cell<'_>], columns: &[Column]) -> String {
    let names = arguments.names.iter().map(|name| format!(" {name}"));
    let command = format!(
        "warmq laws{}{}",
        names.collect::<String>(),
        arguments.columns.typed()
    );
    page::page(cells, columns, &command)
}

fn written(file: &Path, text: &str) -> Result<(), Failure> {
    let (unfinished, mut out) = Unfinished::begin(file)?;
    out.write_all(text.as_bytes())
        .map_err(|error| refused(file, &error))?;
    unfinished.finish(out)
}

fn listed(laws: &[(Law, String)]) -> String {
    let entries = laws.iter().map(|(law, _)| {
        let bounds: Vec<String> = law.bounds.iter().map(matrix::asked).collect();
        let what = format!("{}: {}. {}", law.says, bounds.join(", "), law.because);
        (law.name.as_str(), what)
    });
    listing::names(entries)
}

fn verdict(cells: &[Cell<'_>]) -> Result<(), Failure> {
    let has = |verdict| cells.iter().any(|cell| cell.judged.verdict == verdict);
    if has(Verdict::Broken) {
        return Err(Failure::Judged(Exit::ClaimFailed));
    }
    match has(Verdict::Inconclusive) {
        true => Err(Failure::Judged(Exit::BadInput)),
        false => Ok(()),
    }
}
