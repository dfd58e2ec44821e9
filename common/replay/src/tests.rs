//! Small stories, and any records at all.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_scenario::Scenario;
use warmq_trace::{Cause, Comm, Context, Header, Interrupt, Observer, Record, State};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::row::Moment;
use crate::{Meter, Shape, Taken, Taker, beside};

const A: TaskId = TaskId(1);
const B: TaskId = TaskId(2);
const C: TaskId = TaskId(3);
const CPU: CpuId = CpuId(0);

fn us(us: u64) -> Instant {
    Instant::START + Duration::from_us(us)
}

fn taken(records: &[(u64, Record)]) -> Taken {
    let mut header = Header::default();
    header.names.tasks = vec!["a".to_owned(), "b".to_owned()];
    let mut taker = Taker::new(&header, Instant::START, Instant(u64::MAX));
    for (task, table) in [(A, 0), (B, 1)] {
        let number = 0;
        let role = Record::Role {
            task,
            table,
            number,
        };
        taker.see(Instant::START, &role);
    }
    for (at, record) in records {
        taker.see(us(*at), record);
    }
    taker.finish()
}

#[test]
fn a_wait_counts_though_the_task_was_woken_before_the_measurement_as_well() {
    let woken = Record::Wakeup {
        waker: CPU,
        task: A,
        target: CPU,
    };
    let meter = || {
        let mut meter = Meter::new(us(10), us(100));
        for (at, record) in [
            (2, woken),
            (3, switch(None, false, Some(A))),
            (5, switch(Some(A), false, None)),
            (12, woken),
            (14, switch(None, false, Some(A))),
        ] {
            meter.see(us(at), &record);
        }
        meter
    };
    let lines = beside(meter(), meter(), &[(A, "a".to_owned())], 9);
    assert_eq!(lines[0].recorded.wait_p50_ns, Some(2_000));
}

#[test]
fn in_a_gap_nobody_is_known_to_run_or_to_sleep() {
    let lost = Record::Lost {
        cpu: CPU,
        events: 7,
    };
    let wakeup = Record::Wakeup {
        waker: CpuId(1),
        task: B,
        target: CPU,
    };
    let taken = taken(&[
        (0, switch(None, false, Some(A))),
        (10, lost),
        (20, wakeup),
        (50, switch(Some(A), false, Some(B))),
        (60, switch(Some(B), false, None)),
    ]);
    let moments = |task| &taken.tasks.get(task).unwrap().row.moments;
    assert_eq!(moments(A)[..], [Moment::Run(Duration::from_us(10))]);
    let slept = Moment::Sleep(Duration::from_us(20));
    let ran = Moment::Run(Duration::from_us(10));
    assert_eq!(
        moments(B)[..],
        [slept, ran],
        "it was woken, and waited then"
    );
}

/// What a task does, as its scenario says: the words of its row.
fn row(taken: &Taken, task: &str) -> String {
    let (text, _) = taken.scenario(Shape { cpus: 1 });
    Scenario::read("it.toml", &text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let (_, after) = text
        .split_once(&format!("[task.{task}]"))
        .expect("its table");
    let (_, row) = after.split_once("\"\"\"\n").expect("its row");
    row.split_once("\n\"\"\"").expect("its end").0.to_owned()
}

fn switch(prev: Option<TaskId>, runnable: bool, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu: CPU,
        prev,
        prev_runnable: runnable,
        next,
    }
}

fn block(task: TaskId, cause: Cause) -> Record {
    Record::Block {
        cpu: CPU,
        task,
        cause,
        state: State::Interruptible,
        object: None,
    }
}

fn enters(interrupt: Interrupt) -> Record {
    Record::InterruptEnter {
        cpu: CPU,
        interrupt,
    }
}

fn exits(interrupt: Interrupt) -> Record {
    Record::InterruptExit {
        cpu: CPU,
        interrupt,
    }
}

fn waking(waker: Option<TaskId>, task: TaskId, context: Context) -> Record {
    Record::Waking {
        cpu: CPU,
        waker,
        task,
        context,
        synchronous: false,
    }
}

fn wakeup(task: TaskId) -> Record {
    Record::Wakeup {
        waker: CPU,
        task,
        target: CPU,
    }
}

#[test]
fn whoever_woke_a_task_posts_to_what_it_waits_for() {
    let taken = taken(&[
        (0, switch(None, false, Some(A))),
        (30, block(A, Cause::Pipe)),
        (30, switch(Some(A), false, Some(B))),
        (50, waking(Some(B), A, Context::Task)),
        (50, wakeup(A)),
        (90, block(B, Cause::Unknown)),
        (90, switch(Some(B), false, Some(A))),
        (100, waking(Some(A), B, Context::Task)),
        (100, wakeup(B)),
        (110, switch(Some(A), true, Some(B))),
        (130, switch(Some(B), false, Some(A))),
        (150, Record::Recalculate { cpu: CPU }),
    ]);
    assert_eq!(row(&taken, "a"), "30us read 10us wake1 50us");
    assert_eq!(row(&taken, "b"), "20us wake1 40us wait 20us");
}

#[test]
fn a_timer_keeps_its_period_where_sleeps_differ_more() {
    let sleeps = |periods: &[(u64, u64)]| {
        let mut records = vec![(0, switch(None, false, Some(A)))];
        for (sleeps, wakes) in periods {
            records.extend([
                (*sleeps, block(A, Cause::Timer)),
                (*sleeps, switch(Some(A), false, None)),
                (*wakes, waking(None, A, Context::Interrupt)),
                (*wakes, wakeup(A)),
                (*wakes, switch(None, false, Some(A))),
            ]);
        }
        taken(&records)
    };
    let even = sleeps(&[(10, 100), (130, 200), (210, 300), (350, 400)]);
    assert_eq!(
        row(&even, "a"),
        "10us @100us 30us @100us 10us @100us 50us @100us"
    );
    let relative = sleeps(&[(10, 100), (130, 220), (230, 320), (370, 460)]);
    assert_eq!(
        row(&relative, "a"),
        "10us ~90us 30us ~90us 10us ~90us 50us ~90us"
    );
}

#[test]
fn what_a_starved_task_computes_is_not_over() {
    let taken = taken(&[
        (0, switch(None, false, Some(A))),
        (10, switch(Some(A), true, Some(B))),
        (1_000, Record::Recalculate { cpu: CPU }),
    ]);
    assert_eq!(row(&taken, "a"), "1ms");
}

#[test]
fn what_comes_from_outside_comes_from_a_source() {
    let mut records = vec![(0, switch(None, false, None))];
    for at in [100, 150, 300] {
        let (network, softirq) = (Interrupt::Network, Interrupt::NetworkSoftirq);
        let (cpu, bytes) = (CPU, 64);
        records.extend([
            (
                at,
                Record::InterruptEnter {
                    cpu,
                    interrupt: network,
                },
            ),
            (
                at + 1,
                Record::InterruptExit {
                    cpu,
                    interrupt: network,
                },
            ),
            (
                at + 1,
                Record::InterruptEnter {
                    cpu,
                    interrupt: softirq,
                },
            ),
            (at + 2, Record::Packet { cpu, bytes }),
        ]);
        // The second one finds the task awake.
        if at != 150 {
            records.extend([
                (at + 2, waking(None, A, Context::Softirq)),
                (at + 2, wakeup(A)),
            ]);
        }
        records.push((
            at + 3,
            Record::InterruptExit {
                cpu,
                interrupt: softirq,
            },
        ));
        if at != 150 {
            let sleeps = at + 70;
            records.extend([
                (at + 3, switch(None, false, Some(A))),
                (sleeps, block(A, Cause::Socket)),
                (sleeps, switch(Some(A), false, None)),
            ]);
        }
    }
    records.sort_by_key(|(at, _)| *at);
    let taken = taken(&records);
    assert_eq!(
        row(&taken, "a"),
        "packet 33500ns packet 33500ns packet 67us"
    );
    let (text, _) = taken.scenario(Shape { cpus: 1 });
    assert!(text.contains("start = \"102000ns\""), "{text}");
    assert!(
        text.contains("gaps = \"\"\"\n50000ns 150000ns 170000ns\n"),
        "{text}"
    );
}

#[test]
fn what_runs_on_behalf_of_a_task_is_not_from_outside() {
    let softirq = Interrupt::NetworkSoftirq;
    let taken = taken(&[
        (0, switch(None, false, Some(A))),
        (10, enters(softirq)),
        (11, waking(Some(A), B, Context::Softirq)),
        (11, wakeup(B)),
        (12, exits(softirq)),
        (20, switch(Some(A), true, Some(B))),
        (30, switch(Some(B), false, Some(A))),
        (40, Record::Recalculate { cpu: CPU }),
    ]);
    assert_eq!(row(&taken, "a"), "11us wake1 29us");
    assert_eq!(row(&taken, "b"), "wait 10us");
}

/// Interrupts at these times, and the network softirqs that wake `B` while `A` runs: each begins
/// and ends within a microsecond.
fn interrupted(interrupts: &[(u64, Interrupt)]) -> Taken {
    let mut records = vec![(0, switch(None, false, Some(A)))];
    for (at, interrupt) in interrupts.iter().copied() {
        records.push((at, enters(interrupt)));
        if interrupt == Interrupt::NetworkSoftirq {
            let after = [(at, waking(Some(A), B, Context::Softirq)), (at, wakeup(B))];
            records.extend(after);
        }
        records.push((at + 1, exits(interrupt)));
        if interrupt == Interrupt::NetworkSoftirq {
            records.push((at + 3, switch(Some(A), true, Some(B))));
            records.push((at + 4, switch(Some(B), false, Some(A))));
        }
    }
    taken(&records)
}

#[test]
fn what_a_task_sends_after_an_interrupt_that_brings_no_packets_is_its_own() {
    use Interrupt::{Line, NetworkSoftirq, Softirq, Timer};
    let own = interrupted(&[(10, Timer), (11, Softirq(1)), (15, NetworkSoftirq)]);
    assert_eq!(row(&own, "b"), "wait 1us");
    let outside = interrupted(&[(10, Line(9)), (15, NetworkSoftirq)]);
    assert_eq!(row(&outside, "b"), "packet 1us");
}

#[test]
fn all_packets_of_an_interrupt_come_at_once() {
    use Interrupt::{Line, NetworkSoftirq, Timer};
    let records = [
        (0, switch(None, false, Some(A))),
        (10, enters(Line(9))),
        (11, exits(Line(9))),
        (12, enters(NetworkSoftirq)),
        (13, exits(NetworkSoftirq)),
        (17, enters(NetworkSoftirq)),
        (17, waking(Some(A), B, Context::Softirq)),
        (17, wakeup(B)),
        (18, exits(NetworkSoftirq)),
        (20, switch(Some(A), true, Some(B))),
        (30, switch(Some(B), false, Some(A))),
        (31, enters(Timer)),
    ];
    assert_eq!(row(&taken(&records), "b"), "wait 10us");
}

#[test]
fn a_task_that_several_wake_does_for_each_its_part() {
    let taken = taken(&[
        (0, switch(None, false, Some(A))),
        (10, switch(Some(A), false, Some(B))),
        (20, waking(Some(B), A, Context::Task)),
        (20, wakeup(A)),
        (30, switch(Some(B), false, Some(A))),
        (40, switch(Some(A), false, Some(C))),
        (50, waking(Some(C), A, Context::Task)),
        (50, wakeup(A)),
        (60, switch(Some(C), false, Some(A))),
        (90, switch(Some(A), false, None)),
    ]);
    assert_eq!(row(&taken, "a"), "10us wait<s1 10us wait<s2 30us");
    let (text, _) = taken.scenario(Shape { cpus: 1 });
    assert!(
        text.contains("senders = { s1 = \"b\", s2 = \"task_3\" }"),
        "{text}"
    );
}

#[test]
fn shares_of_a_recording_stand_beside_those_of_its_replay() {
    let mut meters = [A, B].map(|_| Meter::new(Instant::START, Instant(u64::MAX)));
    for (meter, task) in meters.iter_mut().zip([A, TaskId(9)]) {
        let role = Record::Role {
            task,
            table: 0,
            number: 0,
        };
        let records = [
            (0, role),
            (0, wakeup(task)),
            (10, switch(None, false, Some(task))),
            (60, switch(Some(task), false, None)),
            (100, Record::Recalculate { cpu: CPU }),
        ];
        for (at, record) in records {
            meter.see(us(at), &record);
        }
    }
    let [recorded, replayed] = meters;
    let lines = beside(recorded, replayed, &[(A, "a".to_owned())], 9);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].recorded, lines[0].replayed);
    assert_eq!(lines[0].recorded.share, 5_000);
    assert_eq!(lines[0].recorded.wait_p50_ns, Some(10_000));
}

/// Records as a damaged recorder might write them.
fn any_record() -> impl Strategy<Value = Record> {
    let task = || (0_u32..5).prop_map(TaskId);
    let cpu = || (0_u16..3).prop_map(CpuId);
    let interrupt = || {
        prop::sample::select(vec![
            Interrupt::Timer,
            Interrupt::Network,
            Interrupt::NetworkSoftirq,
            Interrupt::Softirq(1),
        ])
    };
    let context = prop::sample::select(Context::ALL.to_vec());
    let cause = prop::sample::select(Cause::ALL.to_vec());
    let text = prop::sample::select(vec!["a", "kworker/0:1", "migration/0", "\"\\", ""]);
    prop_oneof![
        (
            cpu(),
            prop::option::of(task()),
            any::<bool>(),
            prop::option::of(task())
        )
            .prop_map(|(cpu, prev, prev_runnable, next)| Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next
            }),
        (
            cpu(),
            prop::option::of(task()),
            task(),
            context,
            any::<bool>()
        )
            .prop_map(|(cpu, waker, task, context, synchronous)| Record::Waking {
                cpu,
                waker,
                task,
                context,
                synchronous
            }),
        (cpu(), task(), cpu()).prop_map(|(waker, task, target)| Record::Wakeup {
            waker,
            task,
            target
        }),
        (cpu(), task(), cause).prop_map(|(cpu, task, cause)| Record::Block {
            cpu,
            task,
            cause,
            state: State::Interruptible,
            object: None
        }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptEnter { cpu, interrupt }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptExit { cpu, interrupt }),
        cpu().prop_map(|cpu| Record::Packet { cpu, bytes: 9 }),
        (prop::option::of(task()), task(), text).prop_map(|(parent, child, name)| Record::Fork {
            parent,
            child,
            comm: Comm::new(name)
        }),
        (cpu(), task()).prop_map(|(cpu, task)| Record::Exit { cpu, task }),
        (task(), 0_u32..4).prop_map(|(task, group)| Record::Group { task, group }),
        (0_u32..4, 0_u32..4, any::<u32>()).prop_map(|(group, parent, weight)| Record::Cgroup {
            group,
            parent,
            weight,
            name: Comm::new("autogroup-1")
        }),
        (task(), any::<u64>()).prop_map(|(task, cpus)| Record::Affinity {
            task,
            from: CpuId(0),
            cpus
        }),
        (task(), any::<i8>()).prop_map(|(task, nice)| Record::Nice { task, nice }),
        (task(), any::<u32>(), 0_u32..3).prop_map(|(task, tid, tgid)| Record::Ids {
            task,
            tid,
            tgid
        }),
    ]
}

/// A task that waits for another more often than that posts to it, and the other.
fn never_posted(taken: &Taken) -> Option<(TaskId, TaskId)> {
    let mut left: BTreeMap<(TaskId, TaskId), i64> = BTreeMap::new();
    for (id, task) in taken.tasks.iter() {
        for moment in &task.row.moments {
            match moment {
                Moment::Post(to, _) => *left.entry((*to, id)).or_default() += 1,
                Moment::Await(_, Some(from)) => *left.entry((id, *from)).or_default() -= 1,
                _ => {}
            }
        }
    }
    left.into_iter()
        .find(|(_, left)| *left < 0)
        .map(|(pair, _)| pair)
}

proptest! {
    #[test]
    fn whatever_was_recorded_becomes_a_scenario_that_can_be_read(
        records in prop::collection::vec((0_u64..50, any_record()), 0..60), from in 0_u64..500
    ) {
        let mut taker = Taker::new(&Header::default(), us(from), Instant(u64::MAX));
        let mut at = 0;
        for (gap, record) in &records {
            at += gap;
            taker.see(us(at), record);
        }
        let taken = taker.finish();
        prop_assert_eq!(never_posted(&taken), None);
        let (text, _) = taken.scenario(Shape { cpus: 2 });
        if taken.tasks() > 0 {
            let read = Scenario::read("it.toml", &text);
            prop_assert!(read.is_ok(), "{}\n{text}", read.unwrap_err());
        }
    }
}
