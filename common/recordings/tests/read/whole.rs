//! Whole recordings.

use std::collections::BTreeMap;
use std::fmt::Write;

use warmq_recordings::Kind;
use warmq_trace::{Checker, Observer, Record};

use crate::{NAMES, bytes, read, read_bytes};

/// Who runs on which CPU, one after the other: the ids that the kernel gave threads.
fn switches(name: &str) -> Vec<(u16, Option<u32>)> {
    let mut ids = BTreeMap::new();
    let mut all = Vec::new();
    for (_, record) in read(name).records {
        match record {
            Record::Ids { task, tid, .. } => drop(ids.insert(task, tid)),
            Record::Switch { cpu, next, .. } => {
                let next = next.map(|task| ids.get(&task).copied().unwrap_or(0));
                all.push((cpu.0, next));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn what_is_in_each_is_found() {
    let mut text = String::new();
    for name in NAMES {
        let whole = read(name);
        let contents = &whole.contents;
        let counts = Kind::ALL.iter().filter(|kind| contents.has(**kind));
        let counts = counts.map(|kind| format!("{} {}", kind.name(), contents.count(*kind)));
        let header = &whole.header;
        let (from, to) = contents.span_ns.expect("it has events");
        let _ = write!(
            text,
            "{name}: {}\n  {}\n  kernel {:?}, clock {:?}, {} ns, CPUs {:?}, places {:?}, {} lost\n  {:?} {:?}\n",
            contents.format,
            counts.collect::<Vec<_>>().join(", "),
            header.kernel,
            contents.clock,
            to - from,
            contents.cpus,
            header.places,
            contents.lost,
            contents.notes,
            contents.damage,
        );
    }
    insta::assert_snapshot!(text);
}

#[test]
fn text_says_the_same_switches_as_what_it_was_printed_of() {
    for (text, printed_of) in [
        ("script.txt", "perf.data"),
        ("report.txt", "trace-v6.dat"),
        ("report-l.txt", "trace-v6.dat"),
    ] {
        let (text, whole) = (switches(text), switches(printed_of));
        assert!(whole.len() > 60, "{printed_of}");
        assert_eq!(text, whole, "{printed_of}");
    }
}

#[test]
fn records_are_in_the_order_of_time_and_break_no_invariant() {
    for name in NAMES {
        let whole = read(name);
        assert!(whole.records.is_sorted_by_key(|(at, _)| *at), "{name}");
        let mut checker = Checker::of_a_recording();
        for (at, record) in &whole.records {
            checker.see(*at, record);
        }
        let broken = checker.violation().map(ToString::to_string);
        assert_eq!(broken, None, "{name}");
    }
}

#[test]
fn tasks_have_their_names_processes_and_priorities() {
    let whole = read("perf.data");
    let has =
        |wanted: &dyn Fn(&Record) -> bool| whole.records.iter().any(|(_, record)| wanted(record));
    assert!(has(
        &|record| matches!(record, Record::Renamed { comm, .. } if comm.raw() == "yes")
    ));
    assert!(has(
        &|record| matches!(record, Record::Ids { tgid, tid, .. } if tgid == tid && *tid != 0)
    ));
    // Threads of the kernel that migrate tasks have the highest real-time priority.
    assert!(has(&|record| matches!(
        record,
        Record::Policy { priority: 99, .. }
    )));
}

#[test]
fn a_perf_data_has_its_machine() {
    let lines = read("perf.data").header.hardware;
    let machine = warmq_machine::read_toml("recorded", &lines.join("\n")).expect("a machine");
    assert_eq!(machine.cpus.len(), 2);
    let sizes: std::collections::BTreeSet<u64> = machine
        .caches
        .iter()
        .map(|cache| cache.size.0 >> 10)
        .collect();
    assert!(sizes.into_iter().eq([32, 512, 32_768]));
    assert!(machine.title.contains("AMD EPYC"), "{}", machine.title);
}

/// Trace-cmd 2 left the option of the clock empty, and wrote the clocks behind the places of the
/// CPUs.
#[test]
fn a_clock_that_stands_behind_the_cpus_is_read_there() {
    let new = read("trace-v6.dat");
    let moved = clock_behind_cpus(&bytes("trace-v6.dat"));
    let (records, contents) = read_bytes(moved).expect("it is one");
    assert_eq!(contents.clock, new.contents.clock);
    assert_ne!(contents.clock, "");
    assert_eq!(records, new.records);
}

/// Moves the clocks of a trace.dat of version 6, little-endian, behind the places of the CPUs, of
/// which it has two.
fn clock_behind_cpus(file: &[u8]) -> Vec<u8> {
    const CLOCK: u16 = 4;
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let options = b"options  \0";
    let begins = file.windows(10).position(|ten| ten == options).unwrap() + 10;
    let (mut at, mut clock) = (begins, &[][..]);
    let mut moved = file[..begins].to_vec();
    while half(at) != 0 {
        let end = at + 6 + word(at + 2) as usize;
        if half(at) == CLOCK {
            clock = &file[at + 6..end];
            moved.extend(&file[at..at + 2]);
            moved.extend([0; 4]);
        } else {
            moved.extend(&file[at..end]);
        }
        at = end;
    }
    let places = at + 2 + 10;
    assert_eq!(&file[at + 2..places], b"flyrecord\0");
    moved.extend(&file[at..places]);
    for cpu in [places, places + 16] {
        // Eight bytes more stand before the events: the length of the clocks.
        moved.extend((long(cpu) + 8).to_le_bytes());
        moved.extend(&file[cpu + 8..cpu + 16]);
    }
    moved.extend((clock.len() as u64).to_le_bytes());
    moved.extend(clock);
    moved.extend(&file[places + 32..]);
    moved
}
