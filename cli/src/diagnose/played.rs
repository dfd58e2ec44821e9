//! Each verdict is provoked by a scenario that is played in the lab, and laws that are kept provoke
//! no others.

mod held;
mod idle;
mod late;
mod laws;
mod starved;
mod weights;
mod written;

use std::collections::BTreeMap;

use warmq_config::Document;
use warmq_diagnose::{About, Diagnosis, Kind, Verdict, Watcher};
use warmq_experiment::{Engine, Experiment, LAB, Options, Plan, Simulator};
use warmq_trace::{Header, Observer, Record};
use warmq_units::Instant;

use crate::worlds;

/// Plays `plan`, and diagnoses it.
fn diagnosed(engine: &Engine, plan: &Plan) -> Diagnosis {
    let mut run = Watched {
        from: Instant::START + plan.warmup,
        about: None,
    };
    let played = engine.observe(plan, &mut run);
    played.unwrap_or_else(|error| panic!("{}: {error}", plan.workload.name));
    Diagnosis::of(run.about.expect("a run says what it is of"))
}

/// Watches a run from when it says what it is of.
struct Watched {
    from: Instant,
    about: Option<Watcher>,
}

impl Observer for Watched {
    fn about(&mut self, header: &Header) {
        self.about = Some(Watcher::new(header, self.from, Instant(u64::MAX)));
    }

    fn see(&mut self, at: Instant, record: &Record) {
        if let Some(watcher) = &mut self.about {
            watcher.see(at, record);
        }
    }
}

/// Plays the scenario `text` for two seconds on two CPUs with caches of their own; `settings` are
/// of the machine, the kernel and the scheduler.
fn story(text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    story_on("tiny-2cpu", text, scheduler, settings)
}

fn story_for(time: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    played_on("tiny-2cpu", time, text, scheduler, settings)
}

fn story_on(machine: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    played_on(machine, "2s", text, scheduler, settings)
}

fn played_on(machine: &str, time: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    let engine = worlds::add(Engine::new(None));
    engine
        .know("story.toml", text)
        .unwrap_or_else(|error| panic!("{error}"));
    let experiment = format!(
        "title = \"a story\"\nmachine = {machine:?}\nscheduler = {scheduler:?}\n\
         workload = \"story.toml\"\n[settings]\n{settings}\n[run]\nwarmup = \"100ms\"\n\
         time = {time:?}\n[[measure]]\nmetric = \"*\"\n"
    );
    let document = Document::parse("story-experiment.toml", &experiment)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let experiment =
        Experiment::of(&document, &engine).unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let jobs = experiment.jobs(&options);
    diagnosed(&engine, &jobs[0].plan)
}

/// The kinds of the verdicts, and of each whom it is about.
fn verdicts(diagnosis: &Diagnosis) -> BTreeMap<&'static str, Vec<String>> {
    let all = diagnosis.verdicts.iter();
    all.map(|verdict| (verdict.kind.name(), names(verdict)))
        .collect()
}

fn names(verdict: &Verdict) -> Vec<String> {
    verdict.tasks.iter().map(About::shown).collect()
}

/// That there is one verdict: of `kind`, about `tasks`.
fn only(diagnosis: &Diagnosis, kind: Kind, tasks: &[&str]) {
    let mut found = verdicts(diagnosis);
    for about in found.values_mut() {
        about.sort();
    }
    let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
    assert_eq!(
        found,
        BTreeMap::from([(kind.name(), tasks)]),
        "{diagnosis:#?}"
    );
}

/// The scheduler that is fair in all of this, where its program was built.
fn fair() -> Option<&'static str> {
    const FAIR: &str = "scx_warmq";
    let missing = worlds::add(Engine::new(None)).missing(LAB, FAIR);
    missing.iter().for_each(|why| eprintln!("SKIPPED: {why}"));
    missing.is_none().then_some(FAIR)
}

/// The scenario of a law.
fn without_law(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[law]") || line.starts_with("[[law.");
        }
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
