//! `warmq judge`: one answer about a scheduler.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use warmq_units::printable;

use crate::arguments::Trust;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::judge::tune::{self, Tuned, Tuning};
use crate::judge::{self, Wanted};
use crate::{files, output, present, typed};

const EXAMPLES: &str = "\
Examples:
  warmq judge ./scx_mine.bpf.o                           against the kernel's own scheduler of 7.3
  warmq judge ./scx_mine.bpf.o --against ./scx_main.bpf.o --explain
  warmq judge kernel,scx_bpfland,scx_lavd --kernel 6.12,6.18,7.3
  warmq judge scx_mine:slice_ns=2000000 --scenario desktop,mine.toml --machine 2cpus --law none
  warmq judge ./scx_mine.bpf.o --tune slice_ns=500000..8000000 --machine 2cpus,4llc
  warmq judge ./scx_mine.bpf.o --seeds fresh --json | jq .score";

/// Judge schedulers against another one: laws, scenarios, one table, one exit status.
///
/// A law that the base keeps and the scheduler breaks is a regression, and so is a figure that the
/// base has and the scheduler lacks. Figures are ratios to the base; above 1 is better
/// (docs/judge.md). Ends with 0 if nobody regressed, else 1.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Say of each loss who waited for whom, with the profile of the scheduler's callbacks.
    #[arg(long)]
    explain: bool,
    /// Try all combinations of these settings of the scheduler, the better half again and again,
    /// and say which are best: KEY=LEAST..MOST or KEY=VALUE|VALUE.
    #[arg(long, value_name = "KEY=RANGE,...", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["json", "explain", "all"])]
    tune: Vec<Tuned>,
    /// Show each figure of each scenario on each machine.
    #[arg(long)]
    all: bool,
    /// Runs at the same time [default: one per CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write a page with every figure (judge.html), and the lines of JSON (judge.jsonl), into this
    /// folder; with --tune the page of the settings (report.html), and its rows (rows.csv).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print a line of JSON for each scheduler, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: Trust,
}

/// Plays, judges, shows.
///
/// # Errors
/// What cannot be played; a regression.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut wanted = arguments.wanted.clone();
    if !arguments.tune.is_empty() {
        wanted.schedulers = tune::combinations(&wanted.schedulers, &arguments.tune)?;
    }
    let threads = arguments.jobs.map_or(0, NonZeroUsize::get);
    let ring = judge::Ring::new(&wanted, arguments.trust, threads)?;
    // Taken before anything is played, so that nothing is played in vain.
    let _taken = arguments.out.as_deref().map(files::folder).transpose()?;
    if !arguments.tune.is_empty() {
        return arguments.tuned(&ring);
    }
    let played = ring.play()?;
    let judgements = ring
        .contest
        .judged(&played.jobs, &played.runs, &played.cells);
    let lines = judge::json::lines(&ring.contest, &judgements)?;
    match arguments.json {
        true => output::print(&lines)?,
        false => output::print(&judge::text::all(&ring.contest, &judgements, arguments.all))?,
    }
    let why = arguments
        .explain
        .then(|| ring.explained(&judgements, &played.cells));
    let why = why.transpose()?;
    match (&why, arguments.json) {
        (Some(why), true) => output::say(why),
        (Some(why), false) => output::print(&format!("\n{why}"))?,
        (None, _) => {}
    }
    if let Some(folder) = &arguments.out {
        let command = arguments.again(&ring.contest.seeds);
        let page = judge::page::page(&ring.contest, &judgements, why.as_deref(), &command);
        let file = folder.join("judge.html");
        files::write(&file, page.as_bytes())?;
        files::write(&folder.join("judge.jsonl"), format!("{lines}\n").as_bytes())?;
        output::say(&format!("warmq: {}", printable(&file)));
    }
    match judgements.iter().any(|judged| judged.is_regression()) {
        true => Err(Failure::Judged(Exit::ClaimFailed)),
        false => Ok(()),
    }
}

impl Arguments {
    /// Tries all settings and says which are best.
    fn tuned(&self, ring: &judge::Ring) -> Result<(), Failure> {
        let tuning = Tuning::of(ring, &self.tune)?;
        output::print(&tuning.text())?;
        if let Some(folder) = &self.out {
            let report = tuning.report(&self.again(&ring.contest.seeds));
            present::files(&report, folder, false)?;
        }
        match tuning.recommended() {
            Some(_) => Ok(()),
            None => Err(Failure::Judged(Exit::ClaimFailed)),
        }
    }

    /// The command that judges the same again, with seeds that were drawn.
    fn again(&self, seeds: &[u64]) -> String {
        let mut drawn: Vec<String> = seeds.iter().map(u64::to_string).collect();
        if drawn.len() == 1 {
            drawn.push(String::new());
        }
        let wanted = &self.wanted;
        let against: Vec<String> = wanted.against.clone().into_iter().collect();
        let tune: Vec<String> = self.tune.iter().map(Tuned::to_string).collect();
        let options = [
            typed::list("against", &against),
            typed::list("kernel", &wanted.kernel),
            typed::option("world", &wanted.world),
            typed::list("machine", &wanted.machine),
            typed::list("scenario", &wanted.scenario),
            typed::list("law", &wanted.law),
            typed::list("seeds", &drawn),
            typed::list("tune", &tune),
        ];
        typed::line("judge", &[&wanted.schedulers.join(",")], &options.concat())
    }
}
