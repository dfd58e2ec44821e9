//! Whatever the records of a trace, all who read traces answer.
//!
//! A trace ends with a digest of its records, so that mutated bytes are refused before anybody
//! looks at them. The bytes of the fuzzer are records without such an end: those that can be read
//! up to the first mistake are written as a trace of their own, whose count and digest are right.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warmq_diagnose::{Diagnosis, Watcher};
use warmq_replay::{Meter, Shape, Taker};
use warmq_scenario::Scenario;
use warmq_trace::file::{Reader, Writer};
use warmq_trace::{Checker, Header, Observer, Record};
use warmq_units::Instant;

/// What a file of the first format begins with: it has no header that could be damaged.
const BEGIN: &[u8] = b"\x89WarmQ\r\n\x01";

fuzz_target!(|bytes: &[u8]| {
    let whole = [BEGIN, bytes].concat();
    let reader = Reader::new(&whole[..]).expect("it begins right");
    let mut records: Vec<(Instant, Record)> = reader.map_while(Result::ok).collect();
    // Times of a trace run forward.
    records.sort_by_key(|(at, _)| *at);
    let header = Header::default();
    let mut writer = Writer::new(Vec::new(), &header);
    records.iter().for_each(|(at, record)| writer.see(*at, record));
    let repaired = writer.finish().expect("memory takes it");

    let end = Instant(u64::MAX);
    let mut watcher = Watcher::new(&header, Instant::START, end);
    let mut taker = Taker::new(&header, Instant::START, end);
    let (mut meter, mut checker) = (Meter::new(Instant::START, end), Checker::of_a_run());
    let reader = Reader::new(&repaired[..]).expect("it is whole");
    for (number, entry) in reader.enumerate() {
        let (at, record) = entry.expect("it was repaired");
        assert_eq!((at, record), records[number]);
        watcher.see(at, &record);
        taker.see(at, &record);
        meter.see(at, &record);
        checker.see(at, &record);
    }
    let diagnosis = Diagnosis::of(watcher);
    let _ = serde_json::to_string(&diagnosis).expect("it can be written");
    let taken = taker.finish();
    if taken.tasks() > 0 {
        let (scenario, _) = taken.scenario(Shape { cpus: 2 });
        // What it was made of may be nonsense, but it is TOML, and reading it answers.
        let _ = Scenario::read("replayed.toml", &scenario);
    }
});
