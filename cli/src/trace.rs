//! One run of an experiment, written as a trace: for the Perfetto UI where the file's name says so,
//! else in WarmQ's own format, which `warmq compare` and `warmq diagnose` read.

use std::io::{self, Write};
use std::path::Path;

use warmq_experiment::{Cause, Engine, Experiment, Measured, Options, Plan};
use warmq_report::Section;
use warmq_scenario::Scenario;
use warmq_trace::file::Writer;
use warmq_trace::{Header, Names, Observer, Perfetto, Record};
use warmq_units::{Instant, printable};

use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::progress::Watch;
use crate::study::exit_of;

/// Why runs fail of which nothing happened.
const NEVER_BEGUN: [Cause; 2] = [Cause::Setting, Cause::NoProgram];

/// A run whose trace was written.
pub struct Traced {
    /// Which: `table6-lock: cpus = 4, colors = 32, seed 1`.
    pub name: String,
    /// All its figures.
    pub section: Section,
}

/// Runs the first point of `experiment` with its first seed, and writes the trace to `file`.
///
/// # Errors
/// A run without a measurement; a file that cannot be written.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    engine: &Engine,
    file: &Path,
) -> Result<Traced, Failure> {
    let points = experiment.points_of(options);
    let point = *points.first().expect("an experiment has points");
    let extent = experiment.extent(options);
    let plan = experiment.parts.plan(point, extent.seeds[0], &extent);
    let at = experiment.name_of(point);
    let name = format!("{}: {at}, seed {}", experiment.id, plan.seed.0);
    let measured = {
        let _watch = Watch::until_done(&format!("tracing {name}"));
        written(engine, &plan, &name, file)?
    };
    let section = experiment.section_of(engine, (point, &plan), &measured);
    Ok(Traced { name, section })
}

/// How the names of files for the Perfetto UI end.
const PERFETTO: &[&str] = &["perfetto", "perfetto-trace", "pftrace"];

/// Whether a file of this name is for the Perfetto UI.
pub fn is_for_perfetto(file: &Path) -> bool {
    let ending = file.extension();
    ending.is_some_and(|ending| PERFETTO.iter().any(|known| ending == *known))
}

fn written(engine: &Engine, plan: &Plan, name: &str, file: &Path) -> Result<Measured, Failure> {
    let (unfinished, out) = match plan.is_simulated() {
        true => Unfinished::begin(file)?,
        false => Unfinished::private(file)?,
    };
    let (measured, out) = match is_for_perfetto(file) {
        true => {
            let mut perfetto = Perfetto::new(out, &plan.machine.name).named(names(engine, plan));
            (engine.observe(plan, &mut perfetto), perfetto.finish())
        }
        false => {
            let mut recorded = Recorded::new(out);
            (engine.observe(plan, &mut recorded), recorded.finish())
        }
    };
    let began = !matches!(&measured, Err(error) if NEVER_BEGUN.contains(&error.cause));
    if began {
        // A run that failed is the one to look at.
        let out = out.map_err(|error| refused(file, &error))?;
        unfinished.finish(out)?;
    }
    measured.map_err(|error| {
        let trace = match began {
            true => format!("; what happened is in {}", printable(file)),
            false => String::new(),
        };
        Failure::Runs(exit_of(&error), vec![format!("{name}: {error}{trace}")])
    })
}

/// A file in WarmQ's own format, which begins with what the run is of.
struct Recorded<W: Write> {
    /// What to write to, until the run says what it is of.
    to: Option<W>,
    writer: Option<Writer<W>>,
}

impl<W: Write> Recorded<W> {
    fn new(to: W) -> Recorded<W> {
        Recorded {
            to: Some(to),
            writer: None,
        }
    }

    /// Ends the file; one of a run that did not begin has no records.
    fn finish(mut self) -> io::Result<W> {
        self.about(&Header::default());
        let nowhere = || io::Error::other("there is nothing to write to");
        self.writer.ok_or_else(nowhere)?.finish()
    }
}

impl<W: Write> Observer for Recorded<W> {
    fn about(&mut self, header: &Header) {
        if let Some(to) = self.to.take() {
            self.writer = Some(Writer::new(to, header));
        }
    }

    fn see(&mut self, at: Instant, record: &Record) {
        if let Some(writer) = &mut self.writer {
            writer.see(at, record);
        }
    }
}

fn names(engine: &Engine, plan: &Plan) -> Names {
    let workload = engine.workload(&plan.workload.name).ok();
    let names = workload.and_then(|workload| workload.entry().scenario().map(Scenario::names));
    names.unwrap_or_default()
}
