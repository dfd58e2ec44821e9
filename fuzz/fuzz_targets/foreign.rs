//! Whatever the bytes, a recording of another program is read or refused, and the records of what
//! is accepted are in the order of time.
//!
//! None of these formats has a checksum, so that what a fuzzer mutates is looked at. Its seeds are
//! the recordings of the tests, unpacked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_recordings::records_of;
use warmq_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut records) = records_of(bytes.to_vec()) else {
        return;
    };
    let mut last = Instant::START;
    for entry in records.by_ref() {
        let (at, _) = entry.expect("damage ends it");
        assert!(at >= last);
        last = at;
    }
    assert!(records.contents().is_some());
});
