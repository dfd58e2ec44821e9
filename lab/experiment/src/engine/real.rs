//! What other worlds than the laboratory say, measured.

use std::collections::BTreeSet;

use warmq_metrics::{CpuMeter, MOST_TAKEN, Others, PlayMeter, TAKEN};
use warmq_scenario::WorldKind;
use warmq_trace::{Digest, Header, Observer, Record};
use warmq_units::{Duration, Instant};

use super::fidelity::notes;
use super::lab::Watching;
use super::{nodes, places};
use crate::plan::Plan;
use crate::simulator::{Cause, Measured, RunError, TIME_UP};
use crate::world::{AnyObserver, Play, Played};

type Figures = std::collections::BTreeMap<String, f64>;

/// What the CPUs of a real world waited for those of the machine below, in us.
const HOST_DELAY: &str = "host_delay";

impl Played {
    /// Measures what happened in `world`, and shows it to `watcher`.
    ///
    /// # Errors
    /// Nothing was counted.
    pub fn measured(
        self,
        world: WorldKind,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        let mut observers = (Digest::new(), watcher.map(Watching));
        observers.about(&Header {
            places: places(play.machine, world),
            nodes: nodes(play.machine, world),
            ..self.header.clone()
        });
        for (at, record) in &self.records {
            observers.see(*at, record);
        }
        let figures = measured(&self, play.machine.cpus.len())?;
        let unfit = unfit(&figures).into_iter();
        let scenario = play.workload.scenario().into_iter();
        let of_scenario = scenario.flat_map(|scenario| notes(scenario, world));
        Ok(Measured {
            digest: observers.0.to_string(),
            ending: ending(&self, play.plan).to_owned(),
            notes: unfit.chain(of_scenario).chain(self.notes).collect(),
            figures,
            parameters: self.parameters,
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
    let below = end.since(from).0 as f64 * played.delay_per_second;
    let delay: Duration = stolen.chain([Duration(below as u64)]).sum();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest is set up for longer than what is measured, and waits meanwhile, too.
    #[test]
    fn what_the_machine_below_took_is_that_of_the_time_that_is_measured() {
        let count = |at| {
            let (counter, total) = (0, 0);
            let at = Instant::START + Duration::from_ms(at);
            (at, Record::Count { counter, total })
        };
        let played = Played {
            records: vec![count(1_000), count(3_000)],
            delay_per_second: 0.5,
            ..Played::default()
        };
        let figures = measured(&played, 2).expect("two counts");
        assert_eq!((figures[HOST_DELAY], figures[TAKEN]), (1e6, 25.0));
    }
}
