//! `warmq reproduce`: the experiments of a paper again, with its figures beside ours.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warmq_report::{Report, Section};

use crate::arguments::Extent;
use crate::failure::Failure;
use crate::study::{self, Study};
use crate::walk::{self, Walk};
use crate::{machines, output, present, shipped, source};

const EXAMPLES: &str = "\
Examples:
  warmq reproduce --quick                 about two minutes on two cores
  warmq reproduce coloring --full         everything, within a quarter of an hour
  warmq reproduce affinity --quick        scx_warmq with and without hints, in seconds
  warmq reproduce --quick --with-walk     with the real walk on this machine on the same page";

/// Title and subtitle of a page.
const COLORING: (&str, &str) = (
    "Cache coloring of the run queue, reproduced",
    "S. Yamamura, A. Hirai, M. Sato, M. Yamamoto, A. Naruse, K. Kumon: Speeding Up Kernel Scheduler by \
     Reducing Cache Misses (USENIX 2002). Published figures beside simulated ones.",
);
const AFFINITY: (&str, &str) = (
    "Scheduling by data affinity, a first look",
    "Tasks that use the same data run in the same place, one after another: scx_warmq in the laboratory. \
     None of the paper's figures yet.",
);

/// The papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// S. Yamamura et al., "Speeding Up Kernel Scheduler by Reducing Cache Misses", USENIX 2002.
    Coloring,
    /// Data-affinity scheduling for Linux 2.6 on multiprocessors; a first look at scx_warmq so far.
    Affinity,
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
    /// Write report.html, rows.parquet and rows.csv into this folder.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Also run the real walk on this machine, and put it on the same page.
    #[arg(long)]
    with_walk: bool,
}

/// Runs what comes with warmq, then the real walk if that was asked for.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let documents = papers(arguments.paper);
    let documents = documents.iter().map(source::shipped);
    let documents: Vec<_> = documents.collect::<Result<_, _>>()?;
    let extent = &arguments.extent;
    let engine = extent.engine(machines::engine(&documents)?);
    let experiments = study::read(&documents, &engine)?;
    let study = Study::run(experiments, extent.options(), &engine, extent.threads());
    let mut report = report(arguments, &study);
    if !extent.json {
        present::sections(&report)?;
    }
    if arguments.with_walk {
        // After the simulations: nothing else is to use the caches meanwhile.
        report.sections.push(walked(extent.json)?);
    }
    show(&report, &study, extent.json)?;
    present::files(&report, &arguments.out, extent.json)?;
    study.finish(extent, &engine, "")
}

fn papers(paper: Paper) -> Vec<shipped::Shipped> {
    match paper {
        Paper::Coloring => shipped::COLORING.to_vec(),
        Paper::Affinity => shipped::AFFINITY.to_vec(),
        Paper::All => shipped::all().collect(),
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

fn show(report: &Report, study: &Study, json: bool) -> Result<(), Failure> {
    if json {
        return present::json(report);
    }
    present::summary(report, study)
}

fn report(arguments: &Arguments, study: &Study) -> Report {
    let typed = arguments.extent.typed();
    let name = match arguments.paper {
        Paper::Coloring => "coloring",
        Paper::Affinity => "affinity",
        Paper::All => "all",
    };
    let (title, subtitle) = match arguments.paper {
        Paper::Coloring | Paper::All => COLORING,
        Paper::Affinity => AFFINITY,
    };
    let walk = if arguments.with_walk {
        " --with-walk"
    } else {
        ""
    };
    Report {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        command: format!("warmq reproduce {name}{typed}{walk}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: study.facts(),
        sections: study.sections(|it| format!("warmq run {}{typed}", it.id)),
    }
}
