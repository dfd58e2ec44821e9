//! A fake simulator: the same names as the real one, known figures, no simulation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use warmq_experiment::{
    Cause, Experiment, HistogramDescription, Kind, Measured, MetricDescription, Options, Outcome,
    Parameter, Part, PartError, Plan, RunError, Runner, Runs, Setting, Simulator, Used, Value,
};
use warmq_units::{Bytes, Duration};

/// Counts its runs; gives a different digest each time if it is `fickle`.
#[derive(Default)]
pub struct Fake {
    pub runs: AtomicUsize,
    pub fickle: bool,
}

const METRICS: [(&str, &str); 22] = [
    ("requests_per_second", "1/s"),
    ("messages_per_second", "1/s"),
    ("walk_l2_miss_ratio", "%"),
    ("walk_length", ""),
    ("bus_transactions_per_request", ""),
    ("bus_hot_transactions_per_request", ""),
    ("bus_hot_share", "%"),
    ("lock_contention", "%"),
    ("lock_hold_mean", "us"),
    ("lock_hold_max", "us"),
    ("lock_wait_mean", "us"),
    ("lock_wait_max", "us"),
    ("lock_requests_per_second", "1/s"),
    ("switches_per_second", "1/s"),
    ("runnable_mean", ""),
    ("cpu_busy_share", "%"),
    ("cpu_idle_share", "%"),
    ("cpu_spin_share", "%"),
    ("cpu_interrupt_share", "%"),
    ("made_up", ""),
    ("absent", ""),
    ("seeded", ""),
];

fn setting(name: &str, kind: Kind, default: impl Into<Value>) -> Setting {
    Setting {
        name: name.into(),
        kind,
        unit: String::new(),
        default: default.into(),
        what: format!("what {name} does"),
        source: "made up".into(),
    }
}

fn integer(name: &str, min: i64, max: i64, default: i64) -> Setting {
    setting(name, Kind::Integer { min, max }, default)
}

fn machine_settings(name: &str) -> Option<Vec<Setting>> {
    let cpus = match name {
        "ppro-4way" => 4,
        "p3xeon-8way" => 8,
        _ => return None,
    };
    let (min, max) = (Bytes::from_kb(64), Bytes::from_mb(4));
    let l2 = setting("l2", Kind::Bytes { min, max }, Bytes::from_kb(512));
    Some(vec![integer("cpus", 1, cpus, cpus), l2])
}

fn scheduler_settings(name: &str) -> Option<Vec<Setting>> {
    let layout = Kind::Choice(vec!["block".into(), "slab".into()]);
    let common = vec![
        integer("colors", 1, 128, 1),
        integer("first_bit", 0, 31, 0),
        setting("layout", layout, "block"),
        setting("prefetch", Kind::Bool, false),
    ];
    let own = match name {
        "linux24" | "mq" => vec![],
        "elsc" => vec![integer("table", 1, 64, 30)],
        "pls" => vec![integer("levels", 1, 64, 20), integer("size", 1, 9, 2)],
        _ => return None,
    };
    Some(common.into_iter().chain(own).collect())
}

fn workload_settings(name: &str) -> Option<Vec<Setting>> {
    let (min, max) = (Duration::ZERO, Duration::from_s(1));
    match name {
        "web" => Some(vec![
            integer("processes", 1, 4096, 256),
            setting("think", Kind::Duration { min, max }, Duration::from_ms(1)),
        ]),
        "chat" => Some(vec![
            integer("rooms", 1, 100, 30),
            integer("users", 1, 100, 20),
            integer("messages", 1, 10_000, 300),
            integer("size", 1, 9000, 100),
        ]),
        _ => None,
    }
}

impl Simulator for Fake {
    fn names(&self, part: Part) -> Vec<String> {
        let names: &[&str] = match part {
            Part::World => &["lab"],
            Part::Machine => &["ppro-4way", "p3xeon-8way"],
            Part::Scheduler => &["linux24", "mq", "elsc", "pls"],
            Part::Workload => &["web", "chat"],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn settings(&self, part: Part, name: &str) -> Result<Vec<Setting>, PartError> {
        if name == "broken.toml" {
            return Err(PartError::Broken(
                "broken.toml:3: `cache.l2.ways`: must divide".into(),
            ));
        }
        let settings = match part {
            Part::World => (name == "lab").then(Vec::new),
            Part::Machine => machine_settings(name),
            Part::Scheduler => scheduler_settings(name),
            Part::Workload => workload_settings(name),
        };
        settings.ok_or(PartError::Unknown)
    }

    fn takes(&self, _: &str, _: Part, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn metrics(&self, _: &Used<'_>) -> Vec<MetricDescription> {
        let metric = |(name, unit): (&str, &str)| MetricDescription {
            name: name.into(),
            unit: unit.into(),
            what: String::new(),
        };
        METRICS.into_iter().map(metric).collect()
    }

    fn histograms(&self, _: &Used<'_>) -> Vec<HistogramDescription> {
        vec![HistogramDescription {
            name: "bus_by_page_offset".into(),
            along: "offset in the page".into(),
            unit: "1/s".into(),
            what: String::new(),
        }]
    }
}

impl Runner for Fake {
    fn needs_quiet(&self, _: &Plan) -> bool {
        false
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        if plan.scheduler.name == "elsc" && count(plan, Part::Scheduler, "colors") == 13 {
            return Err(RunError {
                what: "elsc gave cpu 1 a task that sleeps, at 3.2 ms".into(),
                cause: Cause::SchedulerBroke,
            });
        }
        let mut digest = plan.to_string().len().to_string();
        if self.fickle {
            digest = format!("{digest}-{run}");
        }
        let l2 = &plan.machine.settings["l2"];
        let cost = Parameter {
            name: "machine.l2".into(),
            value: l2.to_string(),
            ..cost()
        };
        Ok(Measured {
            notes: Vec::new(),
            figures: figures(plan),
            histograms: [("bus_by_page_offset".to_owned(), bins())].into(),
            digest,
            ending: "time up".into(),
            parameters: vec![
                cost,
                Parameter {
                    name: "kernel.switch".into(),
                    ..self::cost()
                },
            ],
            profile: None,
        })
    }
}

fn cost() -> Parameter {
    Parameter {
        name: String::new(),
        value: "9".into(),
        unit: "us".into(),
        source: "paper".into(),
    }
}

fn bins() -> Vec<(f64, f64)> {
    vec![(0.0, 10.0), (32.0, 10.0), (48.0, 80.0), (64.0, 20.0)]
}

fn count(plan: &Plan, part: Part, name: &str) -> i64 {
    let chosen = match part {
        Part::World => &plan.world,
        Part::Machine => &plan.machine,
        Part::Scheduler => &plan.scheduler,
        Part::Workload => &plan.workload,
    };
    match chosen.settings.get(name) {
        Some(Value::Integer(count)) => *count,
        _ => 0,
    }
}

/// Figures that the tests rely on: `requests_per_second` is 100 per CPU, and 1 % more for each
/// color beyond the first, up to 32; `made_up` rises along cpus up to 4 and falls after; `seeded`
/// is the seed; `absent` is absent; all others are 1.
fn figures(plan: &Plan) -> BTreeMap<String, f64> {
    let colors = count(plan, Part::Scheduler, "colors").min(32) as f64;
    let cpus = count(plan, Part::Machine, "cpus") as f64;
    let value = |name: &str| match name {
        "requests_per_second" => 100.0 * cpus * (1.0 + (colors - 1.0) / 100.0),
        "made_up" => 10.0 - (cpus - 4.0).abs(),
        "seeded" => plan.seed.0 as f64,
        _ => 1.0,
    };
    let given = METRICS.iter().filter(|(name, _)| *name != "absent");
    given
        .map(|(name, _)| ((*name).to_owned(), value(name)))
        .collect()
}

/// A file with web under linux24 on the 8-way machine, and `rest`.
pub fn file(rest: &str) -> String {
    let head = "title = \"A trial\"\nmachine = \"p3xeon-8way\"\nscheduler = \"linux24\"\n";
    format!("{head}workload = \"web\"\n{rest}")
}

/// The same with a sweep over cpus and colors, and some measures.
pub fn swept(rest: &str) -> String {
    file(&format!(
        "seeds = [1]\n[sweep]\ncpus = [1, 2, 4, 8]\ncolors = [1, 8, 32]\n\
         [quick.sweep]\ncpus = [1, 2, 8]\ncolors = [1, 32]\n\
         [[measure]]\nmetric = [\"requests_per_second\", \"made_up\", \"seeded\", \"absent\"]\n\
         [[measure]]\nname = \"gain\"\nof = \"requests_per_second\"\nrelative_to = {{ colors = 1 }}\n\
         {rest}"
    ))
}

pub fn read(text: &str) -> Experiment {
    match Experiment::read("trial.toml", text, &Fake::default()) {
        Ok(experiment) => experiment,
        Err(problems) => panic!("{problems}"),
    }
}

pub fn problems(text: &str) -> String {
    match Experiment::read("trial.toml", text, &Fake::default()) {
        Ok(_) => "no problem".into(),
        Err(problems) => problems.to_string(),
    }
}

pub fn run(experiment: &Experiment, options: &Options) -> (Runs, Outcome) {
    let runs = Runs::of(experiment.jobs(options), &Fake::default(), 2, &|_| {}).unwrap();
    let outcome = experiment.outcome(options, &runs);
    (runs, outcome)
}
