//! Plans of other worlds than the laboratory: handed over, and what comes back measured.

use std::collections::BTreeSet;
use std::sync::Arc;

use warmq_metrics::{CpuMeter, MOST_TAKEN, Others, PlayMeter, TAKEN};
use warmq_trace::{Digest, Header, Observer, Record};
use warmq_units::{Duration, Instant};

use super::fidelity::notes;
use super::{Engine, compiled, kernel, places, setting};
use crate::plan::{KERNEL, LAB, Part, Plan};
use crate::simulator::{Cause, Measured, PartError, RunError, TIME_UP};
use crate::world::{Play, Played, World};
use warmq_config::Setting;

type Figures = std::collections::BTreeMap<String, f64>;

/// What the CPUs of a real world waited for those of the machine below, in us.
const HOST_DELAY: &str = "host_delay";

impl Engine {
    pub(super) fn world_names(&self) -> Vec<String> {
        let others = self.worlds.iter().map(|world| world.kind().name());
        std::iter::once(LAB)
            .chain(others)
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn world_settings(&self, name: &str) -> Result<Vec<Setting>, PartError> {
        match self.world_called(name) {
            Some(world) => Ok(world.settings()),
            None if name == LAB => Ok(kernel::settings()),
            None => Err(PartError::Unknown),
        }
    }

    /// The world that `plan` is handed over to; none: it is simulated.
    pub(super) fn world(&self, plan: &Plan) -> Option<&Arc<dyn World>> {
        self.world_called(&plan.world.name)
    }

    fn world_called(&self, name: &str) -> Option<&Arc<dyn World>> {
        self.worlds.iter().find(|world| world.kind().name() == name)
    }

    /// Whether a world beside the laboratory can run this scheduler.
    pub(super) fn is_real(&self, scheduler: &str) -> bool {
        let mut worlds = self.worlds.iter();
        worlds.any(|world| world.takes_scheduler(scheduler).is_ok())
    }

    pub(super) fn goes_with(&self, world: &str, part: Part, name: &str) -> Result<(), String> {
        match (self.world_called(world), part) {
            (Some(world), Part::Scheduler) => world.takes_scheduler(name),
            (Some(world), Part::Machine) => world.takes_machine(name),
            (Some(_), Part::Workload) => self.is_a_scenario(world, name),
            (None, Part::Scheduler) if compiled::is_file(name) => Ok(()),
            (None, Part::Scheduler) if name != KERNEL && warmq_sched::scheduler(name).is_none() => {
                let known = warmq_sched::SCHEDULERS.iter().map(|entry| entry.name);
                let known: Vec<&str> = known.collect();
                let known = known.join(", ");
                Err(format!(
                    "the lab has no scheduler \"{name}\"; it has {known}"
                ))
            }
            _ => Ok(()),
        }
    }

    fn is_a_scenario(&self, world: &str, name: &str) -> Result<(), String> {
        match self.workload(name) {
            Ok(workload) if workload.entry().scenario().is_none() => Err(format!(
                "{name} is a program of the lab; world = \"{world}\" plays scenarios"
            )),
            _ => Ok(()),
        }
    }

    /// Has `world` play `plan`, and measures what it says.
    pub(super) fn play<O: Observer>(
        &self,
        world: &Arc<dyn World>,
        plan: &Plan,
        mut observer: O,
    ) -> Result<Measured, RunError> {
        let (machine, _, workload) = self.parts(plan)?;
        let (Some(scenario), Some((file, text))) =
            (workload.entry().scenario(), workload.entry().text())
        else {
            let name = &plan.workload.name;
            return Err(setting(format!("{name} is no scenario")));
        };
        let request = Play {
            plan,
            machine: &machine,
            file,
            text,
        };
        let played = world.play(&request)?;
        let mut digest = Digest::new();
        observer.about(&Header {
            places: places(&machine, world.kind()),
            ..played.header.clone()
        });
        for (at, record) in &played.records {
            digest.see(*at, record);
            observer.see(*at, record);
        }
        let cpus = machine.cpus.len();
        let figures = measured(&played, cpus)?;
        let unfit = unfit(&figures).into_iter().collect();
        Ok(Measured {
            digest: digest.to_string(),
            ending: ending(&played, plan).to_owned(),
            notes: [unfit, notes(scenario, world.kind()), played.notes].concat(),
            figures,
            parameters: played.parameters,
            ..Measured::default()
        })
    }
}

/// How it ended: a run is over early when all its tasks have ended.
fn ending(played: &Played, plan: &Plan) -> &'static str {
    let last = played.records.last().map_or(Instant::START, |(at, _)| *at);
    match last < Instant::START + plan.warmup + plan.time {
        true => "work done",
        false => TIME_UP,
    }
}

/// The figures of what was played, between the first counts and the last. Counts are taken where a
/// phase begins, too, which may be in the warm-up.
fn measured(played: &Played, machine_cpus: usize) -> Result<Figures, RunError> {
    let times = |is_meant: fn(&Record) -> bool| {
        let records = played.records.iter();
        let meant = records.filter(move |(_, record)| is_meant(record));
        meant.map(|(at, _)| *at)
    };
    let phases: BTreeSet<Instant> =
        times(|record| matches!(record, Record::Phase { .. })).collect();
    let mut moments =
        times(|record| matches!(record, Record::Count { .. })).filter(|at| !phases.contains(at));
    let (Some(from), Some(end)) = (moments.next(), moments.next_back()) else {
        return Err(RunError {
            what: "the player ended before it counted anything".to_owned(),
            cause: Cause::WorldRefused,
        });
    };
    let mut meter = PlayMeter::starting_at(played.header.names.clone(), from);
    let within = played.records.iter().filter(|(at, _)| *at <= end);
    let mut cpus = CpuMeter::starting_at(0, from);
    let mut others = Others::starting_at(from);
    for (at, record) in within {
        meter.see(*at, record);
        cpus.see(*at, record);
        others.see(*at, record);
    }
    let stolen = played
        .records
        .iter()
        .filter_map(|(at, record)| match record {
            Record::Steal { span, .. } if *at >= from && *at <= end => Some(*span),
            _ => None,
        });
    let delay: Duration = stolen.chain([played.delay]).sum();
    let mut figures = meter.figures(end);
    figures.insert(HOST_DELAY.to_owned(), delay.0 as f64 / 1e6);
    let taken = others.had(end) + delay;
    let all = end.since(from).0 as f64 * machine_cpus.max(1) as f64;
    figures.insert(TAKEN.to_owned(), 100.0 * taken.0 as f64 / all.max(1.0));
    figures.extend(super::measure::of_records(&meter, &cpus, (from, end)));
    Ok(figures)
}

/// Less that the machine below had is not said.
const LEAST_DELAY_S: f64 = 0.05;

/// That a run is not fit to judge a scheduler by, and why, if it is not. How much was taken is a
/// figure, so that all such runs of a point say the same.
fn unfit(figures: &Figures) -> Option<String> {
    figures.get(TAKEN).filter(|taken| **taken >= MOST_TAKEN)?;
    let delay_s = figures.get(HOST_DELAY).copied().unwrap_or(0.0) / 1e6;
    let below = match delay_s >= LEAST_DELAY_S {
        true => "; the machine below it had some of that (host_delay)",
        false => "",
    };
    Some(format!(
        "A run is not fit to judge a scheduler by: others had {MOST_TAKEN} % and more of the time of its CPUs \
         (cpu_taken_share){below}."
    ))
}
