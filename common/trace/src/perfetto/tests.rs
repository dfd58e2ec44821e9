//! Decodes what was written and checks its structure.

use std::collections::BTreeSet;

use proptest::prelude::*;
use prost::Message;
use warmq_units::{Duration, LockId};

use super::protos::{INSTANT, SLICE_BEGIN, SLICE_END, STATE_CLEARED};
use super::*;
use crate::arbitrary::records;

/// A file: what Perfetto calls a `Trace`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn traced(records: &[(Instant, Record)]) -> Vec<TracePacket> {
    let mut perfetto = Perfetto::new(Vec::new(), "made up");
    records
        .iter()
        .for_each(|(at, record)| perfetto.see(*at, record));
    let bytes = perfetto.finish().expect("a vector takes everything");
    Trace::decode(&bytes[..]).expect("what was encoded").packet
}

fn story() -> Vec<(Instant, Record)> {
    let (cpu, task) = (CpuId(1), TaskId(4));
    let records = [
        (
            0,
            Record::Fork {
                parent: None,
                child: task,
                comm: Comm::new("walk"),
            },
        ),
        (
            10,
            Record::InterruptEnter {
                cpu: CpuId(0),
                interrupt: Interrupt::Timer,
            },
        ),
        (
            11,
            Record::Wakeup {
                waker: CpuId(0),
                task,
                target: cpu,
            },
        ),
        (
            12,
            Record::InterruptExit {
                cpu: CpuId(0),
                interrupt: Interrupt::Timer,
            },
        ),
        (
            20,
            Record::Switch {
                cpu,
                prev: None,
                prev_runnable: false,
                next: Some(task),
            },
        ),
        (
            40,
            Record::Lock {
                cpu,
                lock: LockId(2),
                waited: us(3),
                held: us(5),
            },
        ),
        (50, Record::Exit { cpu, task }),
        (
            51,
            Record::Switch {
                cpu,
                prev: Some(task),
                prev_runnable: false,
                next: None,
            },
        ),
        (52, Record::Recalculate { cpu }),
    ];
    records
        .map(|(at, record)| (Instant::START + us(at), record))
        .to_vec()
}

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

#[test]
fn switches_and_wakeups_are_events_of_the_kernel() {
    let packets = traced(&story());
    let bundles: Vec<_> = packets
        .iter()
        .filter_map(|it| it.ftrace_events.as_ref())
        .collect();
    assert_eq!(
        bundles.iter().map(|it| it.cpu).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );

    let [wakeup] = &bundles[0].event[..] else {
        panic!("one wakeup")
    };
    assert_eq!((wakeup.timestamp, wakeup.pid), (Some(11_000), Some(0)));
    assert_eq!(wakeup.common_flags, Some(IN_HARD_INTERRUPT));
    let waking = wakeup.sched_waking.as_ref().expect("a wakeup");
    assert_eq!((waking.pid, waking.target_cpu), (Some(5), Some(1)));

    let switches = bundles[1]
        .event
        .iter()
        .map(|it| it.sched_switch.clone().expect("a switch"));
    let shown: Vec<_> = switches
        .map(|it| {
            (
                it.prev_pid.unwrap(),
                it.prev_state.unwrap(),
                it.next_pid.unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, [(0, RUNNABLE, 5), (5, DEAD, 0)]);
}

#[test]
fn interrupts_and_tenures_are_slices_on_tracks_that_were_described() {
    let packets = traced(&story());
    let slices: Vec<_> = packets
        .iter()
        .filter_map(|it| Some((it.timestamp?, it.track_event.as_ref()?)))
        .map(|(at, event)| {
            (
                at,
                event.r#type.unwrap(),
                event.name.as_deref().unwrap_or(""),
            )
        })
        .collect();
    assert_eq!(
        slices,
        [
            (10_000, SLICE_BEGIN, "Timer"),
            (12_000, SLICE_END, ""),
            (32_000, SLICE_BEGIN, "wait"),
            (35_000, SLICE_END, ""),
            (35_000, SLICE_BEGIN, "hold"),
            (40_000, SLICE_END, ""),
            (52_000, INSTANT, "recalculate"),
        ]
    );
}

#[test]
fn every_task_is_a_named_thread_of_the_machine() {
    let packets = traced(&story());
    let trees: Vec<_> = packets
        .iter()
        .filter_map(|it| it.process_tree.as_ref())
        .collect();
    assert_eq!(trees[0].processes[0].cmdline, ["made up"]);
    let thread = &trees[1].threads[0];
    assert_eq!(
        (thread.tid, thread.name.as_deref()),
        (Some(5), Some("walk"))
    );
    assert_eq!(thread.tgid, trees[0].processes[0].pid);
}

proptest! {
    #[test]
    fn no_event_comes_before_its_track_and_no_event_is_lost(records in records()) {
        let packets = traced(&records);
        let mut described = BTreeSet::new();
        let mut kernel_events = 0;
        for (number, packet) in packets.iter().enumerate() {
            prop_assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            prop_assert_eq!(packet.sequence_flags, (number == 0).then_some(STATE_CLEARED));
            if let Some(track) = &packet.track_descriptor {
                let parent = track.parent_uuid;
                prop_assert!(parent.is_none_or(|parent| described.contains(&parent)));
                prop_assert!(described.insert(track.uuid.unwrap()), "described twice");
            }
            if let Some(event) = &packet.track_event {
                prop_assert!(described.contains(&event.track_uuid.unwrap()));
            }
            kernel_events += packet.ftrace_events.as_ref().map_or(0, |bundle| bundle.event.len());
        }
        let expected = records.iter().filter(|(_, record)| {
            matches!(record, Record::Switch { .. } | Record::Wakeup { .. })
        });
        prop_assert_eq!(kernel_events, expected.count());
    }
}

#[test]
fn a_long_run_is_written_as_it_goes() {
    let switch = Record::Switch {
        cpu: CpuId(0),
        prev: None,
        prev_runnable: false,
        next: Some(TaskId(0)),
    };
    let records: Vec<_> = (0..1000)
        .map(|at| (Instant::START + us(at), switch))
        .collect();
    let bundles: Vec<usize> = traced(&records)
        .iter()
        .filter_map(|packet| Some(packet.ftrace_events.as_ref()?.event.len()))
        .collect();
    assert_eq!(bundles, [256, 256, 256, 232]);
}
