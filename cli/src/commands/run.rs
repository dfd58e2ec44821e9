//! `warmq run`: experiments from files.

use std::path::PathBuf;

use clap::Args;
use warmq_config::Pair;
use warmq_experiment::planned::Wanted;
use warmq_experiment::{Engine, Experiment, Options, Request, Study};
use warmq_report::{Report, Section};
use warmq_units::{Duration, printable};

use crate::arguments::{Extent, Out, Trust};
use crate::failure::Failure;
use crate::planned;
use crate::scenario::Worlds;
use crate::source::{self, Changes};
use crate::study;
use crate::{chart, files, machines, oracle_gap, output, present, profile, scenario, trace, typed};

const EXAMPLES: &str = "\
Examples:
  warmq run ping-pong --world lab,guest,host
  warmq run mine.toml --world guest --kernel 6.18,7.1 --scheduler kernel,scx_warmq
  warmq run service --scheduler ./scx_mine.bpf.o,/usr/bin/scx_bpfland --profile
  warmq run ping-pong --world lab,host --chart 10us --time 2ms --warmup 0ms
  warmq run table2-miss-ratio --quick
  warmq run mine.toml --seeds 5 --out results
  warmq run mine.toml --machine host --set processes=1024
  warmq run chiplets-chat --point scheduler=scx_warmq,machine=epyc-12llc
  warmq run table6-lock --trace lock.perfetto --point cpus=4,colors=32
  warmq run receiver --world guest --trace it.warmq && warmq diagnose it.warmq";

/// Run experiments or scenarios and show their results.
///
/// An experiment says itself what is run. A scenario is played in the worlds that --world names, on
/// a machine like this one unless --machine names another, and all its figures are shown.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files of experiments or scenarios, or names of those that come with warmq.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    extent: Extent,
    /// Make only these runs of the plan (`warmq plan`), and print each with its figures as a line
    /// of JSON: numbers (17 or 0-99), digests, or - for those that standard input names line by
    /// line.
    #[arg(
        long,
        value_name = "RUN,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    #[arg(conflicts_with_all = ["trace", "chart", "out", "strict", "check_determinism", "collect"])]
    only: Vec<Wanted>,
    /// Make no runs: take them from these files of lines that --only printed (-: standard input).
    #[arg(long, value_name = "LINES", num_args = 1..)]
    #[arg(conflicts_with_all = ["trace", "chart", "check_determinism"])]
    collect: Vec<String>,
    #[command(flatten)]
    out: Out,
    #[command(flatten)]
    worlds: Worlds,
    /// Run on another machine: a name, a .toml or hwloc .xml file, or `host`.
    #[arg(long, value_name = "NAME|FILE|host")]
    machine: Option<String>,
    /// Show every figure of a scenario, not only those that answer what it asks. --json and --out
    /// have all.
    #[arg(long)]
    all: bool,
    /// Set a setting for all runs, as under [settings] in the file.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Pair>,
    /// Run only the first point, and write what happened in it: for <https://ui.perfetto.dev> if
    /// FILE ends in .perfetto, else for `warmq compare` and `warmq diagnose`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "check_determinism"])]
    trace: Option<PathBuf>,
    /// Draw who runs on which CPU, a letter for each TIME, for each point with its first seed, and
    /// measure nothing.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["trace", "out", "json", "check_determinism"])]
    chart: Option<String>,
    /// Run only the points where these keys have these values; a key may be given several [default:
    /// all; with --trace, the first].
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', conflicts_with_all = ["only", "collect"])]
    point: Vec<Pair>,
    /// Show what the programs of compiled schedulers do: for each callback, function and line of
    /// the source, how often it runs, which lines of memory it touches and misses, and what that
    /// takes. In the lab only.
    #[arg(long, conflicts_with_all = ["only", "collect", "trace", "chart"])]
    profile: bool,
    #[command(flatten)]
    trust: Trust,
}

/// Reads, runs, shows.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let requests = requests(arguments)?;
    let engine = arguments.trust.engine(machines::engine(&requests)?);
    let engine = arguments.extent.engine(engine);
    let engine = match arguments.profile {
        true => engine.profiled(),
        false => engine,
    };
    if !arguments.only.is_empty() {
        return some_runs(arguments, &requests, &engine);
    }
    let experiments = study::read(&requests, &engine)?;
    let options = options(arguments, &experiments)?;
    if let Some(step) = &arguments.chart {
        return charted(&experiments, &options, &engine, step);
    }
    if arguments.profile {
        profile::has_programs(&experiments, &options, &engine)?;
    }
    match &arguments.trace {
        // One run is watched at no cost worth a thought; and it may be one that broke an invariant
        // before.
        Some(file) => traced(arguments, &experiments, &options, &engine.checked(), file),
        None => studied(arguments, experiments, options, &engine),
    }
}

fn options(arguments: &Arguments, experiments: &[Experiment]) -> Result<Options, Failure> {
    let options = arguments.extent.options();
    match arguments.point.as_slice() {
        [] => Ok(options),
        wanted => Ok(the_only(experiments, "--point")?.only(options, wanted)?),
    }
}

fn some_runs(arguments: &Arguments, requests: &[Request], engine: &Engine) -> Result<(), Failure> {
    let experiment = study::planned(the_only(requests, "--only")?, engine)?;
    let options = arguments.extent.options();
    let only = planned::Only::new(&experiment, &options, engine)?;
    planned::run(&only, &arguments.only, arguments.extent.threads())
}

/// The only one of `list`, where `option` is about the runs of one experiment.
fn the_only<'d, T>(list: &'d [T], option: &str) -> Result<&'d T, Failure> {
    match list {
        [only] => Ok(only),
        _ => Err(Failure::usage(
            format!("{option} is about the runs of one experiment"),
            "name one",
        )),
    }
}

fn charted(
    experiments: &[Experiment],
    options: &Options,
    engine: &Engine,
    step: &str,
) -> Result<(), Failure> {
    let step = step.parse().ok().filter(|step| *step > Duration::ZERO);
    let step = step.ok_or_else(|| {
        Failure::usage(
            "--chart: this is no time",
            "write how long a letter stands for, as in 1ms",
        )
    })?;
    for experiment in experiments {
        output::print(&chart::text(experiment, options, engine, step)?)?;
    }
    Ok(())
}

fn requests(arguments: &Arguments) -> Result<Vec<Request>, Failure> {
    // A machine's file with a mistake is shown once, not once for every experiment.
    arguments
        .machine
        .as_deref()
        .map(machines::find)
        .transpose()?;
    let changes = Changes {
        worlds: arguments.worlds.clone(),
        machine: arguments.machine.clone(),
        settings: arguments.set.clone(),
    };
    let simulated = arguments.simulated();
    let watched = arguments.chart.is_some() || arguments.trace.is_some();
    if simulated.len() < arguments.files.len() && (watched || !changed(arguments).is_empty()) {
        return Err(Failure::usage(
            format!(
                "{} is computed: there is nothing to change or to watch",
                oracle_gap::GAP
            ),
            "run it without these options",
        ));
    }
    let of_users = simulated
        .iter()
        .filter(|name| scenario::is_named(name) && !scenario::is_shipped_as(name));
    for name in of_users.filter(|_| arguments.trust.untrusted) {
        arguments.trust.admits(&scenario::find(name)?)?;
    }
    source::requests(&simulated, &changes)
}

impl Arguments {
    /// The files without what simulates nothing.
    fn simulated(&self) -> Vec<String> {
        let files = self.files.iter().filter(|file| !oracle_gap::is_named(file));
        files.cloned().collect()
    }

    /// The sections of what simulates nothing.
    fn computed(&self) -> Result<Vec<Section>, Failure> {
        let files = self.files.iter().filter(|file| oracle_gap::is_named(file));
        files
            .map(|_| oracle_gap::section(self.extent.quick))
            .collect()
    }
}

fn studied(
    arguments: &Arguments,
    experiments: Vec<Experiment>,
    options: Options,
    engine: &Engine,
) -> Result<(), Failure> {
    let (extent, names) = (&arguments.extent, arguments.simulated());
    let folder = arguments.out.out.as_deref();
    let _taken = folder.map(files::folder).transpose()?;
    let study = match arguments.collect.as_slice() {
        [] => study::run(experiments, names, options, engine, extent.threads())?,
        files => {
            let experiment = the_only(&experiments, "--collect")?;
            let runs = planned::collect(experiment, &options, engine, files)?;
            Study::of(experiments, names, options, runs)
        }
    };
    let report = report(arguments, &study)?;
    if extent.json {
        study
            .notes()
            .for_each(|note| output::say(&format!("warmq: note: {note}")));
        present::json(&report)?;
    } else {
        present::sections(&report, arguments.all)?;
        present::summary(&report, &study)?;
    }
    if let Some(folder) = folder {
        present::files(&report, folder, extent.json)?;
    }
    study::finish(&study, extent, engine, &changed(arguments))
}

fn report(arguments: &Arguments, study: &Study) -> Result<Report, Failure> {
    let mut sections = study.sections(|name| command(arguments, &[name]));
    sections.extend(arguments.computed()?);
    let names: Vec<&str> = arguments.files.iter().map(String::as_str).collect();
    let title = match sections.as_slice() {
        [only] => only.title.clone(),
        several => format!("{} experiments", several.len()),
    };
    Ok(Report {
        title,
        subtitle: match sections.iter().all(|section| section.together) {
            true => "One scenario, in each world that it was played in.",
            false => "Simulated by WarmQ.",
        }
        .to_owned(),
        command: command(arguments, &names),
        own: false,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: study.facts(),
        sections,
    })
}

/// The command that runs `files` as these arguments do.
fn command(arguments: &Arguments, files: &[&str]) -> String {
    let points: Vec<String> = arguments.point.iter().map(Pair::to_string).collect();
    let points = typed::list("point", &points);
    let profile = arguments.profile.then(|| "--profile".to_owned());
    let mut options = [arguments.extent.typed(), changed(arguments), points].concat();
    options.extend(profile);
    typed::line("run", files, &options)
}

/// The options that change the experiments, as they would be typed again.
fn changed(arguments: &Arguments) -> Vec<String> {
    let machine = typed::list("machine", arguments.machine.as_slice());
    let set = arguments.set.iter();
    let set = set.flat_map(|pair| typed::option("set", &pair.to_string()));
    let options = machine.into_iter().chain(arguments.worlds.typed());
    options.chain(set).collect()
}

fn traced(
    arguments: &Arguments,
    experiments: &[Experiment],
    options: &Options,
    engine: &Engine,
    file: &std::path::Path,
) -> Result<(), Failure> {
    let [experiment] = experiments else {
        let help = "name one experiment";
        return Err(Failure::usage("--trace writes one run", help));
    };
    if file.extension().is_some_and(|ending| ending == "ndjson") {
        let what = format!("--trace {}: a run writes no rows of JSON", printable(file));
        let help = "name it .warmq, and make rows of it: warmq convert IT.warmq IT.ndjson";
        return Err(Failure::usage(what, help));
    }
    let traced = trace::run(experiment, options, engine, file)?;
    let report = Report {
        sections: vec![traced.section],
        ..Report::default()
    };
    if arguments.extent.json {
        return present::json(&report);
    }
    present::sections(&report, arguments.all)?;
    let (shown, name) = (printable(file), traced.name);
    let diagnose = typed::line("diagnose", &[&file.to_string_lossy()], &[]);
    let next = match trace::is_for_perfetto(file) {
        true => "open it at https://ui.perfetto.dev".to_owned(),
        false => format!("see `{diagnose}` and `warmq compare`"),
    };
    output::print(&format!("trace of {name}: {shown} ({next})"))
}
