//! Decodes what was written and checks its structure.

use std::collections::BTreeSet;

use proptest::prelude::*;
use prost::Message;
use warmq_units::{Duration, LockId};

use super::protos::{COUNTER, INSTANT, SLICE_BEGIN, SLICE_END, STATE_CLEARED};
use super::tasks::{DEAD, RUNNABLE, STOPPED, UNINTERRUPTIBLE};
use super::*;
use crate::arbitrary::records;
use crate::{Cause, Comm, Interrupt, Policy, State};

/// A file: what Perfetto calls a `Trace`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn names() -> Names {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Names {
        tasks: list(&["hog", "beat"]),
        spans: list(&["trip"]),
        counters: list(&["trips", "rounds"]),
        phases: list(&["calm", "storm"]),
        groups: Vec::new(),
        spinlocks: Vec::new(),
        work: "trips".to_owned(),
    }
}

fn traced(records: &[(Instant, Record)]) -> Vec<TracePacket> {
    let mut perfetto = Perfetto::new(Vec::new(), "made up").named(names());
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
        .filter_map(|packet| packet.ftrace_events.as_ref())
        .collect();
    assert_eq!(
        bundles.iter().map(|bundle| bundle.cpu).collect::<Vec<_>>(),
        [Some(0), Some(1)]
    );

    let [wakeup] = &bundles[0].events[..] else {
        panic!("one wakeup")
    };
    assert_eq!((wakeup.timestamp, wakeup.pid), (Some(11_000), Some(0)));
    assert_eq!(wakeup.common_flags, Some(IN_HARD_INTERRUPT));
    let waking = wakeup.sched_waking.as_ref().expect("a wakeup");
    assert_eq!((waking.pid, waking.target_cpu), (Some(5), Some(1)));

    let switches = bundles[1]
        .events
        .iter()
        .map(|event| event.sched_switch.clone().expect("a switch"));
    let shown: Vec<_> = switches
        .map(|switch| {
            (
                switch.prev_pid.unwrap(),
                switch.prev_state.unwrap(),
                switch.next_pid.unwrap(),
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
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
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
        .filter_map(|packet| packet.process_tree.as_ref())
        .collect();
    assert_eq!(trees[0].processes[0].cmdline, ["made up"]);
    let thread = &trees[1].threads[0];
    assert_eq!(
        (thread.tid, thread.name.as_deref()),
        (Some(5), Some(&b"walk"[..]))
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
            kernel_events += packet.ftrace_events.as_ref().map_or(0, |bundle| bundle.events.len());
        }
        let expected = records.iter().filter(|(_, record)| {
            matches!(record, Record::Switch { .. } | Record::Wakeup { .. } | Record::Idle { .. })
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
        .filter_map(|packet| Some(packet.ftrace_events.as_ref()?.events.len()))
        .collect();
    assert_eq!(bundles, [256, 256, 256, 232]);
}

/// Every event on a track of ours as `TIME TRACK: EVENT`, in us; tracks of threads are called by
/// tid.
fn shown(records: &[(u64, Record)]) -> Vec<String> {
    let records: Vec<_> = records
        .iter()
        .map(|(at, record)| (Instant::START + us(*at), *record))
        .collect();
    let mut names = std::collections::BTreeMap::new();
    let mut lines = Vec::new();
    for packet in traced(&records) {
        if let Some(track) = packet.track_descriptor {
            let tid = track.thread.and_then(|thread| thread.tid);
            let name = track.name.or(tid.map(|tid| format!("thread {tid}")));
            let parent = track
                .parent_uuid
                .map(|parent| format!("{}/", names[&parent]));
            let name = format!("{}{}", parent.unwrap_or_default(), name.expect("a name"));
            names.insert(track.uuid.expect("a number"), name);
        }
        if let Some(event) = packet.track_event {
            let what = match event.r#type {
                Some(SLICE_BEGIN) => format!("begins {}", event.name.expect("a name")),
                Some(SLICE_END) => "ends".to_owned(),
                Some(INSTANT) => event.name.expect("a name"),
                Some(COUNTER) => format!("is {}", event.counter_value.expect("a value")),
                other => panic!("{other:?}"),
            };
            let track = &names[&event.track_uuid.expect("a track")];
            let at = packet.timestamp.expect("a time") / 1_000;
            lines.push(format!("{at} {track}: {what}"));
        }
    }
    lines
}

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);
const CPU: CpuId = CpuId(0);

#[test]
fn spans_phases_and_counters_have_tracks_with_their_names() {
    let begin = |task, number| Record::SpanBegin {
        task,
        span: 0,
        number,
    };
    let end = |task, number| Record::SpanEnd {
        task,
        span: 0,
        number,
    };
    let count = |total| Record::Count { counter: 1, total };
    let owed = Record::Owed {
        cpu: CPU,
        group: 2,
        weight: 1_024,
        vruntime: 10,
        lag: -5,
    };
    let story = [
        (0, count(0)),
        (0, Record::Phase { phase: 0 }),
        // Its own, and one that another task ends.
        (1, begin(A, 0)),
        (2, begin(A, 7)),
        (3, end(B, 7)),
        (4, begin(A, 0)),
        (5, end(A, 0)),
        // It was not begun.
        (6, end(A, 9)),
        (7, count(3)),
        (7, Record::Phase { phase: 1 }),
        (8, owed),
    ];
    let wanted = [
        "0 Counters/rounds: is 0",
        "0 Phases: begins calm",
        "1 thread 1/trip: begins trip",
        "2 Shared spans/trip[7]: begins trip",
        "3 Shared spans/trip[7]: ends",
        "4 thread 1/trip: ends",
        "4 thread 1/trip: begins trip",
        "5 thread 1/trip: ends",
        "7 Counters/rounds: is 3",
        "7 Phases: ends",
        "7 Phases: begins storm",
        "8 Lags of groups (virtual ns)/cpu0 group 2: is -5",
    ];
    assert_eq!(shown(&story), wanted);
}

#[test]
fn what_tasks_and_cpus_do_beside_running_is_shown_in_words() {
    let task = A;
    let cause = Cause::Queue;
    let block = |object| Record::Block {
        cpu: CPU,
        task,
        cause,
        state: State::Interruptible,
        object,
    };
    let enter = |interrupt| Record::InterruptEnter {
        cpu: CPU,
        interrupt,
    };
    let (priority, policy) = (50, Policy::Fifo);
    let fragment = Some((1, 9));
    let (packets, budget) = (3, 64);
    let (table, number) = (1, 4);
    let story = [
        Record::Role {
            task,
            table,
            number,
        },
        Record::Nice { task, nice: -3 },
        Record::Policy {
            task,
            policy,
            priority,
        },
        Record::Slice {
            task,
            slice: us(3_000),
        },
        Record::Group { task, group: 2 },
        Record::Fragment { task, fragment },
        block(Some(12)),
        block(None),
        enter(Interrupt::Line(24)),
        enter(Interrupt::softirq(8)),
        enter(Interrupt::softirq(3)),
        Record::Packet {
            cpu: CPU,
            bytes: 64,
        },
        Record::Drop {
            cpu: CPU,
            reason: 6,
        },
        Record::Poll {
            cpu: CPU,
            packets,
            budget,
        },
        Record::Steal {
            cpu: CPU,
            span: us(10),
        },
        Record::Lost {
            cpu: CPU,
            events: 0,
        },
        Record::Lost {
            cpu: CPU,
            events: 5,
        },
        Record::Ran {
            task,
            total: us(2_000),
        },
    ];
    let wanted = [
        "thread 1: beat[4]",
        "thread 1: nice -3",
        "thread 1: policy Fifo 50",
        "thread 1: slice 3.000 ms",
        "thread 1: group 2",
        "thread 1: fragment 9 of application 1",
        "thread 1: waits for a queue (object 12)",
        "thread 1: waits for a queue",
        "Interrupts/cpu0: begins irq 24",
        "Interrupts/cpu0: begins softirq HRTIMER",
        "Interrupts/cpu0: begins softirq NET_RX",
        "Network/cpu0: packet of 64 bytes",
        "Network/cpu0: drop, reason 6",
        "Network/cpu0: poll: 3 of 64",
        "Scheduler/cpu0: 10.000 us stolen",
        "Scheduler/cpu0: events lost",
        "Scheduler/cpu0: 5 events lost",
        "thread 1: ran 2.000 ms in all",
    ];
    let shown = shown(&story.map(|record| (0, record)));
    let shown: Vec<&str> = shown.iter().map(|line| &line[2..]).collect();
    assert_eq!(shown, wanted);
}

/// The kernel's events of `records`, of all CPUs.
fn events(records: &[Record]) -> (Vec<TracePacket>, Vec<Event>) {
    let records: Vec<_> = (0..)
        .zip(records)
        .map(|(at, record)| (Instant::START + us(at), *record))
        .collect();
    let packets = traced(&records);
    let bundles = packets
        .iter()
        .filter_map(|packet| packet.ftrace_events.clone());
    let events = bundles.flat_map(|bundle| bundle.events).collect();
    (packets, events)
}

fn leaves(task: TaskId, prev_runnable: bool) -> Record {
    Record::Switch {
        cpu: CPU,
        prev: Some(task),
        prev_runnable,
        next: None,
    }
}

#[test]
fn the_state_in_which_a_task_leaves_is_that_in_which_it_blocked() {
    let block = |state| Record::Block {
        cpu: CPU,
        task: A,
        cause: Cause::Unknown,
        state,
        object: None,
    };
    let (_, events) = events(&[
        block(State::Stopped),
        leaves(A, false),
        block(State::Uninterruptible),
        leaves(A, false),
        // Throttled, then preempted.
        block(State::Runnable),
        leaves(A, false),
        leaves(A, true),
        // Nobody knows why.
        leaves(A, false),
    ]);
    let states = events
        .iter()
        .map(|event| event.sched_switch.as_ref().expect("a switch").prev_state);
    let wanted = [STOPPED, UNINTERRUPTIBLE, RUNNABLE, RUNNABLE, 1];
    assert_eq!(states.collect::<Vec<_>>(), wanted.map(Some));
}

#[test]
fn a_recorded_task_is_the_thread_that_it_was() {
    let comm = Comm::new("cc1");
    let (packets, events) = events(&[
        Record::Fork {
            parent: None,
            child: A,
            comm: Comm::new("make"),
        },
        Record::Ids {
            task: A,
            tid: 4_711,
            tgid: 4_700,
        },
        leaves(A, true),
        Record::Renamed { task: A, comm },
        leaves(A, true),
    ]);
    let threads = packets
        .iter()
        .filter_map(|packet| packet.process_tree.as_ref())
        .flat_map(|tree| &tree.threads);
    let threads: Vec<_> = threads
        .map(|thread| {
            (
                thread.tid.unwrap(),
                thread.tgid.unwrap(),
                thread.name.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        threads,
        [(4_711, 4_700, &b"make"[..]), (4_711, 4_700, &b"cc1"[..])]
    );
    let switches = events
        .iter()
        .map(|event| event.sched_switch.as_ref().unwrap());
    let shown: Vec<_> = switches
        .map(|switch| {
            (
                switch.prev_pid.unwrap(),
                switch.prev_comm.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(shown, [(4_711, &b"make"[..]), (4_711, &b"cc1"[..])]);
}

#[test]
fn a_wakeup_is_of_the_time_and_the_context_in_which_it_was_begun() {
    let (waker, target) = (CpuId(1), CpuId(2));
    let (_, events) = events(&[
        Record::Waking {
            cpu: CPU,
            waker: Some(A),
            task: B,
            context: Context::Softirq,
            synchronous: false,
        },
        Record::Wakeup {
            waker,
            task: B,
            target,
        },
        Record::Idle {
            cpu: CPU,
            state: Some(2),
        },
        Record::Idle {
            cpu: CPU,
            state: None,
        },
    ]);
    let woken = &events[0];
    assert_eq!((woken.timestamp, woken.pid), (Some(0), Some(1)));
    assert_eq!(woken.common_flags, Some(IN_SOFTIRQ));
    let target = woken
        .sched_waking
        .as_ref()
        .and_then(|waking| waking.target_cpu);
    assert_eq!(target, Some(2));
    let idle = events[1..]
        .iter()
        .map(|event| event.cpu_idle.as_ref().unwrap());
    let idle: Vec<_> = idle.map(|idle| idle.state.unwrap()).collect();
    assert_eq!(idle, [2, NOT_IDLE]);
}
