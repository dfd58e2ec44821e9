//! Whatever the text, the reader of laws answers, and what it accepts can be judged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_law::{Figures, Law, Repetition, Verdict, judge};

fuzz_target!(|text: &str| {
    let Ok(law) = Law::read("fuzz", "fuzz.toml", text) else {
        return;
    };
    assert!(!law.bounds.is_empty(), "a law that nothing could break");
    let nothing = Repetition {
        seed: 1,
        outcome: Ok(Figures::new()),
        taken_us: 0.0,
    };
    assert_eq!(judge(&law, &[nothing]).verdict, Verdict::Broken);
});
