//! Whatever the text, the reader of hwloc's XML answers, and what it accepts holds.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match warmq_machine::read_hwloc("fuzz.xml", text) {
        Ok(machine) => assert_eq!(machine.check(), Ok(())),
        Err(problems) => {
            assert!(!problems.list.is_empty());
            assert!(problems.list.iter().all(|problem| text.get(problem.span.clone()).is_some()));
        }
    }
});
