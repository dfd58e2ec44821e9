//! One run of an experiment, written as a trace: for `warmq diagnose`, or for the Perfetto UI.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use warmq_experiment::{
    Cause, Engine, Experiment, Measured, MetricDescription, Options, Plan, Point, RunError,
    Simulator, Used, Value,
};
use warmq_report::{PointValue, Row, Section};
use warmq_scenario::{Scenario, World};
use warmq_trace::file::Writer;
use warmq_trace::{Header, Names, Observer, Perfetto};

use crate::diagnose::{self, Kept};
use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::pair::Pair;
use crate::progress::Watch;
use crate::study::exit_of;

/// A run whose trace was written.
pub struct Traced {
    /// Which: `table6-lock: cpus = 4, colors = 32, seed 1`.
    pub name: String,
    /// All its figures.
    pub section: Section,
}

/// Runs one point of `experiment` with its first seed, and writes the trace to `file`.
///
/// # Errors
/// No such point; a run without a measurement; a file that cannot be written.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    wanted: &[Pair],
    engine: &Engine,
    file: &Path,
) -> Result<Traced, Failure> {
    let point = chosen(experiment, options, wanted)?;
    let extent = experiment.extent(options);
    let plan = experiment.parts.plan(point, extent.seeds[0], &extent);
    let at = experiment.name_of(point);
    let name = format!("{}: {at}, seed {}", experiment.id, plan.seed.0);
    let measured = {
        let _watch = Watch::until_done(&format!("tracing {name}"));
        written(engine, &plan, &name, file)?
    };
    let metrics = engine.metrics(&Used {
        workloads: vec![plan.workload.name.as_str()],
        schedulers: vec![plan.scheduler.name.as_str()],
    });
    let section = section(experiment, point, &measured, metrics);
    Ok(Traced { name, section })
}

/// The first point where every wanted key has the wanted value.
fn chosen<'e>(
    experiment: &'e Experiment,
    options: &Options,
    wanted: &[Pair],
) -> Result<&'e Point, Failure> {
    let points = experiment.points_of(options);
    let keys: Vec<&str> = experiment
        .parts
        .axes
        .iter()
        .map(|axis| axis.key.as_str())
        .collect();
    if let Some(pair) = wanted
        .iter()
        .find(|pair| !keys.contains(&pair.key.as_str()))
    {
        let help = format!("the sweep has {}", keys.join(", "));
        return Err(Failure::usage(
            format!("--point: `{}` is not swept", pair.key),
            help,
        ));
    }
    let has = |point: &Point, pair: &Pair| {
        point
            .0
            .get(&pair.key)
            .is_some_and(|value| value.is_written(&pair.value))
    };
    let found = points
        .iter()
        .find(|point| wanted.iter().all(|pair| has(point, pair)));
    found.copied().ok_or_else(|| {
        let words: Vec<String> = points.iter().map(|it| experiment.name_of(it)).collect();
        let help = format!("use one of: {}", words.join("; "));
        Failure::usage("--point: the sweep has no such point", help)
    })
}

fn written(engine: &Engine, plan: &Plan, name: &str, file: &Path) -> Result<Measured, Failure> {
    let (unfinished, out) = Unfinished::begin(file)?;
    let (measured, out) = match (diagnose::is_trace(file), plan.is_simulated()) {
        (false, _) => {
            let mut perfetto = Perfetto::new(out, &plan.machine.name).named(names(engine, plan));
            (engine.observe(plan, &mut perfetto), perfetto.finish())
        }
        (true, true) => {
            let mut writer = Writer::new(out, &header(engine, plan, None));
            (engine.observe(plan, &mut writer), writer.finish())
        }
        (true, false) => real(engine, plan, out),
    };
    let began = !matches!(&measured, Err(error) if error.cause == Cause::Setting);
    if began {
        // A run that failed is the one to look at.
        let out = out.map_err(|error| refused(file, &error))?;
        unfinished.finish(out)?;
    }
    measured.map_err(|error| {
        let trace = match began {
            true => format!("; what happened is in {}", file.display()),
            false => String::new(),
        };
        Failure::Runs(exit_of(&error), vec![format!("{name}: {error}{trace}")])
    })
}

/// A real world says only afterwards what it was, and has all records in memory by then.
fn real(
    engine: &Engine,
    plan: &Plan,
    out: BufWriter<File>,
) -> (Result<Measured, RunError>, io::Result<BufWriter<File>>) {
    let mut kept = Kept::default();
    let measured = engine.observe(plan, &mut kept);
    let header = header(engine, plan, measured.as_ref().ok());
    let mut writer = Writer::new(out, &header);
    for (at, record) in &kept.0 {
        writer.see(*at, record);
    }
    (measured, writer.finish())
}

fn names(engine: &Engine, plan: &Plan) -> Names {
    let workload = engine.workload(&plan.workload.name).ok();
    let names = workload.and_then(|it| it.entry().scenario().map(Scenario::names));
    names.unwrap_or_default()
}

/// What a trace is of: by its plan, and where it was played, by what the world said.
pub(crate) fn header(engine: &Engine, plan: &Plan, measured: Option<&Measured>) -> Header {
    let world = &plan.world.name;
    let parameters = measured.map_or(&[][..], |it| &it.parameters);
    let said = |name: &str| {
        let wanted = format!("{world}.{name}");
        let known = parameters.iter().find(|it| it.name == wanted);
        known.map(|it| it.value.clone())
    };
    let set = |name: &str| plan.scheduler.settings.get(name).map(ToString::to_string);
    Header {
        world: world.clone(),
        machine: said("machine").unwrap_or_else(|| plan.machine.name.clone()),
        kernel: said("kernel").unwrap_or_default(),
        scheduler: said("scheduler").unwrap_or_else(|| plan.scheduler.name.clone()),
        clock: said("clock").unwrap_or_else(|| match plan.is_simulated() {
            true => "simulated".to_owned(),
            false => String::new(),
        }),
        hz: said("tick").unwrap_or_default(),
        preemption: said("preemption")
            .or_else(|| set("preempt"))
            .unwrap_or_default(),
        places: places(engine, plan),
        names: names(engine, plan),
    }
}

/// The core and the last-level cache of each CPU. Guests number the CPUs of a core in succession,
/// the lab as Linux does on x86.
fn places(engine: &Engine, plan: &Plan) -> Vec<(u16, u16)> {
    // A machine that is not there was refused before.
    let machine = engine.machine(&plan.machine.name).ok();
    let mut cpus: Vec<_> = machine.into_iter().flat_map(|it| it.cpus).collect();
    if let Some(Value::Integer(wanted)) = plan.machine.settings.get("cpus") {
        cpus.truncate(*wanted as usize);
    }
    if plan.world.name == World::Guest.name() {
        cpus.sort_by_key(|cpu| (cpu.llc, cpu.core));
    }
    cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect()
}

fn section(
    experiment: &Experiment,
    point: &Point,
    measured: &Measured,
    metrics: Vec<MetricDescription>,
) -> Section {
    let shown = |key: &String| Some((key.clone(), point_value(point.0.get(key)?)));
    let axes = experiment.parts.axes.iter();
    let place = warmq_report::Point::new(axes.filter_map(|axis| shown(&axis.key)));
    let row = |metric: MetricDescription| {
        let value = *measured.figures.get(&metric.name)?;
        Some(Row {
            experiment: experiment.id.clone(),
            point: place.clone(),
            metric: metric.name,
            value,
            unit: metric.unit,
            low: value,
            high: value,
            published: None,
            calibration: false,
        })
    };
    Section {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        paper: experiment.figure.clone(),
        rows: metrics.into_iter().filter_map(row).collect(),
        notes: measured.notes.clone(),
        together: experiment.everything,
        ..Section::default()
    }
}

fn point_value(value: &warmq_experiment::Value) -> PointValue {
    use warmq_experiment::Value;
    match value {
        Value::Integer(count) => (*count).into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Bytes(_) | Value::Duration(_) | Value::Text(_) => value.to_string().into(),
    }
}
