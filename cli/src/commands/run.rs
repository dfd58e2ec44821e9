//! `warmq run`: experiments from files.

use std::path::PathBuf;

use clap::Args;
use warmq_experiment::{Experiment, Lab};
use warmq_report::Report;

use crate::arguments::{Extent, Out};
use crate::failure::Failure;
use crate::pair::Pair;
use crate::source::{Changes, Source};
use crate::study::{self, Study};
use crate::{machines, output, present, trace};

const EXAMPLES: &str = "\
Examples:
  warmq run table2-miss-ratio --quick
  warmq run mine.toml --seeds 5 --out results
  warmq run mine.toml --machine host --set processes=1024
  warmq run table6-lock --trace lock.perfetto --point cpus=4,colors=32";

/// Run experiments and show what they came to.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files of experiments, or names of those that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    out: Out,
    /// Run on another machine: a name, a .toml or hwloc .xml file, or `host`.
    #[arg(long, value_name = "NAME|FILE|host")]
    machine: Option<String>,
    /// Set a setting for all runs, as under [settings] in the file.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Pair>,
    /// Run only one point, and write what happened in it for <https://ui.perfetto.dev>.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "check_determinism"])]
    trace: Option<PathBuf>,
    /// Which point to trace [default: the first].
    #[arg(
        long,
        value_name = "KEY=VALUE,...",
        value_delimiter = ',',
        requires = "trace"
    )]
    point: Vec<Pair>,
}

/// Reads, runs, shows.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sources = sources(arguments)?;
    let lab = machines::lab(sources.iter().map(|source| source.text.as_str()))?;
    let experiments = study::read(&sources, &lab)?;
    match &arguments.trace {
        Some(file) => traced(arguments, &experiments, &lab, file),
        None => studied(arguments, experiments, &lab),
    }
}

fn sources(arguments: &Arguments) -> Result<Vec<Source>, Failure> {
    // What is wrong with a machine's file is told best by its own reader.
    arguments
        .machine
        .as_deref()
        .map(machines::find)
        .transpose()?;
    let pair = |Pair { key, value }: &Pair| (key.clone(), value.clone());
    let changes = Changes {
        machine: arguments.machine.clone(),
        settings: arguments.set.iter().map(pair).collect(),
    };
    let open = |file: &String| Ok(Source::open(file)?.changed(&changes));
    arguments.files.iter().map(open).collect()
}

fn studied(arguments: &Arguments, experiments: Vec<Experiment>, lab: &Lab) -> Result<(), Failure> {
    let extent = &arguments.extent;
    let study = Study::run(experiments, extent.options(), lab, extent.threads());
    let report = report(arguments, &study);
    if extent.json {
        present::json(&report)?;
    } else {
        present::sections(&report)?;
        present::summary(&report, &study)?;
    }
    if let Some(folder) = &arguments.out.out {
        present::files(&report, folder, extent.json)?;
    }
    if extent.check_determinism {
        study.check_determinism(lab, extent.threads())?;
        output::say(&format!(
            "warmq: deterministic: {} runs, twice the same",
            study.count()
        ));
    }
    study.verdict(extent.strict)
}

fn report(arguments: &Arguments, study: &Study) -> Report {
    let sections = study.sections(|experiment| command(arguments, &[&experiment.file]));
    let title = match sections.as_slice() {
        [only] => only.title.clone(),
        several => format!("{} experiments", several.len()),
    };
    Report {
        title,
        subtitle: "Simulated by WarmQ.".to_owned(),
        command: command(arguments, &arguments.files.iter().collect::<Vec<_>>()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: study.facts(),
        sections,
    }
}

/// The command that runs `files` as these arguments do.
fn command(arguments: &Arguments, files: &[&String]) -> String {
    let mut text = "warmq run".to_owned();
    for file in files {
        // A shipped experiment is called by its id, as a file by its path.
        let id = file
            .strip_suffix(".toml")
            .filter(|_| !std::path::Path::new(file).exists());
        text = format!("{text} {}", id.unwrap_or(file));
    }
    text.push_str(&arguments.extent.typed());
    if let Some(machine) = &arguments.machine {
        text.push_str(&format!(" --machine {machine}"));
    }
    for Pair { key, value } in &arguments.set {
        text.push_str(&format!(" --set {key}={value}"));
    }
    text
}

fn traced(
    arguments: &Arguments,
    experiments: &[Experiment],
    lab: &Lab,
    file: &std::path::Path,
) -> Result<(), Failure> {
    let [experiment] = experiments else {
        let mend = "name one experiment";
        return Err(Failure::usage("--trace is of one run", mend));
    };
    let options = arguments.extent.options();
    let traced = trace::run(experiment, &options, &arguments.point, lab, file)?;
    if arguments.extent.json {
        return present::json(&Report {
            sections: vec![traced.section],
            ..Report::default()
        });
    }
    present::sections(&Report {
        sections: vec![traced.section],
        ..Report::default()
    })?;
    let (file, name) = (file.display(), traced.name);
    output::print(&format!(
        "trace of {name}: {file} (open it at https://ui.perfetto.dev)"
    ))
}
