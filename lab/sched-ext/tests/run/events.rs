//! Programs at events of the kernel: when they run, and with which arguments.
//!
//! k waking, w wakeup, n wakeup of a new task, f fork, x exit, t tick, 0 and 1 migration to that
//! CPU; a switch from one task to another is p (preempted), s (it sleeps), d (it is dead), r (from
//! the idle task). Tasks are a, b, c; - is the idle one.

use warmq_kernel::*;
use warmq_sched_ext::Profile;

use crate::stage::*;

const EVENTS: &[u8] = include_bytes!("../programs/events.bpf.o");

fn written(most: i128, cpus: usize, on: &str, workload: &dyn Workload) -> String {
    let text = format!("name = \"events\"\nsource = \"ours\"\nprograms = [{on}]");
    let profile = Profile::read(&text).expect("a profile");
    let loaded = load_with(EVENTS, "7.3", profile, &[("most", most)]);
    said(&play(loaded, cpus, 1_000, workload))
}

#[test]
fn a_task_is_forked_runs_sleeps_and_is_woken() {
    assert_eq!(
        written(9, 1, "", &sleeper),
        "f-a na r-a sa- ka wa r-a sa- ka"
    );
}

/// Ticks come each 4 ms, and only where a task runs.
#[test]
fn a_program_that_is_turned_on_runs_too() {
    assert_eq!(
        written(9, 1, "\"on_tick\"", &sleeper),
        "f-a na r-a sa- ka wa r-a t sa-"
    );
}

#[test]
fn a_task_that_exits_is_dead_at_its_last_switch() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        exits(boot, called("b"))
    };
    let written = written(8, 1, "", &workload);
    assert_eq!(written, "f-a na f-b nb r-a pab dba xb");
}

/// The tasks that begin on one CPU are in the queue of all, from which the other takes one.
#[test]
fn a_task_that_another_cpu_takes_migrates() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a"))?;
        hog(boot, called("b"))?;
        hog(boot, called("c"))
    };
    assert_eq!(
        written(14, 2, "", &workload),
        "f-a na f-b nb f-c nc r-a r-b 1c pbc 0b pab 1a pca"
    );
}
