//! Whatever the text, the reader of scenarios answers, and what it accepts can be bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_config::Chosen;
use warmq_scenario::{Scenario, Site, World};

fuzz_target!(|text: &str| {
    match Scenario::read("fuzz.toml", text) {
        Ok(scenario) => {
            let defaults = Chosen::new(scenario.settings(), Default::default());
            assert!(scenario.bind(&defaults.expect("none is chosen"), &Site::default()).is_ok());
            scenario.fidelity(World::Host);
        }
        Err(problems) => {
            assert!(!problems.list.is_empty());
            assert!(problems.list.iter().all(|it| text.get(it.span.clone()).is_some()));
        }
    }
});
