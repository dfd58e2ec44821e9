//! When a program is notified that a task leaves it (`ops.dequeue`), and with which flags, against
//! task_leave_custody() of kernel/sched/ext/ext.c of Linux 7.3, and ops_dequeue() of 6.18.

use warmq_kernel::*;
use warmq_units::Instant;

use crate::stage::*;

const CUSTODY: &[u8] = include_bytes!("../programs/custody.bpf.o");

const SHARED: i128 = 0;
const GLOBAL: i128 = 1 << 63 | 1;
const LOCAL: i128 = 1 << 63 | 2;
/// Into the list that the program keeps.
const NOWHERE: i128 = (1 << 64) - 1;

/// How often the program has heard of what when so many tasks have been switched to, on one CPU.
fn counted(
    series: &str,
    most: i128,
    variables: &[(&str, i128)],
    workload: &dyn Workload,
) -> String {
    let variables = [&[("most", most)], variables].concat();
    let loaded = load(CUSTODY, series, &variables);
    said(&play(loaded, 1, 1_000, workload))
}

/// A task that leaves a queue of the program's, or its list, for one of the kernel's has left the
/// program, once each time that it runs. One that goes to the kernel's queue at once never was the
/// program's. 6.18 says nothing of a dispatch.
#[test]
fn a_task_that_is_dispatched_has_left_the_program() {
    let table = [
        ("its own queue", SHARED, LOCAL, 10),
        ("its list, the CPU's queue", NOWHERE, LOCAL, 10),
        ("its list, the global queue", NOWHERE, GLOBAL, 10),
        ("its list, its own queue", NOWHERE, SHARED, 10),
        ("the CPU's queue", LOCAL, LOCAL, 0),
        ("the global queue", GLOBAL, LOCAL, 0),
    ];
    for (what, first, then, dispatched) in table {
        for (series, dispatched) in [("7.3", dispatched), ("6.18", 0)] {
            let variables = [("first", first), ("then", then)];
            assert_eq!(
                counted(series, 10, &variables, &sleeper),
                format!("{dispatched} dispatched, 0 slept, 0 changed, 0 old, 0 other, 0 back"),
                "{what}, {series}"
            );
        }
    }
}

/// Two that compute, of which the one that waits is changed after 2 ms: on the way it leaves the
/// program, if that has it. 6.18 says so only if it is in no queue, and not that it is a change.
#[test]
fn a_waiting_task_that_changes_leaves_the_program_with_a_flag() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        let waits = boot.task(called("b"), |task: Task| async move {
            task.compute_for(ms(100)).await;
        })?;
        boot.operator(Instant::START + ms(2), move |operator| async move {
            operator.change(Change::Nice(waits, 5)).await;
        });
        Ok(())
    };
    let table = [
        (
            "7.3",
            SHARED,
            "3 dispatched, 0 slept, 1 changed, 0 old, 0 other, 0 back",
        ),
        (
            "7.3",
            NOWHERE,
            "3 dispatched, 0 slept, 1 changed, 0 old, 0 other, 0 back",
        ),
        (
            "7.3",
            LOCAL,
            "0 dispatched, 0 slept, 0 changed, 0 old, 0 other, 0 back",
        ),
        (
            "6.18",
            SHARED,
            "0 dispatched, 0 slept, 0 changed, 0 old, 0 other, 0 back",
        ),
        (
            "6.18",
            NOWHERE,
            "0 dispatched, 0 slept, 0 changed, 1 old, 0 other, 0 back",
        ),
        (
            "6.18",
            LOCAL,
            "0 dispatched, 0 slept, 0 changed, 0 old, 0 other, 0 back",
        ),
    ];
    for (series, first, expected) in table {
        let counted = counted(series, 3, &[("first", first)], &workload);
        assert_eq!(counted, expected, "{first:#x}, {series}");
    }
}

/// A task that goes back from a queue of the program's stays the program's meanwhile, and leaves it
/// when that sends it to its CPU (`reenq_user()`): at the first tick the second task does.
#[test]
fn a_task_that_goes_back_to_the_program_stays_its_own_until_it_is_dispatched() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        hog(boot, called("b"))
    };
    for again in [0, 1] {
        let expected = format!("2 dispatched, 0 slept, 0 changed, 0 old, 0 other, {again} back");
        assert_eq!(counted("7.3", 2, &[("again", again)], &workload), expected);
    }
}
