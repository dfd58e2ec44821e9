use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use prost::Message;
use warmq_trace::{Observer, Perfetto, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::contents::{Contents, Kind};
use crate::open::records_of;
use warmq_trace::perfetto::messages::{
    Bundle, Compact, CpuStats, Event, FtraceStats, ProcessTree, Switch, SystemInfo, Thread,
    Utsname, Wakeup,
};

/// A packet: fields of `trace_packet.proto` that the tests write.
#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "1")]
    events: Option<Bundle>,
    #[prost(message, optional, tag = "2")]
    tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "34")]
    stats: Option<FtraceStats>,
    #[prost(message, optional, tag = "45")]
    info: Option<SystemInfo>,
    #[prost(bytes = "vec", optional, tag = "50")]
    compressed: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "98")]
    machine: Option<u32>,
}

/// A file: packets, one after the other.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

fn file(packets: Vec<Packet>) -> Vec<u8> {
    File { packets }.encode_to_vec()
}

fn events(cpu: u32, bundle: Bundle) -> Packet {
    let events = Some(Bundle {
        cpu: Some(cpu),
        ..bundle
    });
    Packet {
        events,
        ..Packet::default()
    }
}

/// Columns: at 100 task 1 is woken, at 150 it runs for whoever ran, at 200 task 2 after it sleeps.
fn columns() -> Bundle {
    let compact = Compact {
        switch_timestamp: vec![150, 50],
        switch_prev_state: vec![0, 1],
        switch_next_pid: vec![1, 2],
        switch_next_prio: vec![120, 130],
        names: vec![b"one".to_vec(), b"two".to_vec()],
        switch_next_name: vec![0, 1],
        waking_timestamp: vec![100],
        waking_pid: vec![1],
        waking_prio: vec![120],
        waking_name: vec![0],
        waking_flags: vec![0],
    };
    Bundle {
        compact: Some(compact),
        ..Bundle::default()
    }
}

fn read(bytes: Vec<u8>) -> (Vec<(u64, Record)>, Contents) {
    let mut records = records_of(bytes).expect("it is one");
    let all = records.by_ref().map(|entry| entry.expect("damage ends it"));
    let all = all.map(|(at, record)| (at.0 / 1_000, record)).collect();
    (all, records.contents().expect("it is of another program"))
}

/// When, where, from whom, whether that one is runnable, and to whom.
type Switched = (u64, u16, Option<u32>, bool, Option<u32>);

/// From whom to whom CPUs switch, when, and whether the one that leaves is runnable.
fn switches(records: &[(u64, Record)]) -> Vec<Switched> {
    let switch = |(at, record): &(u64, Record)| match *record {
        Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        } => Some((
            *at,
            cpu.0,
            prev.map(|task| task.0),
            prev_runnable,
            next.map(|task| task.0),
        )),
        _ => None,
    };
    records.iter().filter_map(switch).collect()
}

#[test]
fn columns_are_switches_and_wakings() {
    let (records, contents) = read(file(vec![events(3, columns())]));
    assert_eq!(
        switches(&records),
        [
            (50, 3, None, false, Some(0)),
            (100, 3, Some(0), false, Some(1))
        ]
    );
    assert!(records.iter().any(|(at, record)| {
        *at == 0
            && matches!(
                record,
                Record::Waking {
                    cpu: CpuId(3),
                    task: TaskId(0),
                    ..
                }
            )
    }));
    // Of a task that is woken nothing else is recorded: that it is runnable follows.
    assert!(records.iter().any(|(at, record)| {
        *at == 0
            && matches!(
                record,
                Record::Wakeup {
                    task: TaskId(0),
                    ..
                }
            )
    }));
    assert!(
        records
            .iter()
            .any(|(_, record)| matches!(record, Record::Nice { nice: 10, .. }))
    );
    assert_eq!(
        (contents.count(Kind::Switch), contents.count(Kind::Waking)),
        (2, 1)
    );
    assert_eq!(contents.clock, "boottime");
}

#[test]
fn bundles_of_all_cpus_come_in_the_order_of_time_whatever_that_of_the_file() {
    let switch = |ns, from, to| Event {
        timestamp: Some(ns),
        pid: Some(from as u32),
        sched_switch: Some(Switch {
            prev_pid: Some(from),
            next_pid: Some(to),
            ..Switch::default()
        }),
        ..Event::default()
    };
    let bundle = |events| Bundle {
        events,
        ..Bundle::default()
    };
    let late = events(0, bundle(vec![switch(900, 7, 9)]));
    let early = events(0, bundle(vec![switch(100, 0, 1), switch(700, 1, 7)]));
    let other = events(1, bundle(vec![switch(300, 0, 3), switch(800, 3, 8)]));
    let (records, _) = read(file(vec![late, other, early]));
    let times: Vec<u64> = switches(&records).iter().map(|switch| switch.0).collect();
    assert_eq!(times, [0, 200, 600, 700, 800]);
}

#[test]
fn what_is_known_of_the_machine_and_its_processes_is_read() {
    let tree = ProcessTree {
        processes: Vec::new(),
        threads: vec![Thread {
            tid: Some(1),
            name: Some(b"older".to_vec()),
            tgid: Some(77),
        }],
    };
    let utsname = Some(Utsname {
        release: Some("6.6.30-android15".to_owned()),
    });
    let stats = |phase, overrun| Packet {
        stats: Some(FtraceStats {
            phase: Some(phase),
            cpus: vec![CpuStats {
                overrun: Some(overrun),
            }],
        }),
        ..Packet::default()
    };
    let about = Packet {
        tree: Some(tree),
        info: Some(SystemInfo { utsname }),
        ..Packet::default()
    };
    let bytes = file(vec![stats(1, 5), events(0, columns()), about, stats(2, 12)]);
    let header = records_of(bytes.clone()).unwrap().header().clone();
    assert_eq!(header.kernel, "6.6.30-android15");
    let (records, contents) = read(bytes);
    let ids = records.iter().find_map(|(_, record)| match record {
        Record::Ids { tid: 1, tgid, .. } => Some(*tgid),
        _ => None,
    });
    assert_eq!(ids, Some(77));
    assert_eq!(
        contents.notes,
        ["the kernel wrote over 7 events before they were read"]
    );
}

#[test]
fn of_several_machines_the_one_with_the_most_events_is_read() {
    let of_guest = Packet {
        machine: Some(2),
        ..events(
            5,
            Bundle {
                events: vec![Event {
                    timestamp: Some(9),
                    sched_wakeup: Some(Wakeup::default()),
                    ..Event::default()
                }],
                ..Bundle::default()
            },
        )
    };
    let (records, contents) = read(file(vec![of_guest, events(0, columns())]));
    assert_eq!(switches(&records).len(), 2);
    assert_eq!(
        contents.notes,
        ["the machine with the most events is read, and machine 2 is not"]
    );
}

#[test]
fn compressed_packets_are_unpacked() {
    let plain = file(vec![events(0, columns())]);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).unwrap();
    let packed = Packet {
        compressed: Some(encoder.finish().unwrap()),
        ..Packet::default()
    };
    let (records, contents) = read(file(vec![packed]));
    assert_eq!(records, read(plain).0);
    assert_eq!(contents.damage, None);
}

#[test]
fn events_that_were_lost_end_what_is_known_of_a_cpu() {
    let lost = Bundle {
        lost_events: Some(true),
        ..columns()
    };
    let mut after = lost;
    if let Some(compact) = &mut after.compact {
        compact.switch_timestamp[0] += 1_000;
        compact.waking_timestamp[0] += 1_000;
    }
    let (records, contents) = read(file(vec![events(0, columns()), events(0, after)]));
    assert_eq!(contents.lost, 1);
    let after_gap = switches(&records)[2];
    assert_eq!(after_gap.2, None, "nobody knows who ran");
}

#[test]
fn a_trace_that_is_cut_is_used_as_far_as_it_goes() {
    let mut bytes = file(vec![events(0, columns()), events(0, columns())]);
    bytes.truncate(bytes.len() - 10);
    let length = bytes.len() as u64;
    let (records, contents) = read(bytes);
    assert_eq!(switches(&records).len(), 2);
    assert!(
        contents
            .damage
            .is_some_and(|damage| damage.offset <= length)
    );
}

#[test]
fn a_trace_without_events_of_the_kernel_says_so() {
    let info = SystemInfo { utsname: None };
    let about = Packet {
        info: Some(info),
        ..Packet::default()
    };
    let (records, contents) = read(file(vec![about]));
    assert!(records.is_empty());
    assert!(contents.notes[0].contains("linux.ftrace"));
}

#[test]
fn what_we_write_for_perfetto_is_read_back() {
    let mut bytes = Vec::new();
    let mut perfetto = Perfetto::new(&mut bytes, "tiny");
    let at = |us| Instant::START + Duration::from_us(us);
    for turn in 0..600 {
        let (prev, next) = (TaskId(turn % 3), TaskId((turn + 1) % 3));
        perfetto.see(
            at(u64::from(turn)),
            &Record::Switch {
                cpu: CpuId(0),
                prev: Some(prev),
                prev_runnable: true,
                next: Some(next),
            },
        );
    }
    perfetto.finish().unwrap();
    let (records, contents) = read(bytes);
    assert_eq!((switches(&records).len(), contents.damage), (600, None));
    assert!(switches(&records).iter().all(|switch| switch.3));
}
