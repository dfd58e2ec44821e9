//! What all tasks have counted and how long they have run, at one time.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::Ordering;

use crate::stage::Stage;
use crate::stage::slots::{Slot, TaskState};
use crate::sys::clock::{now_ns, process_cpu_ns};
use crate::trace::Moment;

/// A sample of now, with how long the tasks have run if `with_times`.
pub fn now(stage: &Stage, with_times: bool) -> Moment {
    let at_ns = now_ns();
    let used = stage.used();
    let counters = 0..=stage.scenario().counters().len();
    let counts = counters.map(|counter| stage.slots.total(used, counter));
    Moment {
        at_ns,
        counts: counts.collect(),
        of_scheduler: Vec::new(),
        ran_ns: if with_times { times(stage) } else { Vec::new() },
        quotas: stage.groups.quotas(),
    }
}

/// By slot.
fn times(stage: &Stage) -> Vec<u64> {
    // Threads of each process.
    let mut threads = BTreeMap::new();
    for (_, slot) in stage.tasks() {
        *threads.entry(slot.pid.load(Ordering::Relaxed)).or_insert(0) += 1;
    }
    let alone = |slot: &Slot| threads.get(&slot.pid.load(Ordering::Relaxed)) == Some(&1);
    let times = stage.tasks().map(|(_, slot)| ran_ns(slot, alone(slot)));
    times.collect()
}

/// CPU time of a task. That of a process is exact; that of one thread of several is what the kernel
/// had added up at its last tick.
fn ran_ns(slot: &Slot, alone: bool) -> u64 {
    match slot.state() {
        TaskState::NotStarted => return 0,
        TaskState::Ended => return slot.ran_ns.load(Ordering::Relaxed),
        TaskState::Started => {}
    }
    let (pid, tid) = (
        slot.pid.load(Ordering::Relaxed),
        slot.tid.load(Ordering::Relaxed),
    );
    let exact = if alone { process_cpu_ns(pid) } else { None };
    match exact.or_else(|| schedstat(pid, tid)) {
        Some(all) => all.saturating_sub(slot.base_ns.load(Ordering::Relaxed)),
        // It has ended in between.
        None => slot.ran_ns.load(Ordering::Relaxed),
    }
}

fn schedstat(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::thread_cpu_ns;
    use crate::{sys::process, testing};

    #[test]
    fn what_a_task_ran_before_the_start_is_left_out() {
        let stage = testing::stage("[task.t]\ncount = 2\nbody = [{ run = \"1us\" }]");
        let slot = stage.slots.of(0);
        slot.pid.store(process::pid(), Ordering::Relaxed);
        slot.tid.store(process::tid(), Ordering::Relaxed);
        assert_eq!(now(stage, true).ran_ns, [0, 0], "nobody is born");
        slot.set_state(TaskState::Started);
        let before = thread_cpu_ns();
        assert!(ran_ns(slot, true) >= before);
        // What the kernel adds up may be a tick old, and ticks are at most 10 ms long.
        assert!(ran_ns(slot, false) + 20_000_000 >= before);
        slot.base_ns.store(u64::MAX, Ordering::Relaxed);
        assert_eq!((ran_ns(slot, true), ran_ns(slot, false)), (0, 0));
        slot.ran_ns.store(7, Ordering::Relaxed);
        slot.set_state(TaskState::Ended);
        assert_eq!(now(stage, true).ran_ns, [7, 0]);
    }
}
