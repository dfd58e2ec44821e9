//! Plays laws' scenarios, watches every trace for broken invariants, and keeps the evidence.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use warmq_law::{Fault, Found, Kept, Law, LawMeter, Places, Repetition, Verdict, judge_kernel};
use warmq_metrics::evidence::longest_wait;
use warmq_scenario::WorldKind;
use warmq_trace::{Checker, Header, Names, Observer, Promise, Record};
use warmq_units::{Duration, Instant};

use super::case::{own_scheduler, workload};
use crate::engine::Engine;
use crate::plan::{Part, Plan};
use crate::simulator::{Cause, Measured, PartError, RunError, Runner, Simulator};

/// What the machine had to wait for its own CPUs, in us.
const TAKEN: &str = "host_delay";

/// All records of a run.
#[derive(Default)]
pub struct Records {
    /// What it was a run of.
    pub header: Header,
    /// What happened.
    pub all: Vec<(Instant, Record)>,
}

impl Observer for Records {
    const DETAIL: bool = true;

    fn about(&mut self, header: &Header) {
        self.header = header.clone();
    }

    fn see(&mut self, at: Instant, record: &Record) {
        self.all.push((at, *record));
    }
}

/// What happened in a repetition that does not hold, to be kept where people look at it.
pub struct Trace<'t> {
    /// What distinguishes it from others of the suite, for the name of a file.
    pub name: String,
    /// The machine's name.
    pub machine: &'t str,
    /// What the records number.
    pub names: Names,
    /// What happened.
    pub records: &'t [(Instant, Record)],
}

/// Keeps a trace, and answers in which file; nothing if it cannot be kept.
pub type Keep<'k> = dyn Fn(&Trace<'_>) -> Option<PathBuf> + Sync + 'k;

/// A simulator of laws' scenarios.
pub struct Witness<'l> {
    engine: Engine,
    laws: BTreeMap<String, &'l Law>,
    keep: Option<&'l Keep<'l>>,
    kept: Mutex<BTreeMap<Plan, Kept>>,
}

impl<'l> Witness<'l> {
    /// Of `laws`; traces go to `keep`.
    ///
    /// # Errors
    /// A law whose scenario cannot be used.
    pub fn new(
        engine: Engine,
        laws: &'l [Found],
        keep: Option<&'l Keep<'l>>,
    ) -> Result<Witness<'l>, PartError> {
        for found in laws {
            engine.know(&workload(&found.law), &found.text)?;
        }
        let laws = laws.iter().map(|found| (workload(&found.law), &found.law));
        Ok(Witness {
            engine,
            laws: laws.collect(),
            keep,
            kept: Mutex::default(),
        })
    }

    /// The engine that plays them, which knows their scenarios.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What was kept of a run.
    pub fn kept(&self, plan: &Plan) -> Option<Kept> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(plan).cloned()
    }

    fn witnessed(&self, law: &Law, plan: &Plan) -> Result<Measured, RunError> {
        let mut records = Records::default();
        let result = self.engine.observe(plan, &mut records);
        let from = Instant::START + plan.warmup;
        let end = from + plan.time;
        let result = result.and_then(|measured| lawful(plan, measured, &records.all, end));
        let result = result.map(|measured| {
            let mut meter = LawMeter::of(self.places(law, plan), (from, end));
            for (at, record) in &records.all {
                meter.see(*at, record);
            }
            with(measured, meter.figures())
        });
        let judged = judge_kernel(law, &[repetition(plan, &result)], own_scheduler(plan));
        if !judged.verdict.is_well() {
            let mut bounds = judged.bounds.iter();
            let broken = bounds.find(|bound| bound.verdict != Verdict::Holds);
            let figure = broken.map(|bound| bound.figure.as_str());
            self.keep(law, plan, &records.all, (from, end), figure);
        }
        result
    }

    /// What the scheduler of a plan has that is not its default.
    fn set_on_scheduler(&self, plan: &Plan) -> Vec<String> {
        let scheduler = &plan.scheduler;
        // A scheduler that is not there was refused before.
        let known = self.engine.settings(Part::Scheduler, &scheduler.name);
        let known = known.unwrap_or_default();
        let changed = known.iter().filter_map(|setting| {
            let value = scheduler.settings.get(&setting.name)?;
            (*value != setting.default).then(|| format!("{}={value}", setting.name))
        });
        changed.collect()
    }

    /// Guests number the CPUs of a core in succession, the lab as Linux does on x86.
    fn places(&self, law: &Law, plan: &Plan) -> Places {
        // A machine that is not there was refused before.
        let machine = self.engine.machine(&plan.machine.name).ok();
        let mut cpus: Vec<_> = machine
            .into_iter()
            .flat_map(|machine| machine.cpus)
            .collect();
        if plan.world.name != WorldKind::Host.name() {
            cpus.truncate(law.cpus.into());
        }
        if plan.world.name == WorldKind::Guest.name() {
            cpus.sort_by_key(|cpu| (cpu.llc, cpu.core));
        }
        Places(cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect())
    }

    fn keep(
        &self,
        law: &Law,
        plan: &Plan,
        records: &[(Instant, Record)],
        times: (Instant, Instant),
        figure: Option<&str>,
    ) {
        let names = law.scenario.names();
        let table = figure.and_then(|figure| table_of(&names, figure));
        let trace = self.keep.and_then(|keep| {
            // A trace that cannot be written is missing from the page; the verdict is what counts.
            keep(&Trace {
                name: file_name(law, plan, &self.set_on_scheduler(plan)),
                machine: &plan.machine.name,
                names: names.clone(),
                records,
            })
        });
        let kept = Kept {
            evidence: longest_wait(records, &names, table, times),
            trace,
        };
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(plan.clone(), kept);
    }
}

/// What distinguishes the run of a plan from others of the suite, in the name of a file; `set` is
/// what was set on the scheduler.
fn file_name(law: &Law, plan: &Plan, set: &[String]) -> String {
    // In the lab a scheduler is not of the world that it is played in.
    let settings = plan.world.settings.values();
    let of_world = settings.filter(|_| !plan.is_simulated());
    let values = of_world.map(ToString::to_string);
    let parts = [
        law.name.clone(),
        plan.world.name.clone(),
        plan.scheduler.name.clone(),
    ];
    let parts = parts.into_iter().chain(set.iter().cloned());
    let name = itertools::join(parts.chain(values), "-");
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || "._-".contains(letter) => letter,
        _ => '-',
    };
    let name: String = name.chars().map(plain).collect();
    format!("{name}-{}", plan.seed.0)
}

/// The table of tasks that a figure is about: the longest whose name it begins with.
fn table_of(names: &Names, figure: &str) -> Option<usize> {
    let figure = figure.rsplit('.').next().unwrap_or(figure);
    let tables = names.tasks.iter().enumerate();
    let about = tables.filter(|(_, name)| {
        let rest = figure.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.starts_with('_'))
    });
    about
        .max_by_key(|(_, name)| name.len())
        .map(|(table, _)| table)
}

/// The records of real worlds are checked here; the lab checks its own.
fn lawful(
    plan: &Plan,
    measured: Measured,
    records: &[(Instant, Record)],
    end: Instant,
) -> Result<Measured, RunError> {
    if plan.is_simulated() {
        return Ok(measured);
    }
    // Which CPU may idle is for the laws to say.
    let any = Promise {
        patience: Duration(u64::MAX),
        ..Promise::default()
    };
    let mut checker = Checker::of_a_recording().promised(any);
    for (at, record) in records.iter().take_while(|(at, _)| *at <= end) {
        checker.see(*at, record);
    }
    match checker.violation() {
        None => Ok(measured),
        Some(violation) => Err(RunError {
            what: format!("an invariant was broken at {violation}"),
            cause: Cause::InvariantBroken,
        }),
    }
}

fn with(mut measured: Measured, figures: BTreeMap<String, f64>) -> Measured {
    measured.figures.extend(figures);
    measured
}

/// A run as the judge sees it.
pub fn repetition(plan: &Plan, result: &Result<Measured, RunError>) -> Repetition {
    let taken_us = result
        .as_ref()
        .ok()
        .and_then(|outcome| outcome.figures.get(TAKEN).copied());
    Repetition {
        seed: plan.seed.0,
        outcome: match result {
            Ok(measured) => Ok(measured.figures.clone()),
            Err(error) => Err(fault(error)),
        },
        taken_us: taken_us.unwrap_or(0.0),
    }
}

fn fault(error: &RunError) -> Fault {
    match error.cause {
        Cause::SchedulerBroke | Cause::Stalled | Cause::InvariantBroken => {
            Fault::OfTheScheduler(error.to_string())
        }
        Cause::Setting
        | Cause::MemoryFull
        | Cause::ProgramBroke
        | Cause::WorldRefused
        | Cause::NoProgram => Fault::OfTheWorld(error.to_string()),
    }
}

impl Runner for Witness<'_> {
    fn needs_quiet(&self, plan: &Plan) -> bool {
        self.engine.needs_quiet(plan)
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        match self.laws.get(&plan.workload.name) {
            Some(law) => self.witnessed(law, plan),
            None => self.engine.simulate(plan),
        }
    }
}
