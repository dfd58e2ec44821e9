//! `warmq reproduce`: the experiments of a paper again, with its figures beside ours.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warmq_experiment::{Study, papers};
use warmq_report::{Report, Section};

use crate::arguments::Extent;
use crate::failure::Failure;
use crate::study;
use crate::walk::{self, Walk};
use crate::{files, machines, oracle_gap, output, present, source, typed};

const EXAMPLES: &str = "\
Examples:
  warmq reproduce --quick                 what the papers are known for, in half a minute
  warmq reproduce coloring --full         everything, within a quarter of an hour
  warmq reproduce starvation --quick      receivers of packets under O(1) and CFS, in a minute
  warmq reproduce affinity --quick        scheduling by data, with and without hints, in a minute
  warmq reproduce --quick --with-walk     with the real walk on this machine on the same page";

/// Title and subtitle of a report of all papers.
const ALL: (&str, &str) = (
    "Three papers on scheduling, reproduced",
    "Cache coloring of the run queue (USENIX 2002), starvation by network receivers (KFUPM, 2009), and scheduling by \
     data affinity. Published figures beside simulated ones.",
);

/// The papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// S. Yamamura et al., "Speeding Up Kernel Scheduler by Reducing Cache Misses", USENIX 2002.
    Coloring,
    /// A. Al-Mane', "Performance of CPU-bound processes in the presence of network I/O under
    /// Linux", 2009.
    Starvation,
    /// Data-affinity scheduling for Linux 2.6 on multiprocessors, and on machines with many caches.
    Affinity,
    /// No paper: the starvation of Linux 6.13 to 7.0, beside what was measured.
    Today,
    /// No paper: what a quiet machine of 16 CPUs did.
    ManyCpus,
    /// All of them.
    All,
}

/// Repeat the experiments of a paper and show its figures beside ours.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which paper.
    #[arg(value_enum, default_value = "all")]
    paper: Paper,
    #[command(flatten)]
    extent: Extent,
    /// Run every point, seed and time of the files (the default without --quick).
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Write report.html and rows.csv into this folder.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Also run the real walk on this machine, and put it on the same page.
    #[arg(long)]
    with_walk: bool,
}

/// Runs what comes with warmq, then the real walk if that was asked for.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let requests = arguments.experiments().map(source::shipped);
    let requests: Vec<_> = requests.collect::<Result<_, _>>()?;
    let extent = &arguments.extent;
    let engine = extent.engine(machines::engine(&requests)?);
    let experiments = study::read(&requests, &engine)?;
    let _taken = files::folder(&arguments.out)?;
    let names = experiments.iter().map(|one| one.id.clone()).collect();
    let study = study::run(
        experiments,
        names,
        extent.options(),
        &engine,
        extent.threads(),
    )?;
    let mut report = report(arguments, &study);
    if arguments.paper.has_a_model() {
        report.sections.push(oracle_gap::section(extent.quick)?);
    }
    if !extent.json {
        present::sections(&report, true)?;
    }
    if arguments.with_walk {
        // After the simulations: nothing else is to use the caches meanwhile.
        report.sections.push(walked(extent.json)?);
    }
    match extent.json {
        true => present::json(&report)?,
        false => present::summary(&report, &study)?,
    }
    present::files(&report, &arguments.out, extent.json)?;
    study::finish(&study, extent, &engine, &[])
}

impl Arguments {
    /// Of all papers together, a quick run shows what each is known for.
    fn experiments(&self) -> impl Iterator<Item = &'static papers::Shipped> {
        let headlines = self.extent.quick && matches!(self.paper, Paper::All);
        let papers = self.paper.shipped().iter();
        papers.flat_map(move |paper| {
            let experiments = paper.experiments.iter();
            experiments.filter(move |shipped| !headlines || paper.headlines.contains(&shipped.0))
        })
    }
}

impl Paper {
    /// The papers that this stands for; the first names the report.
    fn shipped(self) -> &'static [&'static papers::Paper] {
        match self {
            Paper::Coloring => &[&papers::COLORING],
            Paper::Starvation => &[&papers::STARVATION],
            Paper::Affinity => &[&papers::AFFINITY],
            Paper::Today => &[&papers::TODAY],
            Paper::ManyCpus => &[&papers::MANY_CPUS],
            Paper::All => &papers::PAPERS,
        }
    }

    /// Whether a paper has a model in which the optimum is known.
    fn has_a_model(self) -> bool {
        matches!(self, Paper::Affinity | Paper::All)
    }

    fn title(self) -> (&'static str, &'static str) {
        match self.shipped() {
            [paper] => (paper.title, paper.subtitle),
            _ => ALL,
        }
    }

    fn name(self) -> &'static str {
        match self.shipped() {
            [paper] => paper.name,
            _ => "all",
        }
    }
}

fn walked(json: bool) -> Result<Section, Failure> {
    let walk = Walk::measure(&warmq_walk::WalkSettings::default())?;
    let section = walk::section(&walk, "warmq bench walk");
    if !json {
        output::print(&walk::table(&walk, &section))?;
    }
    Ok(section)
}

fn report(arguments: &Arguments, study: &Study) -> Report {
    let typed = arguments.extent.typed();
    let (name, (title, subtitle)) = (arguments.paper.name(), arguments.paper.title());
    let walk = arguments.with_walk.then(|| "--with-walk".to_owned());
    let options: Vec<String> = typed.iter().cloned().chain(walk).collect();
    Report {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        command: typed::line("reproduce", &[name], &options),
        own: false,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: study.facts(),
        sections: study.sections(|name| typed::line("run", &[name], &typed)),
    }
}
