//! Whatever the bytes, the reader of recordings answers, and the records of what it accepts are in
//! the order of time.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_record::{Recording, Tasks};
use warmq_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::from_bytes(bytes) else {
        return;
    };
    // Not the same bytes: numbers may be written in more of them than they need.
    let written = recording.to_bytes();
    let again = Recording::from_bytes(&written).expect("what was read is written whole");
    assert_eq!(again.to_bytes(), written);
    let mut last = Instant::START;
    recording.records(&mut Tasks::new(), 1_000, &mut |at, _| {
        assert!(at >= last);
        last = at;
    });
});
