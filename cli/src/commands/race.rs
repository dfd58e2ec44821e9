//! `warmq race`: random events on a few CPUs, and callbacks that are interrupted.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use warmq_config::Pair;
use warmq_experiment::Engine;
use warmq_race::{Found, MOST_CPUS, Race, kinds};
use warmq_sched_ext::{Loaded, Place};
use warmq_units::Seed;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::progress::Watch;
use crate::typed;
use crate::worlds;

const EXAMPLES: &str = "\
Examples:
  warmq race ./scx_mine.bpf.o                    the first fault of 10,000 schedules, made short
  warmq race ./scx_mine.bpf.o --cpus 3 --tasks 8 --time 60
  warmq race './scx_mine.bpf.o:slice_ns=1000000'  with a variable set
  warmq race ./scx_mine.bpf.o --seed 274         the same schedule again, and the same text";

/// Look for races in a compiled scheduler: wakeups that are lost, tasks that never run, counts that
/// are wrong.
///
/// Random tasks wake, sleep, yield and change on a few CPUs. Callbacks are interrupted before
/// accesses to memory and before calls, and others come in, as far as the locks of the kernel allow
/// that (docs/your-scheduler.md). The schedule that leads to a fault is made as short as possible
/// and shown with source lines. Ends with 0 if no fault is found, with 1 if one is.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file of a compiled scheduler: an object, or the program that has it inside. Variables
    /// are set as FILE:KEY=VALUE;KEY=VALUE.
    #[arg(value_name = "FILE")]
    scheduler: String,
    /// CPUs, all under one cache.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_CPUS)))]
    cpus: u16,
    /// Tasks.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    tasks: u16,
    /// Steps of a schedule.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    steps: u32,
    /// What happens, of wake, sleep, tick, yield, nice, affinity, move, weigh, hint and pass
    /// [default: all].
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(kinds()))]
    only: Vec<String>,
    /// Play the schedule of this seed only.
    #[arg(long, value_name = "N", conflicts_with_all = ["runs", "time"])]
    seed: Option<u64>,
    /// How many schedules, of the seeds from 1 on [default: 10,000].
    #[arg(long, value_name = "N", conflicts_with = "time")]
    runs: Option<NonZeroU64>,
    /// For how many seconds.
    #[arg(long, value_name = "S")]
    time: Option<NonZeroU64>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Schedules where nothing else is asked for.
const RUNS: u64 = 10_000;

/// Loads, plays, prints.
///
/// # Errors
/// A file that is no scheduler, or not one that the lab can run; a fault.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loaded = arguments.load()?;
    let race = Race {
        loaded: &loaded,
        cpus: arguments.cpus,
        tasks: arguments.tasks,
        steps: arguments.steps as usize,
        only: &arguments.only,
    };
    let outcome = arguments.search(&race)?;
    let story = outcome.found.as_ref().map(|found| race.story(found));
    let story = story.transpose();
    let story = story.map_err(|why| arguments.refused(why.to_string()))?;
    match arguments.json {
        true => output::print_json(&arguments.line(&outcome, story))?,
        false => output::print(&arguments.text(&outcome, story))?,
    }
    match outcome.found {
        Some(_) => Err(Failure::Judged(Exit::ClaimFailed)),
        None => Ok(()),
    }
}

/// What a search found.
struct Outcome {
    /// How many schedules were played.
    played: u64,
    found: Option<Found>,
    /// Of CPUs that sleep beside tasks without a race: how often, and the first.
    idle: (u64, Option<Found>),
}

impl Arguments {
    /// The file, and what is set.
    fn parts(&self) -> (&str, &str) {
        let parts = self.scheduler.split_once(':');
        parts.unwrap_or((&self.scheduler, ""))
    }

    fn refused(&self, why: String) -> Failure {
        let help = "`warmq schedulers FILE` says whether the lab can run it, and what can be set";
        Failure::usage(why, help)
    }

    fn load(&self) -> Result<Loaded, Failure> {
        let (file, set) = self.parts();
        let pairs = set.split(';').filter(|pair| !pair.is_empty());
        let pairs: Result<Vec<Pair>, String> = pairs.map(str::parse).collect();
        let pairs = pairs.map_err(|why| self.refused(format!("{file}: {why}")))?;
        let set = pairs.into_iter().map(|pair| (pair.key, pair.value));
        let set: Vec<(String, String)> = set.collect();
        let place = |core| Place {
            core,
            ..Place::default()
        };
        let places = (0..self.cpus).map(place).collect();
        worlds::add(Engine::new(None))
            .load_compiled(file, &set, places)
            .map_err(|why| self.refused(why))
    }

    /// Plays schedules until one leads to a fault.
    fn search(&self, race: &Race<'_>) -> Result<Outcome, Failure> {
        let (first, runs) = match (self.seed, self.time) {
            (Some(seed), _) => (seed, 1),
            (None, Some(_)) => (1, u64::MAX),
            (None, None) => (1, self.runs.map_or(RUNS, NonZeroU64::get)),
        };
        let until = self.time.map(|time| Duration::from_secs(time.get()));
        let (began, watch) = (Instant::now(), self.watch(runs));
        let mut outcome = Outcome {
            played: 0,
            found: None,
            idle: (0, None),
        };
        while outcome.played < runs && until.is_none_or(|until| began.elapsed() < until) {
            let seed = Seed(first.wrapping_add(outcome.played));
            let found = race.run(seed);
            let found = found.map_err(|why| self.refused(why.to_string()))?;
            outcome.played += 1;
            if until.is_none() {
                watch.see(outcome.played as usize, runs as usize, "");
            }
            let Some(found) = found else { continue };
            if found.is_fault() || self.seed.is_some() {
                outcome.found = Some(found);
                break;
            }
            outcome.idle.0 += 1;
            outcome.idle.1.get_or_insert(found);
        }
        Ok(outcome)
    }

    fn watch(&self, runs: u64) -> Watch {
        match self.time {
            Some(_) => Watch::until_done("racing"),
            None => Watch::over("schedules", runs as usize),
        }
    }

    /// The command that plays the same again.
    fn again(&self, found: &Found) -> String {
        let numbers = [
            ("cpus", u64::from(self.cpus)),
            ("tasks", self.tasks.into()),
            ("steps", self.steps.into()),
            ("seed", found.seed.0),
        ];
        let options = numbers
            .iter()
            .flat_map(|(name, number)| typed::option(name, &number.to_string()));
        let only = typed::list("only", &self.only);
        let options: Vec<String> = only.into_iter().chain(options).collect();
        typed::line("race", &[&self.scheduler], &options)
    }

    fn text(&self, outcome: &Outcome, story: Option<String>) -> String {
        let (cpus, tasks, played) = (self.cpus, self.tasks, outcome.played);
        let mut lines = Vec::new();
        if let Some((found, story)) = outcome.found.as_ref().zip(story) {
            let (steps, left) = (found.steps, found.plan.steps.len());
            lines.push(format!("{}: {}", self.parts().0, found.fault));
            lines.push(format!(
                "Schedule {played}, of {steps} steps; {left} are enough:\n"
            ));
            lines.push(format!("{story}\n"));
            lines.push(format!("again: {}", self.again(found)));
        } else {
            lines.push(format!(
                "no fault in {played} schedules of {tasks} tasks on {cpus} CPUs"
            ));
        }
        if let (often, Some(found)) = &outcome.idle {
            let what = "leave a CPU asleep beside a task, although nothing is interrupted";
            lines.push(format!(
                "{often} of the schedules {what}: {}",
                self.again(found)
            ));
        }
        lines.join("\n")
    }

    fn line(&self, outcome: &Outcome, story: Option<String>) -> Value {
        let found = outcome.found.as_ref();
        json!({
            "scheduler": self.scheduler,
            "cpus": self.cpus,
            "tasks": self.tasks,
            "schedules": outcome.played,
            "fault": found.map(|found| found.fault.to_string()),
            "seed": found.map(|found| found.seed.0),
            "steps": found.map(|found| found.plan.steps.len()),
            "story": story,
            "again": found.map(|found| self.again(found)),
            "idle": outcome.idle.0,
            "idle_again": outcome.idle.1.as_ref().map(|found| self.again(found)),
        })
    }
}
