//! Whatever the text, the reader of scenarios answers, and what it accepts can be bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_scenario::Scenario;

mod scenario;

fuzz_target!(|text: &str| scenario::check(text, Scenario::read("fuzz.toml", text)));
