//! Worlds beside the lab: what is handed over to them, and what is made of what they say.

use std::sync::Arc;

use warmq_experiment::{
    AnyObserver, Cause, Engine, Experiment, LAB, Measured, Options, Play, Played, RunError, Runs,
    Setting, Value, World,
};
use warmq_scenario::WorldKind;
use warmq_trace::{Header, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

/// Plays every scenario as one hog that has half of its CPU, and counts its rounds. It has a
/// setting, like a guest's kernel, and no scheduler but "kernel".
struct Pretended(WorldKind);

impl World for Pretended {
    fn kind(&self) -> WorldKind {
        self.0
    }

    fn settings(&self) -> Vec<Setting> {
        match self.0 {
            WorldKind::Guest => vec![Setting::text("kernel", "6.18")],
            _ => Vec::new(),
        }
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        match name {
            "kernel" => Ok(()),
            _ => Err(format!("no scheduler {name} here")),
        }
    }

    fn play(
        &self,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        played(play)?.measured(self.0, play, watcher)
    }
}

/// What a hog does.
fn played(request: &Play<'_>) -> Result<Played, RunError> {
    let (file, text) = request.text();
    assert!(text.contains("[task."), "it gets the scenario's text");
    if request.plan.seed.0 == 13 {
        return Err(RunError {
            what: "no luck".to_owned(),
            cause: Cause::WorldRefused,
        });
    }
    let scenario = warmq_scenario::Scenario::read(file, text);
    let names = scenario.expect("it was checked before").names();
    let rounds = names.counters.len() as u32 - 1;
    let (cpu, hog) = (CpuId(0), TaskId(0));
    let at = |ms| Instant::START + Duration::from_ms(ms);
    let count = |total| Record::Count {
        counter: rounds,
        total,
    };
    let mut records = vec![(
        at(0),
        Record::Role {
            task: hog,
            table: 0,
            number: 0,
        },
    )];
    for ms in (0..300).step_by(10) {
        let running = (ms / 10) % 2 == 0;
        let (prev, next) = if running {
            (None, Some(hog))
        } else {
            (Some(hog), None)
        };
        // A phase begins in the warm-up, with counts of its own.
        if ms == 40 {
            records.push((at(ms), count(4)));
            records.push((at(ms), Record::Phase { phase: 0 }));
        }
        if ms == 100 {
            records.push((at(ms), count(10)));
        }
        records.push((
            at(ms),
            Record::Switch {
                cpu,
                prev,
                prev_runnable: true,
                next,
            },
        ));
    }
    records.push((at(300), count(50)));
    Ok(Played {
        header: Header {
            names,
            ..Header::default()
        },
        records,
        notes: vec!["pretended".to_owned()],
        parameters: Vec::new(),
        ..Played::default()
    })
}

fn engine() -> Engine {
    Engine::default()
        .with(Arc::new(Pretended(WorldKind::Guest)))
        .with(Arc::new(Pretended(WorldKind::Host)))
}

fn experiment(rest: &str) -> Experiment {
    let text = format!("title = \"t\"\nmachine = \"tiny-2cpu\"\nworkload = \"hog\"\n{rest}");
    Experiment::read("worlds.toml", &text, &engine())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn runs(experiment: &Experiment, options: &Options) -> Runs {
    Runs::of(experiment.jobs(options), &engine(), 2, &|_| ()).unwrap()
}

#[test]
fn figures_are_of_the_time_between_the_first_counts_and_the_last() {
    let experiment = experiment(
        "world = \"host\"\nscheduler = \"kernel\"\nseeds = [1]\n[[measure]]\nmetric = \"*\"\n",
    );
    let options = Options::default();
    let outcome = experiment.outcome(&options, &runs(&experiment, &options));
    let value = |metric: &str| {
        let row = outcome.rows.iter().find(|row| row.metric == metric);
        row.map_or(f64::NAN, |row| row.value)
    };
    assert_eq!(value("work_per_second"), 200.0);
    assert_eq!(value("hog_share"), 50.0);
    assert_eq!(value("simulated_seconds"), 0.2);
    assert_eq!(value("cpu_idle_share"), 50.0);
    assert!(outcome.notes.contains(&"pretended".to_owned()));
    assert!(
        outcome.rows.iter().all(|row| row.value.is_finite()),
        "what was asked for by a star has no row where there is no figure"
    );
}

#[test]
fn a_sweep_crosses_worlds() {
    let experiment = experiment(
        "seeds = [1]\n[run]\ntime = \"20ms\"\nwarmup = \"0ms\"\n[sweep]\nworld = [\"lab\", \"guest\"]\n\
         scheduler = [\"linux24\", \"kernel\"]\nkernel = [\"6.12\", \"7.1\"]\n\
         [[measure]]\nmetric = \"work_per_second\"\n",
    );
    let names: Vec<String> = experiment
        .points
        .iter()
        .map(|point| experiment.name_of(point))
        .collect();
    assert_eq!(
        names,
        [
            "world = lab, scheduler = linux24, kernel = -",
            "world = lab, scheduler = kernel, kernel = 6.12",
            "world = lab, scheduler = kernel, kernel = 7.1",
            "world = guest, scheduler = kernel, kernel = 6.12",
            "world = guest, scheduler = kernel, kernel = 7.1",
        ],
    );
    // The guest's points with the lab's scheduler.
    assert_eq!(experiment.notes.len(), 1, "{:?}", experiment.notes);
    let options = Options::default();
    let plans: Vec<_> = experiment
        .jobs(&options)
        .into_iter()
        .map(|job| job.plan)
        .collect();
    assert_eq!(plans[0].world.name, LAB);
    let kernel = |plan: &warmq_experiment::Plan| plan.world.settings.get("kernel").cloned();
    assert_eq!(kernel(&plans[0]), Some(Value::Text("6.18".to_owned())));
    assert_eq!(kernel(&plans[4]), Some(Value::Text("7.1".to_owned())));
    let outcome = experiment.outcome(&options, &runs(&experiment, &options));
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.rows.len(), 5);
}

#[test]
fn what_a_world_refuses_is_a_failed_run() {
    let experiment = experiment(
        "world = \"guest\"\nscheduler = \"kernel\"\nseeds = [13]\n[[measure]]\nmetric = \"hog_share\"\n",
    );
    let options = Options::default();
    let outcome = experiment.outcome(&options, &runs(&experiment, &options));
    assert_eq!(outcome.failures[0].error.to_string(), "no luck");
}

#[test]
fn parts_that_do_not_go_together_are_reported_when_the_file_is_read() {
    let refused = |rest: &str| {
        let text = format!(
            "title = \"t\"\nmachine = \"tiny-2cpu\"\n{rest}\n[[measure]]\nmetric = \"*\"\n"
        );
        let read = Experiment::read("worlds.toml", &text, &engine());
        read.expect_err(rest).to_string()
    };
    for (rest, part) in [
        (
            "world = \"moon\"\nscheduler = \"kernel\"\nworkload = \"hog\"",
            "moon",
        ),
        (
            "world = \"lab\"\nscheduler = \"scx_mine\"\nworkload = \"hog\"",
            "scx_mine",
        ),
        (
            "world = \"guest\"\nscheduler = \"linux24\"\nworkload = \"hog\"",
            "no scheduler linux24 here",
        ),
        (
            "world = \"guest\"\nscheduler = \"kernel\"\nworkload = \"web\"",
            "web is a program of the lab",
        ),
        (
            "scheduler = \"linux24\"\nworkload = \"none.toml\"",
            "cannot read it",
        ),
    ] {
        let said = refused(rest);
        assert!(said.contains(part), "{rest}: {said}");
    }
}
