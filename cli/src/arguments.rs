//! What can be typed, and the help that explains it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use warmq_experiment::Engine;
use warmq_scenario::Scenario;

use crate::commands::{
    bench, calibrate, check, compare, completions, conflicts, convert, diagnose, judge, laws,
    machines, man, metrics, parts, plan, race, replay, reproduce, run, vm, watch,
};
use crate::exit;
use crate::failure::Failure;
use crate::seeds::Seeds;
use crate::typed;

const EXAMPLES: &str = "\
Examples:
  warmq reproduce --quick                  what the papers are known for, with a page to look at
  warmq run table2-miss-ratio              one experiment that comes with warmq
  warmq run mine.toml --json | jq .value   your own, a row a line
  warmq run mine.toml --machine host       the same on a model of this machine
  warmq bench walk                         the walk over the run queue on this machine's caches
  warmq vm run -- uname -a                 a command in a kernel with sched_ext, booted for it";

/// A laboratory for CPU schedulers and caches, and the real thing beside it.
///
/// WarmQ simulates Linux schedulers on machines of any make, cache line by cache line, and shows
/// published and simulated figures side by side. An experiment is a TOML file
/// (docs/experiments.md); `warmq machines`, `schedulers` and `workloads` list what there is.
#[derive(Debug, Parser)]
#[command(name = "warmq", version, after_help = EXAMPLES, after_long_help = long_help())]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{}", exit::TABLE)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run experiments or scenarios and show their results.
    Run(run::Arguments),
    /// List the runs of an experiment without making any.
    Plan(plan::Arguments),
    /// Repeat the experiments of a paper and show its figures beside ours.
    Reproduce(reproduce::Arguments),
    /// Compare two recordings of a scenario, switch by switch.
    Compare(compare::Arguments),
    /// Hold schedulers to what any decent scheduler keeps.
    Laws(laws::Arguments),
    /// Judge schedulers against another one: laws, scenarios, one table, one exit status.
    Judge(judge::Arguments),
    /// Look for races in a compiled scheduler.
    Race(race::Arguments),
    /// Say who starves in a trace, who ran instead, and why it could.
    Diagnose(diagnose::Arguments),
    /// Play again what a trace recorded, under another scheduler or on another machine.
    Replay(replay::Arguments),
    /// Record this machine, and say who starves on it.
    Watch(watch::Arguments),
    /// Write a recording in another form: WarmQ's own, Perfetto's, or rows of JSON.
    Convert(convert::Arguments),
    /// Check files of every kind that a command reads, without running anything.
    Check(check::Arguments),
    /// List the machines, or describe one.
    Machines(machines::Arguments),
    /// List the schedulers, or what can be set on one.
    Schedulers(parts::SchedulersArguments),
    /// List the workloads (scenarios and programs), or what can be set on one.
    #[command(visible_alias = "scenarios")]
    Workloads(parts::WorkloadsArguments),
    /// List what an experiment can measure.
    Metrics(metrics::Arguments),
    /// Measure this machine's own caches, and what recording costs.
    Bench(bench::Arguments),
    /// Find which hot addresses of a process share the sets of a cache.
    Conflicts(conflicts::Arguments),
    /// Measure what this machine's kernel and caches cost.
    #[command(long_about = calibrate::ABOUT)]
    Calibrate(calibrate::Arguments),
    /// Run a command in another kernel, without root.
    Vm(vm::Arguments),
    /// Write completions for a shell.
    Completions(completions::Arguments),
    /// Write the manual page.
    Man(man::Arguments),
}

/// What of an experiment is run, and how.
#[derive(Args, Clone, Debug, Default)]
pub struct Extent {
    /// Run only the points, seeds and times that the files mark as quick.
    #[arg(long)]
    pub quick: bool,
    /// How many seeds (3), or which (4,7; a single one with a comma: 7,) [default: the file's].
    #[arg(long, value_name = "N|LIST")]
    pub seeds: Option<Seeds>,
    /// Runs at the same time [default: one per CPU].
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Run everything twice, compare the digests, and watch every run for broken invariants.
    #[arg(long)]
    pub check_determinism: bool,
    /// Exit with 1 when a claim fails.
    #[arg(long)]
    pub strict: bool,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Whether files of scenarios are trusted.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Trust {
    /// Refuse scenarios in files that write to files or start programs of the machine that plays
    /// them, each with its place.
    #[arg(long)]
    pub untrusted: bool,
}

impl Trust {
    /// The engine that refuses what is not trusted.
    pub fn engine(&self, engine: Engine) -> Engine {
        match self.untrusted {
            true => engine.untrusted(),
            false => engine,
        }
    }

    /// Refuses `scenario` if it came from a file and does what nobody should play unread.
    ///
    /// # Errors
    /// What it does, and where.
    pub fn admits(&self, scenario: &Scenario) -> Result<(), Failure> {
        if self.untrusted {
            scenario.check_untrusted()?;
        }
        Ok(())
    }
}

/// Where something is played, and under what. Lists are combined.
#[derive(Args, Clone, Debug, Default)]
pub struct Where {
    /// Who plays: lab, guest (a real kernel in QEMU), host (this machine) [default: lab].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub world: Vec<String>,
    /// Schedulers: `kernel`, one of the lab, or a program or an object of sched_ext; in the lab,
    /// and objects in guests, with settings as NAME:KEY=VALUE;KEY=VALUE [default: kernel, whose
    /// model in the lab is eevdf]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scheduler: Vec<String>,
    /// Kernels of guests and of the lab: series (6.12, 7.1), or files of guests [default: 6.18; of
    /// the lab beside host, this machine's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Preemption models of guests and of the lab: none, voluntary, full, lazy [default: the
    /// kernel's; of the lab beside host, this machine's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub preempt: Vec<String>,
}

impl Where {
    /// Each option with what was given.
    pub fn lists(&self) -> [(&'static str, &[String]); 4] {
        [
            ("world", &self.world),
            ("scheduler", &self.scheduler),
            ("kernel", &self.kernel),
            ("preempt", &self.preempt),
        ]
    }

    /// The options as they would be typed again.
    pub fn typed(&self) -> Vec<String> {
        let lists = self.lists().into_iter();
        lists
            .flat_map(|(name, list)| typed::list(name, list))
            .collect()
    }
}

/// Where the page goes.
#[derive(Args, Clone, Debug, Default)]
pub struct Out {
    /// Write report.html and rows.csv into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Extent {
    /// What of an experiment is run, in the terms of the laboratory.
    pub fn options(&self) -> warmq_experiment::Options {
        warmq_experiment::Options {
            quick: self.quick,
            seeds: self.seeds.clone().map(|Seeds(seeds)| seeds),
            ..Default::default()
        }
    }

    /// The engine as these options want it: what is checked for determinism is watched for broken
    /// invariants, too.
    pub fn engine(&self, engine: Engine) -> Engine {
        if self.check_determinism {
            engine.checked()
        } else {
            engine
        }
    }

    /// Threads; 0 stands for one per CPU.
    pub fn threads(&self) -> usize {
        self.jobs.map_or(0, NonZeroUsize::get)
    }

    /// The options that decide what is run, as they would be typed again.
    pub fn typed(&self) -> Vec<String> {
        let list = |Seeds(seeds): &Seeds| {
            let comma = if seeds.len() == 1 { "," } else { "" };
            typed::option("seeds", &(itertools::join(seeds, ",") + comma))
        };
        let quick = self.quick.then(|| "--quick".to_owned());
        let seeds = self.seeds.as_ref().map(list);
        quick
            .into_iter()
            .chain(seeds.into_iter().flatten())
            .collect()
    }
}
