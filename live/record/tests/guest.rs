//! A recording of a guest: Debian's 6.18.15 with two CPUs, where a shell makes pipes and processes
//! and datagrams go over loopback. Made by `examples/snapshot.rs`.

use warmq_record::{Recording, Tasks};
use warmq_trace::{Checker, Observer, Record};
use warmq_units::{Duration, Instant};

const BYTES: &[u8] = include_bytes!("fixtures/guest-6.18.bin");

fn records(tasks: &mut Tasks, start_ns: u64) -> Vec<(Instant, Record)> {
    let recording = Recording::from_bytes(BYTES).unwrap();
    let mut all = Vec::new();
    recording.records(tasks, start_ns, &mut |at, record| all.push((at, record)));
    all
}

/// When its first event was, by its machine's monotonic clock.
fn first_ns() -> u64 {
    let all = records(&mut Tasks::new(), 0);
    let first = all.iter().find(|(at, _)| at.0 > 0).unwrap();
    first.0.0 / 1_000
}

#[test]
fn the_first_records_of_a_guest() {
    let all = records(&mut Tasks::new(), first_ns());
    let line = |(at, record): &(Instant, Record)| format!("{:>9} {record:?}\n", at.0 / 1_000);
    insta::assert_snapshot!(all.iter().take(80).map(line).collect::<String>());
}

#[test]
fn a_guest_breaks_no_law_wherever_the_reading_starts() {
    let first = first_ns();
    for start in (0..60).map(|ms| first + ms * 1_000_000) {
        let mut checker = Checker::of_a_recording();
        let all = records(&mut Tasks::new(), start);
        for (at, record) in &all {
            checker.see(*at, record);
        }
        let end = all.last().map_or(Instant::START, |(at, _)| *at);
        assert_eq!(checker.finish(end), Ok(()), "from {start} on");
    }
}

#[test]
fn nothing_of_a_guest_is_lost_and_its_time_is_that_of_its_events() {
    let all = records(&mut Tasks::new(), first_ns());
    assert!(
        !all.iter()
            .any(|(_, record)| matches!(record, Record::Lost { .. }))
    );
    let (last, _) = all.last().unwrap();
    let took = last.since(Instant::START);
    let about = Duration::from_ms(50)..Duration::from_ms(200);
    assert!(about.contains(&took), "it was to take 60 ms: {took:?}");
}
