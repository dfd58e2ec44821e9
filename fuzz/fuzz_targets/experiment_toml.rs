//! Whatever the text, the reader of experiments answers, and what it accepts can be planned.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_experiment::{Experiment, Options};

#[allow(dead_code, reason = "the tests use all of it, this a part")]
#[path = "../../lab/experiment/tests/run/fake/mod.rs"]
mod fake;

fuzz_target!(|text: &str| {
    match Experiment::read("fuzz.toml", text, &fake::Fake::default()) {
        Ok(experiment) => {
            let jobs = experiment.jobs(&Options::default());
            assert_eq!(jobs.len(), experiment.points.len() * experiment.full.seeds.len());
        }
        Err(problems) => {
            assert!(!problems.list.is_empty());
            assert!(problems.list.iter().all(|problem| text.get(problem.span.clone()).is_some()));
        }
    }
});
