//! Single invariants: what breaks them, and what nearly does.

use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use super::invariant::Invariant;
use super::switch;
use crate::checker::{Breach, Checker, Promise, Queues, Violation};
use crate::{Cause, Comm, Interrupt, Observer, Record, State};

fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

/// The verdict at 100 ms on a task forked at the start, followed by `records`.
fn one_task(records: &[(u64, Record)]) -> Result<(), Violation> {
    judged(Queues::PerCpu, records, ms(100))
}

/// The same for a scheduler that promises to look into `queues`, judged at `end`.
fn judged(queues: Queues, records: &[(u64, Record)], end: Instant) -> Result<(), Violation> {
    let mut checker = Checker::of_a_run().promised(Promise {
        queues,
        ..Promise::default()
    });
    checker.see(
        ms(0),
        &Record::Fork {
            parent: None,
            child: A,
            comm: Comm::new("A"),
        },
    );
    records
        .iter()
        .for_each(|(at, record)| checker.see(ms(*at), record));
    checker.finish(end)
}

const A: TaskId = TaskId(0);
const CPU: CpuId = CpuId(0);

fn woken(target: CpuId) -> Record {
    Record::Wakeup {
        waker: CPU,
        task: A,
        target,
    }
}

#[test]
fn a_wakeup_is_lost_if_its_cpu_idles_to_the_end() {
    let violation = one_task(&[(30, woken(CPU))]).unwrap_err();
    assert_eq!((violation.task, violation.cpu), (Some(A), Some(CPU)));
    assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(30) });
    assert_eq!(
        violation.to_string(),
        "100.000 ms (record 2): task0 on cpu0: the task has waited since \
         30.000 ms while the CPU, which could run it, was idle"
    );

    let preempted = [
        (10, woken(CPU)),
        (11, switch(CPU, None, Some(A))),
        (20, switch(CPU, Some(A), None)),
    ];
    let violation = one_task(&preempted).unwrap_err();
    assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(20) });

    let moved = [
        (10, woken(CPU)),
        (
            20,
            Record::Migrate {
                task: A,
                from: CPU,
                to: CpuId(1),
            },
        ),
    ];
    let violation = one_task(&moved).unwrap_err();
    assert_eq!((violation.cpu, violation.record), (Some(CpuId(1)), 3));
}

#[test]
fn a_wakeup_is_not_lost_if_it_is_fresh_or_queued_or_run() {
    assert_eq!(
        one_task(&[(80, woken(CPU))]),
        Ok(()),
        "the patience is not over"
    );
    assert_eq!(
        one_task(&[(30, woken(CPU)), (31, switch(CPU, None, Some(A)))]),
        Ok(())
    );
    let slept = Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable: false,
        next: None,
    };
    assert_eq!(
        one_task(&[
            (30, woken(CPU)),
            (31, switch(CPU, None, Some(A))),
            (32, slept)
        ]),
        Ok(())
    );

    let (other, comm) = (TaskId(1), Comm::new("B"));
    let busy = [
        (
            1,
            Record::Fork {
                parent: None,
                child: other,
                comm,
            },
        ),
        (
            1,
            Record::Wakeup {
                waker: CPU,
                task: other,
                target: CPU,
            },
        ),
        (1, switch(CPU, None, Some(other))),
        (2, woken(CPU)),
    ];
    assert_eq!(one_task(&busy), Ok(()), "queued behind another");
}

const OTHER: CpuId = CpuId(1);

fn interrupt(cpu: CpuId, interrupt: Interrupt) -> [Record; 2] {
    [
        Record::InterruptEnter { cpu, interrupt },
        Record::InterruptExit { cpu, interrupt },
    ]
}

fn affinity(cpus: u64) -> Record {
    Record::Affinity {
        task: A,
        from: CpuId(0),
        cpus,
    }
}

#[test]
fn a_cpu_that_idled_beside_a_waiting_task_is_found_when_it_stops() {
    for ends in [
        switch(CPU, None, Some(A)),
        Record::Migrate {
            task: A,
            from: CPU,
            to: OTHER,
        },
        affinity(2),
        Record::Hotplug {
            cpu: CPU,
            online: false,
        },
    ] {
        let records = [(10, woken(CPU)), (30, ends)];
        assert_eq!(judged(Queues::PerCpu, &records, ms(30)), Ok(()), "in time");
        let violation = one_task(&[(10, woken(CPU)), (31, ends)]).unwrap_err();
        assert_eq!((violation.at, violation.record), (ms(31), 2), "{ends:?}");
        assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(10) });
        assert_eq!(violation.breach.invariant(), Invariant::WorkConserving);
    }
}

#[test]
fn where_a_queue_is_shared_no_cpu_may_idle_beside_it() {
    let [named, _] = interrupt(OTHER, Interrupt::Timer);
    let waits = |more: &[(u64, Record)]| {
        let start = [(1, named), (10, woken(CPU))];
        let end = [(40, switch(CPU, None, Some(A)))];
        let busy = Record::Switch {
            cpu: CPU,
            prev: None,
            prev_runnable: false,
            next: Some(TaskId(1)),
        };
        let comm = Comm::new("B");
        let (parent, child) = (None, TaskId(1));
        let before = [
            (
                0,
                Record::Fork {
                    parent,
                    child,
                    comm,
                },
            ),
            (
                0,
                Record::Wakeup {
                    waker: CPU,
                    task: child,
                    target: CPU,
                },
            ),
            (0, busy),
        ];
        let end = end.map(|(at, _)| (at, switch(CPU, Some(child), Some(A))));
        [&before[..], &start, more, &end].concat()
    };
    let per_cpu = judged(Queues::PerCpu, &waits(&[]), ms(40));
    assert_eq!(per_cpu, Ok(()), "queued behind another");
    let shared = |records: &[_]| judged(Queues::Shared, records, ms(40));
    let violation = shared(&waits(&[])).unwrap_err();
    assert_eq!((violation.at, violation.cpu), (ms(40), Some(OTHER)));
    for excuse in [
        affinity(0b01),
        Record::Hotplug {
            cpu: OTHER,
            online: false,
        },
    ] {
        let excused = waits(&[(11, excuse)]);
        assert_eq!(shared(&excused), Ok(()), "{excuse:?}");
    }
    let back = Record::Hotplug {
        cpu: OTHER,
        online: true,
    };
    let violation = shared(&waits(&[(15, back)])).unwrap_err();
    assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(15) });
}

/// The release of a lock that was waited for and held for these times, in ms.
fn lock(cpu: CpuId, waited: u64, held: u64) -> Record {
    Record::Lock {
        cpu,
        lock: LockId(3),
        waited: Duration::from_ms(waited),
        held: Duration::from_ms(held),
    }
}

#[test]
fn a_lock_has_one_holder_at_a_time() {
    let invariant =
        |records: &[(u64, Record)]| one_task(records).map_err(|violation| violation.breach);
    let first = (20, lock(CPU, 0, 5));
    assert_eq!(invariant(&[first, (30, lock(OTHER, 8, 10))]), Ok(()));
    assert_eq!(
        invariant(&[first, (30, lock(OTHER, 8, 11))]),
        Err(Breach::HeldByTwo {
            lock: LockId(3),
            released: ms(20)
        })
    );
}

#[test]
fn nobody_switches_from_the_request_to_the_release() {
    let invariant = |waited, held| {
        let records = [
            (1, woken(CPU)),
            (10, switch(CPU, None, Some(A))),
            (20, lock(CPU, waited, held)),
        ];
        one_task(&records).map_err(|violation| violation.breach.invariant())
    };
    assert_eq!(invariant(3, 7), Ok(()));
    assert_eq!(invariant(0, 11), Err(Invariant::NoSwitchUnderLock));
    assert_eq!(invariant(4, 7), Err(Invariant::NoSwitchUnderLock));
}

#[test]
fn a_reschedule_interrupt_is_taken_once_and_soon() {
    let sent = Record::RescheduleSent {
        from: OTHER,
        to: CPU,
    };
    let [enter, exit] = interrupt(CPU, Interrupt::Reschedule);
    let invariant =
        |records: &[(u64, Record)]| one_task(records).map_err(|violation| violation.breach);
    let taken = [(10, sent), (11, sent), (12, enter), (13, exit)];
    assert_eq!(invariant(&taken), Ok(()), "two merge");
    let twice = [&taken[..], &[(14, enter)]].concat();
    assert_eq!(invariant(&twice), Err(Breach::NobodySent));
    let late = Err(Breach::NotTaken { sent: ms(10) });
    assert_eq!(invariant(&[(10, sent), (31, enter)]), late, "late");
    assert_eq!(invariant(&[(10, sent)]), late, "never");
    let mut recording = Checker::of_a_recording();
    for record in [enter, exit, sent, sent, enter, exit, enter] {
        recording.see(ms(1), &record);
    }
    assert_eq!(recording.violation(), None, "no record shows all");
}

#[test]
fn the_dead_are_not_runnable() {
    let exit = Record::Exit { cpu: CPU, task: A };
    let start = [(1, woken(CPU)), (1, switch(CPU, None, Some(A))), (2, exit)];
    let leaves = |prev_runnable| Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable,
        next: None,
    };
    assert_eq!(
        one_task(&[&start[..], &[(3, leaves(false))]].concat()),
        Ok(())
    );
    let violation = one_task(&[&start[..], &[(3, leaves(true))]].concat()).unwrap_err();
    assert_eq!(violation.breach, Breach::RunnableAfterExit);
    let goes_on = Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable: false,
        next: Some(A),
    };
    let violation = one_task(&[&start[..], &[(3, goes_on)]].concat()).unwrap_err();
    assert_eq!(violation.breach, Breach::NotAlive);
}

#[test]
fn only_the_first_violation_is_kept() {
    let stranger = |task| switch(CPU, None, Some(TaskId(task)));
    let violation = one_task(&[(5, stranger(7)), (6, stranger(8))]).unwrap_err();
    assert_eq!((violation.at, violation.task), (ms(5), Some(TaskId(7))));
}

fn block(state: State) -> Record {
    Record::Block {
        cpu: CPU,
        task: A,
        cause: Cause::Unknown,
        state,
        object: None,
    }
}

fn leaves(prev_runnable: bool) -> Record {
    Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable,
        next: None,
    }
}

#[test]
fn a_task_that_blocks_leaves_asleep_unless_it_was_woken_meanwhile() {
    let runs = [(10, woken(CPU)), (10, switch(CPU, None, Some(A)))];
    let judged = |rest: &[(u64, Record)]| one_task(&[&runs[..], rest].concat());
    let sleeps = (20, block(State::Interruptible));
    assert_eq!(judged(&[sleeps, (20, leaves(false))]), Ok(()));
    let broken = judged(&[sleeps, (20, leaves(true))]).unwrap_err();
    assert_eq!(broken.breach, Breach::RunnableAfterBlock);
    let again = (91, switch(CPU, None, Some(A)));
    let woken = (90, woken(CPU));
    assert_eq!(judged(&[sleeps, woken, (91, leaves(true)), again]), Ok(()));
    // A throttled task stays runnable.
    let throttled = (90, block(State::Runnable));
    assert_eq!(judged(&[throttled, (90, leaves(true)), again]), Ok(()));
    // So it does if it waits, for no CPU then, until it is let go.
    let waits = (200, woken.1);
    let leaves_its_queue = (200, block(State::Runnable));
    let gone = [sleeps, (20, leaves(false)), waits, leaves_its_queue];
    assert_eq!(judged(&gone), Ok(()));
    let runs_all_the_same = judged(&[&gone[..], &[(300, switch(CPU, None, Some(A)))]].concat());
    assert_eq!(runs_all_the_same.unwrap_err().breach, Breach::Asleep);
}

#[test]
fn a_stopped_task_does_not_run_before_it_is_woken() {
    let story = [
        (10, woken(CPU)),
        (10, switch(CPU, None, Some(A))),
        (20, block(State::Stopped)),
        (20, leaves(false)),
        (30, switch(CPU, None, Some(A))),
    ];
    assert_eq!(one_task(&story).unwrap_err().breach, Breach::Asleep);
}

#[test]
fn a_cpu_leaves_its_idle_state_before_it_switches() {
    let idle = |state| Record::Idle { cpu: CPU, state };
    let story = |left: Option<(u64, Record)>| {
        let records = [(1, idle(Some(2))), (10, woken(CPU))].into_iter();
        let records = records.chain(left);
        let run = records.chain([(11, switch(CPU, None, Some(A)))]);
        one_task(&run.collect::<Vec<_>>())
    };
    assert_eq!(story(None).unwrap_err().breach, Breach::SwitchInIdle);
    assert_eq!(story(Some((11, idle(None)))), Ok(()));
    let (cpu, events) = (CPU, 3);
    assert_eq!(story(Some((11, Record::Lost { cpu, events }))), Ok(()));
}

#[test]
fn after_a_gap_what_is_known_again_is_checked_again() {
    let (cpu, events) = (CPU, 3);
    let lost = [
        (10, woken(CPU)),
        (10, switch(CPU, None, Some(A))),
        (11, Record::Lost { cpu, events }),
        // Where it is now was not recorded.
        (20, switch(OTHER, None, Some(A))),
        (30, switch(CPU, None, None)),
    ];
    assert_eq!(one_task(&lost), Ok(()));
    let twice = [&lost[..], &[(31, switch(CPU, None, Some(A)))]].concat();
    let breach = Breach::OnTwoCpus { other: OTHER };
    assert_eq!(one_task(&twice).unwrap_err().breach, breach);
}

#[test]
fn spans_that_end_began_and_counters_do_not_go_back() {
    let (task, span) = (A, 4);
    let begins = |number| Record::SpanBegin { task, span, number };
    let ends = |number| Record::SpanEnd { task, span, number };
    // One that ended may end again: only its name and number are known.
    let fine = [(1, begins(7)), (2, ends(7)), (3, ends(7))];
    assert_eq!(one_task(&fine), Ok(()));
    let violation = one_task(&[(1, begins(7)), (2, ends(8))]).unwrap_err();
    let (number, invariant) = (8, violation.breach.invariant());
    assert_eq!(violation.breach, Breach::NeverBegan { span, number });
    assert_eq!(invariant, Invariant::SpansBegin);

    let count = |counter, total| Record::Count { counter, total };
    assert_eq!(
        one_task(&[(1, count(0, 5)), (2, count(1, 3)), (3, count(0, 5))]),
        Ok(())
    );
    let violation = one_task(&[(1, count(0, 5)), (2, count(0, 4))]).unwrap_err();
    let (counter, before) = (0, 5);
    assert_eq!(violation.breach, Breach::CountedMore { counter, before });

    let mut recording = Checker::of_a_recording();
    recording.see(ms(1), &ends(8));
    assert_eq!(recording.finish(ms(2)), Ok(()));
}
