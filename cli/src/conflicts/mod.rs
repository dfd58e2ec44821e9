//! Hot addresses of a process, and what each level of caches makes of them.

mod child;
mod page;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tempfile::NamedTempFile;
use warmq_coloring::Coloring;
use warmq_config::{MOST_TEXT, read_bytes, read_text};
use warmq_conflicts::{
    Frames, Held, Kind, Layout, Level, PAGE, Process, UserBlocks, UserSymbol, hit_lines, levels,
    samples, symbol,
};
use warmq_machine::MachineDescription;
use warmq_recordings::{Recorded, Touched, Unreadable};
use warmq_units::{Bytes, CpuId, Duration, printable};
use warmq_walk::{SimulatedVisits, Spread, Translation, Visits, measure_visits};

use crate::failure::Failure;
use crate::progress::Watch;
use crate::{calibrated, machines, recording, walk};
use child::Looked;

pub use page::page;
pub use table::text;

/// Whose caches are described: CPU 0's, as the library `warmq-color` takes them.
const CPU: CpuId = CpuId(0);

/// Measurements of each layout, in memory of their own; and the shortest time of one.
const REPETITIONS: u32 = 15;
const MIN_TIME: Duration = Duration::from_ms(2);

/// Visits of so many addresses take seconds on simulated caches, too.
const MANY: usize = 100_000;

/// What is to be looked at.
#[derive(Args, Debug)]
pub struct Asked {
    /// The process.
    #[arg(value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// Blocks at ADDRESS, one every STRIDE bytes.
    #[arg(long, value_name = "ADDRESS,STRIDE,COUNT")]
    pub blocks: Vec<UserBlocks>,
    /// An array of the program by the name of its symbol [default: as many blocks as it has room
    /// for].
    #[arg(long, value_name = "NAME,STRIDE[,COUNT]")]
    pub symbol: Vec<UserSymbol>,
    /// Addresses that a profiler sampled: perf.data (of the process, or of that with most samples),
    /// or text, a line each in hex, as `perf script -F addr` writes them; - is standard input.
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Measure visits of copies of the addresses on this machine, as they are and colored.
    #[arg(long)]
    pub measure: bool,
    /// Let the command run for so long before looking at it [default: 1s].
    #[arg(long, value_name = "TIME")]
    pub after: Option<Duration>,
    /// Start this command, look at it, and end it.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Asked {
    /// Whether no address is asked for.
    fn is_empty(&self) -> bool {
        let named = self.blocks.len() + self.symbol.len() + self.command.len();
        named == 0 && self.pid.is_none() && self.samples.is_none()
    }
}

/// What was found.
#[derive(Serialize)]
pub struct Found {
    /// The process, if there is one.
    process: Option<Looks>,
    /// Where the times of caches come from.
    times: String,
    /// Whether this machine is virtual: physical addresses are the guest's then.
    virtual_machine: bool,
    /// A conflict, or none, for each kind of address.
    kinds: Vec<Conflict>,
}

/// A process that was looked at.
#[derive(Serialize)]
struct Looks {
    pid: u32,
    name: String,
    threads: usize,
    /// Threads that ran each time that they were looked at.
    running: usize,
}

/// Addresses of one kind.
#[derive(Serialize)]
struct Conflict {
    kind: Kind,
    source: &'static str,
    /// Different lines.
    lines: u64,
    /// The distance of most neighbours.
    stride: Option<u64>,
    /// Lines at each line of a page.
    by_offset: Vec<u64>,
    /// The same with the coloring, where there is one.
    colored_by_offset: Option<Vec<u64>>,
    levels: Vec<Held>,
    /// What the library `warmq-color` would choose; 1 is none.
    colors: u64,
    plain: Visited,
    /// Where there is a coloring.
    colored: Option<Visited>,
}

/// Visits of all lines in turn.
#[derive(Default, Serialize)]
struct Visited {
    /// On simulated caches; the best and the worst placement where that is not known.
    simulated: Vec<SimulatedVisits>,
    /// What the translation of an address takes beside, if it was measured.
    translation_ns: Option<f64>,
    /// On this machine, ns a visit.
    measured: Option<Spread>,
}

/// Looks at what was asked for.
///
/// # Errors
/// No such process, no permission, names of nothing, a command that ended by itself.
pub fn find(asked: &Asked) -> Result<Found, Failure> {
    if asked.is_empty() {
        let help = "give a PID, a command after `--`, --blocks or --samples";
        return Err(Failure::usage("there is nothing to look at", help));
    }
    let mut machine = machines::host()?;
    let levels = levels(&machine, CPU);
    let line = levels.first().map_or(64, |level| level.cache.line());
    let sampled = asked
        .samples
        .as_deref()
        .map(|file| sampled(file, asked.pid))
        .transpose()?
        .unwrap_or_default();
    let after = asked.after.unwrap_or(Duration::from_s(1));
    let child = Looked::start(&asked.command, after)?;
    let pid = asked.pid.or(child.as_ref().map(Looked::pid));
    let process = pid
        .map(|pid| Process::look(Path::new("/"), pid))
        .transpose()?;
    let mut layouts = process.as_ref().map_or(Vec::new(), Process::layouts);
    layouts.extend(asked.blocks.iter().map(|blocks| blocks.layout()));
    layouts.extend(named(&asked.symbol, process.as_ref())?);
    if let Some(file) = &asked.samples {
        let of = asked.pid.map(|pid| format!(" of process {pid}"));
        let name = format!("{}{}", printable(file), of.unwrap_or_default());
        let addresses = sampled.iter().map(|touched| touched.address);
        layouts.push(hit_lines(&name, addresses, line)?);
    }
    let addresses = || {
        layouts
            .iter()
            .flat_map(|layout| layout.addresses().iter().copied())
    };
    let frames = process
        .as_ref()
        .map(|process| Frames::of(process, addresses()));
    let mut frames = frames.unwrap_or_default();
    let pairs = sampled
        .iter()
        .map(|touched| Some((touched.address, touched.physical?)));
    frames.extend(pairs.flatten());
    drop(child);
    let translation = asked.measure.then(|| {
        let report = walk::measured_caches(&mut machine, Bytes(PAGE))?;
        Ok::<Translation, Failure>(report.translation)
    });
    let looking = Looking {
        levels,
        line,
        frames,
        translation: translation.transpose()?,
        machine,
    };
    let many = layouts.iter().any(|layout| layout.addresses().len() > MANY);
    let _watch = (asked.measure || many).then(|| Watch::until_done("visiting the addresses"));
    // A single line conflicts with nothing.
    let several = layouts.iter().filter(|layout| layout.lines(line).len() > 1);
    let kinds = several.map(|layout| looking.conflict(layout));
    Ok(Found {
        kinds: kinds.collect::<Result<_, Failure>>()?,
        process: process.map(|process| Looks {
            pid: process.pid,
            threads: process.threads.len(),
            running: process.running(),
            name: process.name,
        }),
        times: looking.times(),
        virtual_machine: is_virtual(),
    })
}

/// The blocks of `symbols` of `process`.
fn named(symbols: &[UserSymbol], process: Option<&Process>) -> Result<Vec<Layout>, Failure> {
    let layout = |wanted: &UserSymbol| {
        let process = process.ok_or_else(|| {
            let what = format!("--symbol {} is of no program", wanted.name);
            Failure::usage(what, "give a PID or a command")
        })?;
        let (start, size) = symbol(process, &wanted.name)?;
        Ok(wanted.blocks(start, size)?.layout())
    };
    symbols.iter().map(layout).collect()
}

/// What the samples in `file` touched, perf.data or text; `-` is standard input. Those of perf.data
/// are of process `pid`, or else of that which has most.
fn sampled(file: &Path, pid: Option<u32>) -> Result<Vec<Touched>, Failure> {
    let input = match file == Path::new("-") {
        true => Path::new("/dev/stdin"),
        false => file,
    };
    let name = printable(file).to_string();
    let failure = |error: io::Error| Failure::File {
        file: name.clone(),
        what: format!("cannot read it: {error}"),
        help: "give perf.data with addresses (`perf mem record`, `perf record -d`), or what \
               `perf script -F addr` writes"
            .to_owned(),
    };
    let held = match fs::metadata(input).is_ok_and(|about| about.is_file()) {
        true => None,
        false => Some(held(input).map_err(failure)?),
    };
    let input = held.as_ref().map_or(input, NamedTempFile::path);
    let recorded = Recorded::of(File::open(input).map_err(failure)?);
    match recorded.and_then(|recorded| recorded.touched()) {
        Ok(touched) => Ok(of_one(touched, pid)),
        Err(Unreadable::NotOne(_)) => {
            let text = read_text(input).map_err(failure)?;
            let touched = |address| Touched {
                process: None,
                address,
                physical: None,
            };
            let addresses = samples(&name, &text)?.into_iter();
            Ok(addresses.map(touched).collect())
        }
        Err(error) => Err(recording::unreadable(file, &error)),
    }
}

/// What comes out of the pipe or the device `input`, in a file, as it is looked at twice.
fn held(input: &Path) -> io::Result<NamedTempFile> {
    let mut held = NamedTempFile::new()?;
    held.write_all(&read_bytes(input, MOST_TEXT)?)?;
    Ok(held)
}

/// Those of process `pid`, or else of that which has most.
fn of_one(mut touched: Vec<Touched>, pid: Option<u32>) -> Vec<Touched> {
    let mut counts: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for touched in &touched {
        *counts.entry(touched.process).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let wanted = pid.or(most.and_then(|(process, _)| process));
    touched.retain(|touched| touched.process.is_none() || touched.process == wanted);
    touched
}

/// Whether a hypervisor runs this machine, as far as the processor says so (x86).
fn is_virtual() -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = text.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// What is the same for addresses of all kinds.
struct Looking {
    levels: Vec<Level>,
    /// Bytes of a line.
    line: u64,
    frames: Frames,
    /// What translations of addresses take, where visits are measured.
    translation: Option<Translation>,
    machine: MachineDescription,
}

impl Looking {
    /// Where the times of caches come from.
    fn times(&self) -> String {
        match &self.translation {
            Some(_) => "Latencies of caches were measured just now.".to_owned(),
            None => calibrated::sentence(),
        }
    }

    fn conflict(&self, layout: &Layout) -> Result<Conflict, Failure> {
        let held = self
            .levels
            .iter()
            .map(|level| Held::of(*level, layout, &self.frames));
        let held: Vec<Held> = held.collect();
        let coloring = self.coloring(layout, &held);
        let mut layouts = vec![layout.clone()];
        layouts.extend((coloring.colors() > 1).then(|| layout.colored(coloring)));
        let mut visited = self.visited(&layouts)?.into_iter();
        Ok(Conflict {
            kind: layout.kind(),
            source: layout.kind().source(),
            lines: layout.lines(self.line).len() as u64,
            stride: layout.stride(),
            by_offset: layout.by_offset(self.line),
            colored_by_offset: layouts.get(1).map(|layout| layout.by_offset(self.line)),
            levels: held,
            colors: coloring.colors(),
            plain: visited.next().unwrap_or_default(),
            colored: visited.next(),
        })
    }

    /// The coloring for the nearest level that can hold the lines; none where that one holds them
    /// already.
    fn coloring(&self, layout: &Layout, held: &[Held]) -> Coloring {
        let mut levels = self.levels.iter().zip(held);
        let fitting = |(level, held): (&Level, &Held)| Some((held.colors?, level.cache));
        match levels.find_map(fitting) {
            Some((colors, cache)) if colors > 1 => {
                Coloring::new(colors, layout.stride().unwrap_or(PAGE), cache)
            }
            _ => Coloring::NONE,
        }
    }

    /// Visits of each of `layouts`, measured in alternation.
    fn visited(&self, layouts: &[Layout]) -> Result<Vec<Visited>, Failure> {
        let of = |layout: &Layout| Visits::of(layout.addresses(), Bytes(self.line));
        let visits: Vec<Visits> = layouts.iter().filter_map(of).collect();
        let measured = match &self.translation {
            Some(_) => measure_visits(&visits, None, REPETITIONS, MIN_TIME)?,
            None => Vec::new(),
        };
        let mut measured = measured.into_iter();
        let visited = visits.iter().map(|visits| Visited {
            simulated: visits.simulate(&self.machine, CPU),
            translation_ns: self
                .translation
                .as_ref()
                .map(|cost| cost.ns(visits.pages())),
            measured: measured.next(),
        });
        Ok(visited.collect())
    }
}
