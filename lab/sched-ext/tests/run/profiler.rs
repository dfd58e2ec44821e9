//! What is counted of a program, and that counting changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use warmq_kernel::*;
use warmq_sched_ext::{Expenses, Profiler};
use warmq_units::{Cycles, Duration, Instant};

use crate::stage::*;

const EXPENSES: Expenses = Expenses {
    instructions: 37,
    kfunc: 21,
    helper: 19,
    callback: 41,
};

/// Nothing costs anything but instructions.
fn costs() -> Costs {
    let mut table = Costs::free().table().clone();
    let cost = table.get_mut("hundred_instructions").expect("a cost");
    cost.cycles = Cycles(40);
    Costs::new(table)
}

/// Four that compute and sleep, on two CPUs.
fn workload(boot: &mut Boot<'_>) -> Started {
    for _ in 0..4 {
        boot.task(called("a"), |task: Task| async move {
            loop {
                task.compute_for(ms(1)).await;
                task.sleep(ms(1)).await;
            }
        })?;
    }
    Ok(())
}

fn played(profiler: Option<&Profiler>) -> Played {
    let stage = Stage {
        expenses: EXPENSES,
        costs: costs(),
        caches: true,
        profiler: profiler.cloned(),
        ..Stage::new(load(FAULTS, "7.3", &[]), 2)
    };
    stage.play(200, &workload)
}

fn profile(from: u64) -> Profiler {
    let profiler = Profiler::starting_at(Instant::START + ms(from));
    played(Some(&profiler));
    profiler
}

/// All that a profiler says, as text.
fn said(profiler: &Profiler) -> String {
    let mut said = String::new();
    profiler.callbacks(|name, times| said += &format!("{name} {times}\n"));
    profiler.functions(|entered| said += &format!("{entered:?}\n"));
    profiler.instructions(|spent| said += &format!("{spent:?}\n"));
    said
}

#[test]
fn the_times_of_all_instructions_add_up_to_that_of_all_callbacks() {
    let profiler = profile(0);
    let mut sum = Duration::ZERO;
    profiler.instructions(|spent| sum += spent.time);
    assert_eq!(sum, profiler.time());
    assert!(sum > Duration::ZERO);
}

#[test]
fn counting_changes_nothing_and_is_the_same_twice() {
    let profiler = profile(0);
    assert_eq!(played(None).digest, played(Some(&profiler)).digest);
    assert_eq!(said(&profile(0)), said(&profile(0)));
}

/// select_task_rq_scx() holds no lock of a run queue; enqueue_task_scx() and the pick do. (The
/// first tasks are queued before the machine runs, under no lock.)
#[test]
fn it_knows_callbacks_calls_lines_and_locks() {
    let profiler = profile(10);
    let mut times = BTreeMap::new();
    profiler.callbacks(|name, count| *times.entry(name.to_owned()).or_insert(0) += count);
    assert!(
        times["enqueue"] > 200 && times["dispatch"] > 200,
        "{times:?}"
    );
    let mut inserts = 0;
    let (mut locked, mut free) = (BTreeSet::new(), BTreeSet::new());
    profiler.instructions(|spent| {
        let callbacks = if spent.locked { &mut locked } else { &mut free };
        callbacks.insert(spent.callback.to_owned());
        if spent.calls.as_deref() == Some("scx_bpf_dsq_insert") {
            inserts += spent.ran;
            assert_eq!(spent.function, "faults_enqueue");
            assert!(
                spent
                    .line
                    .is_some_and(|line| line.text.contains("scx_bpf_dsq_insert"))
            );
        }
    });
    assert_eq!(inserts, times["enqueue"]);
    assert!(
        locked.contains("enqueue") && locked.contains("dispatch"),
        "{locked:?}"
    );
    assert!(
        !free.contains("enqueue") && free.contains("select_cpu"),
        "{free:?}"
    );
}

/// Before it begins there is the warm-up.
#[test]
fn it_counts_from_its_beginning_on() {
    let calls = |from| {
        let mut calls = 0;
        profile(from).callbacks(|_, times| calls += times);
        calls
    };
    let (all, half, none) = (calls(0), calls(100), calls(1_000));
    assert!(
        none == 0 && half > all / 3 && half < 2 * all / 3,
        "{all} {half}"
    );
}

/// The lines that the caches of a CPU do not have come from the other one's, or from memory.
#[test]
fn lines_are_found_somewhere() {
    let (mut all, mut others) = (0, 0);
    profile(0).instructions(|spent| {
        all += spent.accesses.total();
        others += spent.accesses.by_cache + spent.accesses.by_memory;
    });
    assert!(all > others && others > 0, "{others} of {all}");
}

/// Without caches and with no other cost, the time of a call's line is that of the call: 195
/// instructions of 7.3 for an insert, 330 for a move to the own queue.
#[test]
fn calls_take_what_was_measured() {
    let profiler = Profiler::starting_at(Instant::START);
    let stage = Stage {
        costs: costs(),
        profiler: Some(profiler.clone()),
        ..Stage::new(load(FAULTS, "7.3", &[]), 2)
    };
    stage.play(100, &workload);
    let mut each = BTreeMap::new();
    profiler.instructions(|spent| {
        if let Some(call) = spent.calls {
            each.insert(call, spent.time.0 / spent.ran);
        }
    });
    let (insert, take) = (
        each["scx_bpf_dsq_insert"],
        each["scx_bpf_dsq_move_to_local"],
    );
    assert!(
        insert > 0 && (insert * 330).abs_diff(take * 195) < 1_000,
        "{each:?}"
    );
}
