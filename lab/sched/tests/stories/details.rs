//! Records in detail: what they tell of a scenario, and that they change nothing.

use proptest::prelude::*;
use warmq_kernel::{Boot, Throttling};
use warmq_trace::{Cause, Checker, Digest, Observer, Record};
use warmq_units::{Instant, TaskId};

use crate::compiled::schedulers;
use crate::laws::cases;
use crate::stage::*;
use crate::told::{Kept, told, told_on};

/// Who waits for what, and for which object.
fn blocks(text: &str, ticks: u64) -> Vec<String> {
    told(text, ticks, |record| match *record {
        Record::Block {
            task,
            cause,
            state,
            object,
            ..
        } => Some(format!("{task} {cause:?} {object:?} {state:?}")),
        _ => None,
    })
}

#[test]
fn a_task_that_sleeps_says_for_which_object_of_the_scenario() {
    // Objects are counted over all tables, in the order of the classes: mutexes, conditions,
    // semaphores, barriers, queues, pipes, streams, datagrams.
    let text = r#"
        [mutex.m]
        count = 2
        [semaphore.s]
        [barrier.b]
        tasks = 2
        [queue.q]
        holds = 1
        [pipe.p]
        [stream.s2]
        [datagram.d]
        [task.waiter]
        times = 1
        body = [
          { sleep = "1ms" },
          { lock = "m[1]" }, { unlock = "m[1]" },
          { lower = "s" },
          { barrier = "b" },
          { take = "q" },
          { receive = "p", bytes = "1B" },
          { receive = "s2.far", bytes = "1B" },
          { receive = "d" },
        ]
        [task.helper]
        times = 1
        body = [
          { lock = "m[1]" }, { sleep = "5ms" }, { unlock = "m[1]" },
          { sleep = "10ms" }, { raise = "s" },
          { sleep = "10ms" }, { barrier = "b" },
          { sleep = "10ms" }, { put = "q" },
          { sleep = "10ms" }, { send = "p", bytes = "1B" },
          { sleep = "10ms" }, { send = "s2.near", bytes = "1B" },
          { sleep = "10ms" }, { send = "d", bytes = "1B" },
        ]
    "#;
    let of_waiter = blocks(text, 12).into_iter();
    let of_waiter = of_waiter.filter(|line| line.contains("task0"));
    let causes: Vec<String> = of_waiter
        .map(|line| line.split_once("task0 ").expect("a task").1.to_owned())
        .collect();
    let wanted = [
        "Timer None Interruptible",
        "Mutex Some(1) Interruptible",
        "Semaphore Some(2) Interruptible",
        "Barrier Some(3) Interruptible",
        "Queue Some(4) Interruptible",
        "Pipe Some(5) Interruptible",
        "Socket Some(6) Interruptible",
        "Socket Some(7) Interruptible",
    ];
    assert_eq!(causes, wanted);
}

#[test]
fn whatever_holds_a_task_is_the_reason_for_which_it_leaves() {
    let text = r#"
        [group.g]
        quota = "10ms"
        period = "40ms"
        [task.t]
        group = "g"
        body = [{ run = "10ms" }]
        [[change]]
        at = "45ms"
        task = "t"
        set = { stop = true }
        [[change]]
        at = "55ms"
        task = "t"
        set = { continue = true }
        [[change]]
        at = "57ms"
        group = "g"
        set = { freeze = true }
    "#;
    let wanted = [
        "10 task0 Quota None Runnable",
        "45 task0 Continue None Stopped",
        "57 task0 Thaw None Interruptible",
    ];
    assert_eq!(blocks(text, 20), wanted);
}

/// A sleeper that is woken at 25 ms, when a hog has used up the quota of their group, and the
/// group's next period begins at 40 ms: what is recorded of it, in milliseconds.
fn woken_out_of_quota(throttling: Throttling) -> Vec<String> {
    let text = r#"
        [group.g]
        quota = "10ms"
        period = "40ms"
        [task.hog]
        group = "g"
        start = "1ms"
        body = [{ run = "10ms" }]
        [task.sleeper]
        group = "g"
        body = [{ sleep = "25ms" }, { run = "1ms" }]
    "#;
    let mut stage = stage(1);
    stage.settings.throttling = throttling;
    let sleeper = TaskId(1);
    let told = told_on(stage, text, 5, |record| {
        let what = match *record {
            Record::Wakeup { task, .. } if task == sleeper => "woken",
            Record::Block {
                task,
                cause: Cause::Quota,
                ..
            } if task == sleeper => "throttled",
            Record::Switch { next, .. } if next == Some(sleeper) => "runs",
            _ => return None,
        };
        Some(what.to_owned())
    });
    let woken = told.iter().position(|what| what.starts_with("25"));
    told[woken.expect("it is woken")..].to_vec()
}

#[test]
fn who_is_woken_out_of_quota_runs_to_user_mode_or_waits_in_its_queue() {
    assert_eq!(
        woken_out_of_quota(Throttling::Tasks),
        ["25 woken", "25 runs", "25 throttled", "40 woken", "40 runs"]
    );
    assert_eq!(
        woken_out_of_quota(Throttling::Groups),
        ["25 woken", "25 throttled", "40 woken", "40 runs"]
    );
}

#[test]
fn what_a_task_is_like_is_told_at_its_birth_and_when_it_changes() {
    let text = r#"
        [group.g]
        [task.plain]
        times = 1
        body = [{ run = "10ms" }]
        [task.t]
        nice = 3
        policy = "rr 7"
        slice = "2ms"
        group = "g"
        fragment = 5
        body = [{ run = "10ms" }]
        [[change]]
        at = "20ms"
        task = "t"
        set = { cpus = "cpu 0", nice = -1, policy = "batch", slice = "4ms", fragment = "none" }
    "#;
    let attributes = told(text, 5, |record| match *record {
        Record::Nice { task, nice } => Some(format!("{task} nice {nice}")),
        Record::Policy {
            task,
            policy,
            priority,
        } => Some(format!("{task} {policy:?} {priority}")),
        Record::Slice { task, slice } => Some(format!("{task} slice {slice}")),
        Record::Group { task, group } => Some(format!("{task} group {group}")),
        Record::Fragment { task, fragment } => Some(format!("{task} {fragment:?}")),
        Record::Affinity { task, cpus, .. } => Some(format!("{task} on {cpus:b}")),
        _ => None,
    });
    let wanted = [
        "0 task1 nice 3",
        "0 task1 RoundRobin 7",
        "0 task1 slice 2.000 ms",
        "0 task1 group 1",
        "0 task1 Some((1, 5))",
        "20 task1 on 1",
        "20 task1 nice -1",
        "20 task1 Batch 0",
        "20 task1 slice 4.000 ms",
        "20 task1 None",
    ];
    assert_eq!(attributes, wanted);
}

#[test]
fn packets_are_polled_received_and_dropped() {
    let text = r#"
        [datagram.d]
        buffer = "1KB"
        [source.outside]
        to = "d"
        bytes = "64B"
        rate = "100 per s"
        burst = 5
        packets = 5
        [task.receiver]
        times = 1
        start = "30ms"
        body = [{ repeat = 2, body = [{ receive = "d" }] }]
    "#;
    let network = told(text, 5, |record| match *record {
        Record::Packet { bytes, .. } => Some(format!("packet {bytes}")),
        Record::Drop { reason, .. } => Some(format!("drop {reason}")),
        Record::Poll {
            packets, budget, ..
        } => Some(format!("poll {packets} of {budget}")),
        _ => None,
    });
    // Each packet is polled by itself, as the next one takes longer over the link. Two fit: a
    // datagram of 64 bytes holds 768.
    let one = ["0 packet 64", "0 poll 1 of 300"];
    let dropped = ["0 packet 64", "0 drop 0", "0 poll 1 of 300"];
    let wanted: Vec<&str> = one
        .into_iter()
        .chain(one)
        .chain(dropped)
        .chain(dropped)
        .chain(dropped)
        .collect();
    assert_eq!(network, wanted);
}

proptest! {
    #![proptest_config(config(40))]

    /// The invariants that only records in detail can break are checked here.
    #[test]
    fn a_run_is_the_same_with_and_without_details(case in cases()) {
        for entry in schedulers() {
            let workload = |boot: &mut Boot<'_>| -> Started {
                case.script.start_with(boot)?;
                Ok(())
            };
            let set = [case.set(entry.name)];
            let plain = case.stage().plays_before(Digest::new(), scheduler(entry.name, &set), 500, workload);
            let patience = warmq_units::Duration(u64::MAX);
            let promise = warmq_trace::Promise { patience, ..Default::default() };
            let checker = Checker::of_a_run().promised(promise);
            let watch = ((checker, Digest::new()), Kept::default());
            let (_, told) = case.stage().plays_before(watch, scheduler(entry.name, &set), 500, workload);
            let now = told.now();
            let ((checker, digest), kept) = told.into_observer();
            prop_assert_eq!(checker.finish(now), Ok(()), "{}", entry.name);
            prop_assert_eq!(plain.1.into_observer(), digest.clone(), "{}", entry.name);
            let details = kept.0.iter().filter(|(_, record)| record.is_detail()).count() as u64;
            prop_assert_eq!(digest.seen() + details, kept.0.len() as u64);
            prop_assert!(details > 0);
        }
    }
}

/// Nobody who only measures makes the engine record details.
#[test]
fn meters_want_no_details() {
    fn wants<O: Observer>(_: &O) -> bool {
        O::DETAIL
    }
    let names = warmq_trace::Names::default();
    let play = warmq_metrics::PlayMeter::starting_at(names, Instant::START);
    assert!(!wants(&(play, (Checker::of_a_run(), Digest::new()))));
    assert!(wants(&(Digest::new(), Some(Kept::default()))));
}
