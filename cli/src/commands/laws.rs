//! `warmq laws`: what any decent scheduler keeps.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use itertools::join;
use warmq_config::read_text;
use warmq_experiment::laws::Playing;
use warmq_law::shown::asked;
use warmq_law::{Cell, Column, Columns, Found, Line, Verdict};
use warmq_law::{changed, columns_of, known, lines_of, predictions, read_lines};
use warmq_units::printable;

use crate::arguments::{Trust, Where};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files::{self, refused};
use crate::laws::{self, beside, matrix, page, shipped};
use crate::{listing, output, typed};

const EXAMPLES: &str = "\
Examples:
  warmq laws                                             all laws, in the lab, under the kernel's own scheduler
  warmq laws nice --world lab,guest --scheduler scx_warmq
  warmq laws --world guest --kernel 6.12,6.18,7.2 --scheduler kernel
  warmq laws --world guest --scheduler kernel,scx_warmq,./scx_mine
  warmq laws nice --scheduler broken:fault=ignores-weights
                                                         a scheduler that breaks it
  warmq laws mine.toml --out evidence                    a law of your own; traces of what is broken";

/// What options say here otherwise than where scenarios are played: laws do not look at this
/// machine's kernel.
const KERNELS: &str = "\
    Kernels of guests and of the lab: series (6.12, 7.1), or files of guests [default: 6.18]";
const MODELS: &str = "\
    Preemption models of guests and of the lab: none, voluntary, full, lazy [default: the \
    kernel's]";

/// Hold schedulers to what any decent scheduler keeps.
///
/// A law is a scenario and bounds for its figures (docs/laws.md). A cell says `holds`, `broken`,
/// `inconclusive` (repetitions disagree, or what was too long may be the host's fault) or
/// `skipped`. Ends with 0 if nothing is broken or inconclusive, 1 if something is broken, else 2.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("kernel", |argument| argument.help(KERNELS)))]
#[command(mut_arg("preempt", |argument| argument.help(MODELS)))]
pub struct Arguments {
    /// Names of laws, or files of your own [default: all that come with warmq]. For a comparison
    /// (`--alike`) also scenarios, which no bound judges: `schbench-1cpu`, `schbench-2cpus`, or a
    /// file of yours.
    #[arg(value_name = "LAW")]
    names: Vec<String>,
    #[command(flatten)]
    place: Where,
    /// Play for a comparison, in which lab and guests differ in nothing but what is simulated: the
    /// lab on a machine with the costs of such a guest, guests of several CPUs by the clock where
    /// this machine has the cores. `--world lab,guest` means it.
    #[arg(long)]
    alike: bool,
    /// Say what each law says, with `--json` in a line each, and play nothing.
    #[arg(long)]
    list: bool,
    /// Repetitions by the wall clock, which guests of several CPUs and this machine have, and with
    /// `--alike` in the lab, each with a seed of its own [default: 3].
    #[arg(long, value_name = "N")]
    repetitions: Option<NonZeroUsize>,
    /// Play a law that holds at its first repetition no further.
    #[arg(long)]
    confirm: bool,
    /// Runs at the same time [default: one per CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write a line of JSON for each cell.
    #[arg(long)]
    json: bool,
    /// Write the matrix (laws.html, laws.md, laws.jsonl) and the traces of what does not hold into
    /// this folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Go on with what was interrupted: cells in FOLDER/laws.jsonl are not played again, unless
    /// their law was changed since. (A scheduler that was built anew is not noticed.)
    #[arg(long, requires = "out")]
    resume: bool,
    /// Start anew, and remove the cells that are in FOLDER/laws.jsonl.
    #[arg(long, requires = "out", conflicts_with = "resume")]
    anew: bool,
    /// Play nothing: show all that FOLDER/laws.jsonl has, of whatever columns it is.
    #[arg(long, requires = "out", conflicts_with_all = ["resume", "anew"])]
    show: bool,
    /// Say what changed since this matrix (a laws.jsonl, or what --json wrote).
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Take the guests from this file (a laws.jsonl of `--alike`) instead of playing them, and say
    /// how far the lab is from them, figure by figure.
    #[arg(long, value_name = "FILE", requires = "alike")]
    beside: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
}

impl Arguments {
    fn columns(&self) -> Columns {
        let place = self.place.clone();
        Columns {
            world: place.world,
            scheduler: place.scheduler,
            kernel: place.kernel,
            preempt: place.preempt,
            alike: self.alike,
        }
    }
}

/// Plays, judges, shows.
///
/// # Errors
/// A law that cannot be read or played; a law that is broken.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let columns = arguments.columns();
    let laws = match columns.is_alike() {
        true => shipped::find_alike(&arguments.names)?,
        false => shipped::find(&arguments.names)?,
    };
    for Found { law, text, .. } in &laws {
        if !shipped::is_shipped(text) {
            arguments.trust.admits(&law.scenario)?;
        }
    }
    if arguments.list {
        return match arguments.json {
            true => laws.iter().try_for_each(listed_in_json),
            false => output::print(&listed(&laws)),
        };
    }
    if arguments.show {
        return shown(arguments, &laws);
    }
    let columns = columns
        .all()
        .map_err(|what| Failure::usage(what, "use lab, guest or host"))?;
    let folder = arguments.out.as_deref();
    let _taken = folder.map(files::folder).transpose()?;
    let before = arguments.against.as_deref().map(lines).transpose()?;
    let (known, mut sink) = kept(arguments)?;
    let playing = Playing {
        known: &known,
        repetitions: arguments.repetitions.map(|count| count.get() as u64),
        confirm: arguments.confirm,
        threads: arguments.jobs.map_or(0, NonZeroUsize::get),
        ..Playing::default()
    };
    let cells = laws::judged(&laws, &columns, &playing, folder, &mut |cell| {
        sink.add(cell)
    })?;
    sink.finish()?;
    print(arguments, &laws, &cells, &columns)?;
    if let Some(before) = &before {
        output::say(&changes(before, &cells));
    }
    verdict(&cells)
}

/// The page, the table, and the matrix on standard output; and lab and guests side by side.
fn print(
    arguments: &Arguments,
    laws: &[Found],
    cells: &[Cell<'_>],
    columns: &[Column],
) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        let page = matrix_page(arguments, cells, columns);
        let file = folder.join("laws.html");
        files::write(&file, page.as_bytes())?;
        let table = matrix::markdown(cells, columns);
        files::write(&folder.join("laws.md"), table.as_bytes())?;
        output::say(&format!("warmq: {}", printable(&file)));
    }
    if arguments.json {
        return output::print(&lines_of(cells));
    }
    output::print(&matrix::table(cells, columns))?;
    let file = arguments.beside.as_deref().map(lines).transpose()?;
    let of_file = file.as_deref().map(columns_of).unwrap_or_default();
    let guests = file.map(|lines| known(laws, &of_file, &lines, &laws::again));
    let both = predictions(cells, guests.as_deref().unwrap_or(cells));
    match both.is_empty() {
        true => Ok(()),
        false => output::print(&format!("\n{}", beside::table(&both))),
    }
}

/// The cells of a folder, of all columns that are in it.
fn shown(arguments: &Arguments, laws: &[Found]) -> Result<(), Failure> {
    let folder = arguments.out.as_deref().unwrap_or(Path::new("."));
    let lines = lines(&folder.join("laws.jsonl"))?;
    let columns = columns_of(&lines);
    let cells = known(laws, &columns, &lines, &laws::again);
    print(arguments, laws, &cells, &columns)?;
    verdict(&cells)
}

/// What changed, a line each.
fn changes(before: &[Line], cells: &[Cell<'_>]) -> String {
    let beside = |cell: &Cell<'_>| {
        let line = Line::of(cell);
        before.iter().rfind(|old| old.is_beside(&line))
    };
    let compared = cells.iter().filter(|cell| beside(cell).is_some()).count();
    let changed = cells.iter().filter_map(|cell| {
        let change = changed(beside(cell)?, cell)?;
        Some(format!("warmq: changed: {change}"))
    });
    match join(changed, "\n") {
        none if none.is_empty() => format!("warmq: nothing changed; cells compared: {compared}"),
        changed => changed,
    }
}

fn lines(file: &Path) -> Result<Vec<Line>, Failure> {
    let text = read_text(file).map_err(|error| unreadable(file, &error))?;
    read(file, &text)
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{}: cannot read it: {error}", printable(file)), "")
}

fn read(file: &Path, text: &str) -> Result<Vec<Line>, Failure> {
    let help = "give what warmq laws --json wrote";
    read_lines(text).map_err(|why| Failure::usage(format!("{}: {why}", printable(file)), help))
}

/// Where cells are written as they come.
struct Sink(Option<(PathBuf, File)>);

impl Sink {
    fn add(&mut self, cell: &Cell<'_>) -> Result<(), Failure> {
        let Some((path, file)) = &mut self.0 else {
            return Ok(());
        };
        let line = lines_of(std::slice::from_ref(cell));
        writeln!(file, "{line}").map_err(|error| refused(path, &error))
    }

    /// Has the operating system write all of it out.
    fn finish(self) -> Result<(), Failure> {
        let Some((path, file)) = self.0 else {
            return Ok(());
        };
        match file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            true => file.sync_all().map_err(|error| refused(&path, &error)),
            false => Ok(()),
        }
    }
}

/// The cells that need not be played again, and where to write the others. What is there is cut
/// only if that was asked for, but for a last line that is not whole.
fn kept(arguments: &Arguments) -> Result<(Vec<Line>, Sink), Failure> {
    let Some(folder) = &arguments.out else {
        return Ok((Vec::new(), Sink(None)));
    };
    let path = folder.join("laws.jsonl");
    let file = files::append(&path)?;
    // A pipe has nothing yet.
    let about = file.metadata().ok().filter(Metadata::is_file);
    let length = about.map_or(0, |about| about.len());
    let text = match (
        arguments.resume && length > 0,
        arguments.anew || length == 0,
    ) {
        (true, _) => read_text(&path).map_err(|error| unreadable(&path, &error))?,
        (false, true) => String::new(),
        (false, false) => return Err(has_results(&path)),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if (whole as u64) < length {
        let cut = file.set_len(whole as u64);
        cut.map_err(|error| refused(&path, &error))?;
    }
    let known = read(&path, &text[..whole])?;
    Ok((known, Sink(Some((path, file)))))
}

fn has_results(path: &Path) -> Failure {
    Failure::usage(
        format!("{}: there are results already", printable(path)),
        "give --resume to go on with them, --anew to remove them and start anew, or another --out",
    )
}

fn matrix_page(arguments: &Arguments, cells: &[Cell<'_>], columns: &[Column]) -> String {
    let names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    let alike = arguments.alike.then(|| laws::ALIKE.to_owned());
    let options: Vec<String> = arguments.place.typed().into_iter().chain(alike).collect();
    let command = typed::line("laws", &names, &options);
    page::page(cells, columns, &command)
}

fn listed(laws: &[Found]) -> String {
    let entries = laws.iter().map(|Found { law, .. }| {
        let bounds = join(law.bounds.iter().map(asked), ", ");
        let broken_by = match &law.broken_by {
            Some(fault) => format!(" Broken by a scheduler with the fault {fault}."),
            None => String::new(),
        };
        let what = format!("{}: {bounds}. {}{broken_by}", law.says, law.because);
        (law.name.as_str(), what)
    });
    listing::names(entries)
}

fn listed_in_json(Found { law, .. }: &Found) -> Result<(), Failure> {
    let line = serde_json::json!({
        "law": law.name,
        "says": law.says,
        "asks_for": law.bounds.iter().map(asked).collect::<Vec<String>>(),
        "because": law.because,
        "broken_by": law.broken_by,
    });
    output::print(&output::json_of(&line)?)
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
