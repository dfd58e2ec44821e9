//! The order of callbacks, against what kernel/sched/ext/ext.c of Linux 7.3 says.
//!
//! I init_task, E enable, W set_weight, S select_cpu, R runnable, Q enqueue (w wakeup, r restored,
//! l last, a again), d dispatch, + running, - stopping (1: still runnable), q quiescent, D dequeue
//! (c: of a change), t tick, M set_cpumask, x disable, X exit_task.

use warmq_kernel::*;
use warmq_machine::OutOfMemory;
use warmq_units::{CpuId, CpuSet, Duration, Instant, TaskId};

use crate::stage::*;

/// What an object that writes down its callbacks has written when `most` have come.
fn written(most: i128, cpus: usize, workload: &dyn Workload) -> String {
    let loaded = load(ORDER, "7.3", &[("most", most)]);
    said(&play(loaded, cpus, 1_000, workload))
}

/// enqueue_task_scx(), pick_task_scx(), set_next_task_scx(); then dequeue_task_scx() calls stopping
/// before quiescent, and a CPU that has nothing else asks once more before it idles.
#[test]
fn a_task_that_sleeps_and_wakes() {
    assert_eq!(
        written(20, 1, &sleeper),
        "I E W R Q d D + -0 q d R Qw d D + t -0 q d"
    );
}

/// Of two CPUs, select_cpu comes first when it is woken, but not for a task that may run on one
/// only. (At the start each CPU looks for something.)
#[test]
fn a_task_with_a_choice_is_asked_for_its_cpu() {
    let sleeper = |spec: fn() -> TaskSpec| {
        move |boot: &mut Boot<'_>| -> Started {
            boot.task(spec(), |task: Task| async move {
                loop {
                    task.compute_for(ms(1)).await;
                    task.sleep(ms(2)).await;
                }
            })?;
            Ok(())
        }
    };
    let free = sleeper(|| called("a"));
    assert_eq!(written(15, 2, &free), "I E W R Q d D + d -0 q d S R Qw");
    let bound = sleeper(|| called("a").bound([CpuId(1)]));
    assert_eq!(written(14, 2, &bound), "I E W R Q d d D + -0 q d R Qw");
}

/// A slice of 5 ms ends at the tick of 8 ms: dispatch_one() finds the other, put_prev_task_scx()
/// enqueues who ran, after its stopping, and set_next_task_scx() comes last.
#[test]
fn two_that_compute_take_turns_of_a_slice() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        hog(boot, called("b"))
    };
    assert_eq!(
        written(25, 1, &workload),
        "I E W R Q I E W R Q d D + t t d D -1 Q + t t d D -1"
    );
}

/// One alone goes on, with a new slice and no callback but dispatch: SCX_DSP_PREV.
#[test]
fn one_that_computes_alone_goes_on() {
    let workload = |boot: &mut Boot<'_>| hog(boot, called("a"));
    assert_eq!(written(15, 1, &workload), "I E W R Q d D + t t d t t t t");
}

/// do_set_cpus_allowed() takes a waiting task off its queue and puts it back, and so does
/// set_user_nice(). One in a queue of the program's is in its custody: dequeue. If it may no longer
/// run where it waits, move_queued_task() takes it elsewhere, as a task that is runnable meanwhile.
#[test]
fn a_waiting_task_that_changes_is_queued_again() {
    let affinity = |task| Change::Affinity(task, CpuSet::first_cpus(2));
    let elsewhere = |task| Change::Affinity(task, [CpuId(1)].into_iter().collect());
    let nice = |task| Change::Nice(task, 5);
    let changes = [
        (affinity as fn(TaskId) -> Change, "Dc q M R Qr"),
        (elsewhere, "Dc q M R Qr Dc Q"),
        (nice, "Dc q W R Qr"),
    ];
    for (change, expected) in changes {
        // One that runs on each CPU, and one that waits on the first.
        let workload = move |boot: &mut Boot<'_>| -> Started {
            bound(boot, "a", 0)?;
            let waits = bound(boot, "b", 0)?;
            bound(boot, "c", 1)?;
            operate(boot, change(waits));
            Ok(())
        };
        let begins = "I E W R Q I E W R Q I E W R Q d D + d D +";
        let most = begins.split(' ').chain(expected.split(' ')).count();
        let written = written(most as i128, 2, &workload);
        assert_eq!(written, format!("{begins} {expected}"));
    }
}

/// What a task has already changes nothing (`set_user_nice()`, `__set_cpus_allowed_ptr()`).
#[test]
fn a_change_to_what_is_so_already_is_none() {
    for change in [
        (|task| Change::Affinity(task, CpuSet::first_cpus(1))) as fn(TaskId) -> Change,
        |task| Change::Nice(task, 0),
    ] {
        let workload = move |boot: &mut Boot<'_>| -> Started {
            spinner(boot, "a")?;
            let waits = spinner(boot, "b")?;
            operate(boot, change(waits));
            Ok(())
        };
        let written = written(15, 1, &workload);
        assert_eq!(written, "I E W R Q I E W R Q d D + t t");
    }
}

/// The same of a task that runs: it stops, and goes on at once through the own queue of its CPU.
#[test]
fn a_running_task_that_changes_stops_and_goes_on() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let first = spinner(boot, "a")?;
        operate(boot, Change::Nice(first, 5));
        Ok(())
    };
    assert_eq!(written(13, 1, &workload), "I E W R Q d D + -0 q W R +");
}

/// sched_autogroup_exit_task() takes a task that exits off its queue and puts it back, so that it
/// stops twice. sched_ext_dead() comes after the last switch: disable, exit_task.
#[test]
fn a_task_that_exits_is_disabled_and_forgotten() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("b"))?;
        exits(boot, called("a"))
    };
    let written = written(31, 1, &workload);
    assert!(
        written.ends_with("-1 Q + -0 q R + -0 q d D + x X"),
        "{written}"
    );
}

/// sched_move_task() asks the CPU to pick again. Who has no slice left is put back on its way out,
/// into the own queue of the CPU (`SCX_OPS_ENQ_EXITING` is not set), and exits when it runs next.
/// Of the 5 ms that it has from 2 ms on none are left at 7.5 ms, before the next tick.
#[test]
fn a_task_that_has_used_up_its_slice_gives_way_before_it_exits() {
    let ends = |ran: u64| {
        let workload = move |boot: &mut Boot<'_>| -> Started {
            boot.task(called("a"), move |task: Task| async move {
                task.sleep(ms(2)).await;
                task.compute_for(Duration::from_us(ran)).await;
            })?;
            boot.task(called("b"), |task: Task| async move {
                task.sleep(ms(3)).await;
                loop {
                    task.compute_for(ms(1)).await;
                }
            })?;
            Ok(())
        };
        let loaded = load(ORDER, "7.3", &[("most", 50)]);
        let stage = Stage {
            preemption: Preemption::Lazy,
            ..Stage::new(loaded, 1)
        };
        let written = said(&stage.play(100, &workload));
        let (_, after) = written.split_once(" Qw t ").expect("both wait at a tick");
        after.split(" X").next().unwrap_or_default().to_owned()
    };
    assert_eq!(ends(4_500), "-0 q R + -0 q d D + x");
    assert_eq!(ends(5_500), "-0 q R + d D -1 + t t t -1 Q + -0 q d D + x");
}

/// handle_hotplug() ends a program that has no callback for it, and its loader starts it anew: it
/// gets to know all tasks, of which those that run go on, with a whole slice of 20 ms.
#[test]
fn a_program_without_callbacks_for_hotplug_starts_anew() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        bound(boot, "a", 0)?;
        bound(boot, "b", 0)?;
        boot.operator(Instant::START + ms(2), |operator| async move {
            operator.change(Change::Online(CpuId(1), false)).await;
        });
        Ok(())
    };
    assert_eq!(
        written(16, 2, &workload),
        "I E W R + I E W R Qr t t t t t d"
    );
}

/// Of two tasks that are to run at once on one CPU, the second comes back (`SCX_ENQ_IMMED`). The
/// first is in the own queue of the CPU, which asks nobody for it. A program that insists is
/// ejected.
#[test]
fn a_task_that_cannot_run_at_once_comes_back() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        hog(boot, called("b"))
    };
    let loaded = load(ORDER, "7.3", &[("most", 17), ("at_once", 1)]);
    let written = said(&play(loaded, 1, 1_000, &workload));
    assert_eq!(written, "I E W R Q I E W R Q Qa + t t d D -1");
    let loaded = load(ORDER, "7.3", &[("most", 10_000), ("always_at_once", 1)]);
    let ended = said(&play(loaded, 1, 1_000, &workload));
    assert!(
        ended.contains("reenqueued 257 times without running"),
        "{ended}"
    );
}

/// A task that never sleeps.
fn spinner(boot: &mut Boot<'_>, name: &str) -> Result<TaskId, OutOfMemory> {
    spins(boot, called(name))
}

/// The same of one that may run on one CPU only.
fn bound(boot: &mut Boot<'_>, name: &str, cpu: u16) -> Result<TaskId, OutOfMemory> {
    spins(boot, called(name).bound([CpuId(cpu)]))
}

fn spins(boot: &mut Boot<'_>, spec: TaskSpec) -> Result<TaskId, OutOfMemory> {
    boot.task(spec, |task: Task| async move {
        loop {
            task.compute_for(ms(1)).await;
        }
    })
}

/// Changes something after 2 ms, before the first tick.
fn operate(boot: &mut Boot<'_>, change: Change) {
    boot.operator(Instant::START + ms(2), |operator| async move {
        operator.change(change).await;
    });
}
