//! `warmq bench`: what is no scenario.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use warmq_report::Report;
use warmq_units::{Bytes, CpuId, Duration, Seed};
use warmq_walk::{FiberSettings, WalkSettings};

use crate::failure::Failure;
use crate::fibers::{self, Fibers};
use crate::recorded::{Recorder, cost};
use crate::walk::{self, Walk};
use crate::{files, output, present, typed};

const EXAMPLES: &str = "\
Examples:
  warmq bench walk
  warmq bench walk --blocks 512,1024 --colors 1,4,32 --lines 4
  warmq bench fibers --fibers 256,4096 --stack 64KB
  warmq bench walk --json | jq 'select(.colors == 32) | .ns_per_visit.median'";

/// Measure this machine's own caches, and what recording costs.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// The walk over the run queue, on this machine's own caches.
    Walk(WalkArguments),
    /// Fibers that run in turn, on plain and on colored stacks.
    Fibers(FibersArguments),
    /// What `warmq watch` and `warmq diagnose` cost.
    Record(RecordArguments),
}

/// Fibers that run in turn, on plain and on colored stacks.
///
/// Fibers of corosensei run in a random order that stays the same, on one CPU, and touch the tops
/// of their stacks. Plain and colored fibers run on the same stacks in alternation; then the same
/// is simulated on a description of this machine with latencies that were measured before
/// (docs/coloring.md).
#[derive(Args, Debug)]
struct FibersArguments {
    /// How many fibers; each number is measured on its own [default: 64,256,1024,4096,16000].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    fibers: Option<Vec<u32>>,
    /// Sizes of stacks [default: 16KB,64KB,256KB].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stack: Option<Vec<Bytes>>,
    /// Numbers of colors beside plain, powers of two; auto: as the library chooses [default: auto].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = colors)]
    colors: Option<Vec<Colors>>,
    /// Lines of its frame that a fiber touches [default: 2].
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
    /// Measurements of each, on stacks that are mapped anew; the median is shown [default: 11].
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// How long a single measurement takes [default: 60ms].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Huge pages, without guard pages.
    #[arg(long)]
    huge: bool,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
}

/// A number of colors; `None` for the library's choice.
#[derive(Clone, Copy, Debug)]
struct Colors(Option<u64>);

fn colors(text: &str) -> Result<Colors, String> {
    match text {
        "auto" => Ok(Colors(None)),
        _ => text
            .parse()
            .map(|colors| Colors(Some(colors)))
            .map_err(|_| "write a number or auto".to_owned()),
    }
}

/// What `warmq watch` and `warmq diagnose` cost on this machine.
///
/// A load of pipes makes about so many records a second, first without a recorder and then with
/// one. That needs root. Its own CPU time for a round trip shows what the kernel's events cost it.
#[derive(Args, Debug)]
struct RecordArguments {
    /// About how many records a second the load makes.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rate: u32,
    /// For how long [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    #[command(flatten)]
    recorder: Recorder,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    /// Be the load, and write what it did to this file.
    #[arg(long, value_name = "FILE", hide = true)]
    play: Option<PathBuf>,
}

/// The walk over the run queue, on this machine's own caches.
///
/// Blocks lie as a kernel would lay them out, linked in random order; a pinned CPU visits the hot
/// lines of each. All numbers of colors are measured in turn. Then the same walk is simulated on a
/// description of this machine with latencies that were measured apart.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct WalkArguments {
    /// Blocks on the list; each count is measured on its own [default: 64,256,512,1024,2048].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    blocks: Option<Vec<u32>>,
    /// Size and alignment of a block [default: 8KB].
    #[arg(long, value_name = "SIZE")]
    block_size: Option<Bytes>,
    /// Hot lines a block [default: 1].
    #[arg(long, value_name = "N")]
    lines: Option<u32>,
    /// Numbers of colors, powers of two; 1 is the vanilla kernel [default: 1,4,32].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    colors: Option<Vec<u32>>,
    /// The lowest address bit that colors are taken from [default: by equation 1].
    #[arg(long, value_name = "BIT")]
    color_bits: Option<u32>,
    /// Ask for huge pages, or not [default: yes].
    #[arg(long, value_name = "yes|no", num_args = 0..=1, default_missing_value = "yes",
        value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    hugepages: Option<bool>,
    /// The CPU to pin to [default: the last one allowed].
    #[arg(long, value_name = "CPU")]
    cpu: Option<u16>,
    /// Measurements for each pair of blocks and colors; the median is shown [default: 15].
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// The shortest time that a single measurement may take [default: 4ms].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    min_time: Option<Duration>,
    /// How long the search for the cache's sets may take; 0s for none [default: 20s].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    search_time: Option<Duration>,
    /// Makes the list's order [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
    /// Write report.html and rows.csv into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse()
        .map_err(|_| "write a whole number and a unit, as in 4ms".to_owned())
}

/// Runs the program and shows what it came to.
///
/// # Errors
/// Settings that make no sense; what the operating system refuses.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.program {
        Program::Walk(arguments) => run_walk(arguments),
        Program::Fibers(arguments) => run_fibers(arguments),
        Program::Record(arguments) => run_record(arguments),
    }
}

/// Measures, predicts, shows both.
fn run_fibers(arguments: &FibersArguments) -> Result<(), Failure> {
    let usual = FiberSettings::default();
    let numbers = |colors: &Vec<Colors>| colors.iter().map(|colors| colors.0).collect();
    let fibers = Fibers::measure(&FiberSettings {
        fibers: arguments.fibers.clone().unwrap_or(usual.fibers),
        stacks: arguments.stack.clone().unwrap_or(usual.stacks),
        colors: arguments.colors.as_ref().map_or(usual.colors, numbers),
        lines: arguments.lines.unwrap_or(usual.lines),
        rounds: arguments.rounds.unwrap_or(usual.rounds),
        time: arguments.time.unwrap_or(usual.time),
        huge_pages: arguments.huge,
    })?;
    output::print(&match arguments.json {
        true => fibers.json_lines()?,
        false => fibers::text(&fibers),
    })
}

/// Plays the load, or measures it.
fn run_record(arguments: &RecordArguments) -> Result<(), Failure> {
    let time = arguments.time.unwrap_or(Duration::from_s(10));
    if let Some(file) = &arguments.play {
        return cost::play(arguments.rate, time, file);
    }
    let cost = cost::measure(arguments.rate, time, arguments.recorder.choice)?;
    if arguments.json {
        return output::print_json(&cost);
    }
    output::print(&format!(
        "{} records, {} a second, {} lost; the recorder took {}.{} % of all CPUs\n\
         a round trip of the load took {} ns of CPU time, and {} ns while it was recorded\n\
         the diagnosis took {} ms",
        cost.records,
        cost.records_per_second,
        cost.lost,
        cost.recorder_permille / 10,
        cost.recorder_permille % 10,
        cost.trip_alone_ns,
        cost.trip_recorded_ns,
        cost.diagnosis_ms
    ))
}

/// Measures, simulates, shows both.
fn run_walk(arguments: &WalkArguments) -> Result<(), Failure> {
    let folder = arguments.out.as_deref();
    let _taken = folder.map(files::folder).transpose()?;
    let walk = Walk::measure(&arguments.settings())?;
    let section = walk::section(&walk, &arguments.command());
    if arguments.json {
        output::print(&walk::json_lines(&walk)?)?;
    } else {
        output::print(&walk::table(&walk, &section))?;
    }
    let Some(folder) = folder else {
        return Ok(());
    };
    let report = Report {
        title: section.title.clone(),
        subtitle: walk::on_what(&walk),
        command: section.command.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sections: vec![section],
        ..Report::default()
    };
    present::files(&report, folder, arguments.json)
}

impl WalkArguments {
    fn settings(&self) -> WalkSettings {
        let usual = WalkSettings::default();
        WalkSettings {
            blocks: self.blocks.clone().unwrap_or(usual.blocks),
            block_size: self.block_size.unwrap_or(usual.block_size),
            lines: self.lines.unwrap_or(usual.lines),
            colors: self.colors.clone().unwrap_or(usual.colors),
            color_bits: self.color_bits.or(usual.color_bits),
            huge_pages: self.hugepages.unwrap_or(usual.huge_pages),
            cpu: self.cpu.map(CpuId).or(usual.cpu),
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            min_time: self.min_time.unwrap_or(usual.min_time),
            search_time: self.search_time.unwrap_or(usual.search_time),
            seed: self.seed.map_or(usual.seed, Seed),
        }
    }

    /// The command with all that was not left at its default.
    fn command(&self) -> String {
        let list = |list: &Vec<u32>| itertools::join(list, ",");
        let plain = |value: &Option<u32>| value.map(|value| value.to_string());
        let time = |value: &Option<Duration>| value.map(Duration::exact);
        let size = self.block_size;
        let options = [
            ("blocks", self.blocks.as_ref().map(list)),
            (
                "block-size",
                size.map(|size| size.to_string().replace(' ', "")),
            ),
            ("lines", plain(&self.lines)),
            ("colors", self.colors.as_ref().map(list)),
            ("color-bits", plain(&self.color_bits)),
            (
                "hugepages",
                self.hugepages
                    .map(|huge| if huge { "yes" } else { "no" }.to_owned()),
            ),
            ("cpu", self.cpu.map(|cpu| cpu.to_string())),
            ("repetitions", plain(&self.repetitions)),
            ("min-time", time(&self.min_time)),
            ("search-time", time(&self.search_time)),
            ("seed", self.seed.map(|seed| seed.to_string())),
        ];
        let options = options.into_iter();
        let given = options.filter_map(|(name, value)| Some(typed::option(name, &value?)));
        typed::line("bench walk", &[], &given.flatten().collect::<Vec<_>>())
    }
}
