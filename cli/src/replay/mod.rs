//! What a trace recorded, played again in the lab, beside what was recorded.

#[cfg(test)]
mod closed;
mod plan;
#[cfg(test)]
mod played;
mod text;

use std::path::Path;

use serde::Serialize;
use warmq_experiment::{Engine, Experiment, Options};
use warmq_recordings::Contents;
use warmq_replay::{Line, Meter, Shape, Taken, Taker, beside};
use warmq_report::Section;
use warmq_scenario::Scenario;
use warmq_trace::{Header, Observer};
use warmq_units::{Duration, Instant, printable};

pub use self::plan::On;
use self::plan::Place;
use crate::diagnose::Span;
use crate::diagnose::text::about;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::recording::Recording;
use crate::study::failed;
use crate::{contents, files, output};

/// Nobody replays more than an hour.
const LONGEST: Duration = Duration::from_s(3_600);
/// Of this share of the time of all CPUs, in percent, a machine is busy.
const BUSY: u128 = 95;
/// What plans call the scenario of a replay.
const SCENARIO: &str = "replayed.toml";
/// Of more tasks than these, those of one name are counted together.
const MOST_LINES: usize = 24;
/// Of more tasks than these, the figures of the run are printed without those of each task.
const MOST_IN_DETAIL: usize = 12;

/// A replay, and what it is of.
#[derive(Serialize)]
pub struct Replayed {
    /// What was recorded, in some words.
    pub recorded: String,
    /// The machine that it was played on.
    pub machine: String,
    /// The scheduler that it was played under.
    pub scheduler: String,
    /// For how long, in ns.
    pub time_ns: u64,
    /// How many moments of how many tasks were played.
    pub moments: usize,
    /// How many tasks.
    pub tasks: usize,
    /// Both beside each other.
    pub lines: Vec<Line>,
    /// What could not be carried over, and what else to know: a sentence each.
    pub missing: Vec<String>,
    /// The figures of the run, as `warmq run` shows them.
    #[serde(skip)]
    pub section: Section,
    /// What is in a recording of another program.
    #[serde(skip)]
    pub contents: Option<Contents>,
}

/// A recording that was read.
pub struct Read {
    header: Header,
    taken: Taken,
    meter: Meter,
    /// What is in a recording of another program.
    contents: Option<Contents>,
}

/// Plays what `file` recorded.
///
/// # Errors
/// It is no whole trace, or has nothing to play; what is wrong with where it is to be played; a run
/// that fails; a file that cannot be written.
pub fn of_file(file: &Path, span: Span, on: &On, out: Option<&Path>) -> Result<Replayed, Failure> {
    let mut read = read(file, span)?;
    if read.taken.tasks() == 0 {
        let what = format!("{}: no task does anything in it", printable(file));
        return Err(Failure::usage(
            what,
            "give a trace with switches, or other times",
        ));
    }
    if read.taken.time() > LONGEST {
        return Err(too_long(file, read.taken.time()));
    }
    let place = Place::of(on, &read.header, &read.taken)?;
    let (scenario, missing) = read.taken.scenario(Shape { cpus: place.cpus });
    if let Some(out) = out {
        files::write(out, scenario.as_bytes())?;
    }
    let mut missing = missing.sentences();
    missing.extend(read.contents.as_ref().map(contents::without));
    missing.extend(busy(&mut read));
    missing.extend(place.notes.clone());
    if read.taken.is_cut() {
        let ms = read.taken.time().as_ns() / 1_000_000;
        missing.push(format!(
            "there is more in the trace than is played: its first {ms} ms are (see --from)"
        ));
    }
    played(read, &place, &scenario, missing)
}

/// A few records can say that days lie between them, and each second of those would be simulated.
fn too_long(file: &Path, time: Duration) -> Failure {
    let (file, s) = (printable(file), time.as_ns() / 1_000_000_000);
    let what = format!("{file}: its records are {s} s apart, and at most an hour is played");
    Failure::usage(what, "choose an hour of it with --from and --until")
}

/// Says so where a machine at large was recorded whose CPUs had hardly any time left: how long
/// tasks wait there is up to all that ran beside them.
fn busy(read: &mut Read) -> Option<String> {
    let (ran, time) = read.meter.busy();
    let could = u128::from(time.0) * read.taken.cpus() as u128;
    let percent = u128::from(ran.0) * 100 / could.max(1);
    let at_large = read.header.names.tasks.is_empty();
    (at_large && percent >= BUSY).then(|| {
        let cpus = read.taken.cpus();
        format!(
            "the recorded machine was busy: tasks had {percent} % of the time of its {cpus} CPUs"
        )
    })
}

/// Reads the trace in `file`.
///
/// # Errors
/// It is not there, damaged or cut off: at which byte.
fn read(file: &Path, span: Span) -> Result<Read, Failure> {
    let recording = Recording::open(file)?;
    let begin = |header: &Header| {
        let taker = Taker::new(header, span.from, span.until);
        (header.clone(), taker, Meter::new(span.from, span.until))
    };
    let ((header, taker, meter), contents) = recording.each(begin, |read, at, record| {
        read.1.see(at, record);
        read.2.see(at, record);
    })?;
    Ok(Read {
        header,
        taken: taker.finish(),
        meter,
        contents,
    })
}

fn played(
    read: Read,
    place: &Place,
    scenario: &str,
    missing: Vec<String>,
) -> Result<Replayed, Failure> {
    let engine = place.engine();
    let known = engine.know(SCENARIO, scenario);
    crate::machines::found("scenario", SCENARIO, known)?;
    let trial = place.trial(SCENARIO, read.taken.time());
    let experiment = trial.experiment(&engine)?;
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let mut meter = Meter::new(Instant::START, Instant(u64::MAX));
    let section = section(&engine, &experiment, &options, &mut meter)?;
    let tasks = read.taken.named();
    Ok(Replayed {
        recorded: about(&read.header),
        machine: place.shown.clone(),
        scheduler: place.scheduler.clone(),
        time_ns: read.taken.time().as_ns(),
        moments: read.taken.moments(),
        tasks: tasks.len(),
        lines: beside(read.meter, meter, &tasks, MOST_LINES),
        missing,
        section,
        contents: read.contents,
    })
}

/// Runs the replay, which `meter` watches.
fn section(
    engine: &Engine,
    experiment: &Experiment,
    options: &Options,
    meter: &mut Meter,
) -> Result<Section, Failure> {
    let jobs = experiment.jobs(options);
    let (point, plan) = match (experiment.points_of(options).first(), jobs.first()) {
        (Some(point), Some(job)) => (*point, &job.plan),
        _ => return Err(Failure::usage("nothing is played", "")),
    };
    let measured = {
        let _watch = Watch::until_done("playing what was recorded");
        engine.observe(plan, meter)
    };
    let measured = measured.map_err(|error| failed("the replay", &error))?;
    let mut section = experiment.section_of(engine, (point, plan), &measured);
    if let Ok(workload) = engine.workload(SCENARIO)
        && let Some(names) = workload.entry().scenario().map(Scenario::names)
        && names.tasks.len() > MOST_IN_DETAIL
    {
        let of_task = |metric: &str| {
            let mut tasks = names.tasks.iter();
            tasks.any(|task| {
                metric
                    .strip_prefix(task.as_str())
                    .is_some_and(|rest| rest.starts_with('_'))
            })
        };
        section.rows.retain(|row| !of_task(&row.metric));
    }
    Ok(section)
}

/// Prints a replay: as text, or as a line of JSON.
///
/// # Errors
/// When standard output refuses.
pub fn print(replayed: &Replayed, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(replayed);
    }
    output::print(&text::of(replayed))
}
