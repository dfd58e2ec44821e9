//! The digests of the shipped experiments' first 20 ms (less where their quick form is shorter, or
//! the machine has many CPUs), or the 100 ms after a start that is late, so that a change of
//! behaviour shows in review. A change that is meant: `cargo insta review`, and say in the commit
//! what changed.

use std::fs;
use std::path::Path;

use rayon::prelude::*;
use warmq_experiment::{Engine, Experiment, LAB, Options, Plan, Runner, Simulator};
use warmq_units::Duration;

/// Long enough for hundreds of switches on every machine.
const TIME: Duration = Duration::from_ms(20);

/// The same on a machine of a hundred CPUs or more.
const TIME_OF_MANY: Duration = Duration::from_ms(4);
const MANY: usize = 100;

/// The same for a workload whose tasks sleep for 2 s first.
const CLONED: (&str, Duration) = ("chat-cloned", Duration::from_ms(2_100));

fn shipped() -> Vec<(String, Experiment)> {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<_> = ["coloring", "starvation", "affinity"]
        .into_iter()
        .flat_map(|paper| fs::read_dir(experiments.join(paper)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let engine = Engine::default();
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(path).unwrap();
        (
            name.clone(),
            Experiment::read(&name, &text, &engine).unwrap(),
        )
    };
    files.iter().map(|path| read(path)).collect()
}

/// The first and the last plan of an experiment that needs no program, cut short.
fn ends(experiment: &Experiment) -> Vec<Plan> {
    let mut jobs = experiment.jobs(&Options {
        quick: true,
        ..Options::default()
    });
    let engine = Engine::default();
    jobs.retain(|job| engine.missing(LAB, &job.plan.scheduler.name).is_none());
    let cpus = |plan: &Plan| engine.machine(&plan.machine.name).unwrap().cpus.len();
    let time_of = |plan: &Plan| match plan.workload.name == CLONED.0 {
        true => CLONED.1,
        false if cpus(plan) >= MANY => TIME_OF_MANY,
        false => TIME,
    };
    let cut = |plan: &Plan| Plan {
        warmup: Duration::ZERO,
        time: time_of(plan).min(plan.warmup + plan.time),
        ..plan.clone()
    };
    [jobs.first(), jobs.last()]
        .into_iter()
        .flatten()
        .map(|job| cut(&job.plan))
        .collect()
}

#[test]
fn shipped_experiments_do_what_they_did() {
    let engine = Engine::default();
    let digests: Vec<String> = shipped()
        .par_iter()
        .flat_map_iter(|(name, experiment)| {
            let digest = |plan: Plan| match engine.simulate(&plan) {
                Ok(measured) => format!("{name}: {}", measured.digest),
                Err(error) => format!("{name}: {error}"),
            };
            ends(experiment).into_iter().map(digest).collect::<Vec<_>>()
        })
        .collect();
    insta::assert_snapshot!(digests.join("\n"));
}

#[test]
fn a_plan_gives_the_same_digest_again_and_another_seed_another() {
    let (_, experiment) = &shipped()[0];
    let engine = Engine::default();
    let plan = ends(experiment).remove(0);
    let again = engine.simulate(&plan).unwrap();
    assert_eq!(engine.simulate(&plan).unwrap(), again);
    let other = Plan {
        seed: warmq_units::Seed(plan.seed.0 + 1),
        ..plan
    };
    assert_ne!(engine.simulate(&other).unwrap().digest, again.digest);
}
