//! Whatever the text, the reader of hwloc's XML answers, and what it accepts holds.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match warmq_machine::read_hwloc("fuzz.xml", text) {
        Ok(machine) => assert_eq!(machine.check(), Ok(())),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.span.is_none_or(|span| text.get(span).is_some()));
        }
    }
});
