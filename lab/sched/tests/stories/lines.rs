//! Which lines scx_warmq takes from other CPUs at a wakeup and at a switch, on a machine of 384
//! CPUs with 24 last-level caches.
//!
//! `cargo test -p warmq-sched lines -- --nocapture` prints the figures of docs/scheduler/cost.md.

use std::collections::BTreeMap;

use warmq_kernel::*;
use warmq_machine::{builtin, read_toml};
use warmq_sched_ext::Profiler;
use warmq_units::{Duration, Instant, Seed};

use crate::compiled::{WARMQ, is_missing, made_and_profiled, under};
use crate::stage::{Started, called};

const MACHINE: &str = "server-24llc";

/// Until each line is where it is used, and then until all is counted.
const WARM_UP: Duration = Duration::from_ms(6);
const COUNTED: Duration = Duration::from_ms(6);

/// What it is, the callback that is called each time, and all of its callbacks.
type Part = (&'static str, &'static str, &'static [&'static str]);

/// A task that loses its CPU is queued by the same callback as one that wakes.
const WAKEUP: Part = ("wakeup", "select_cpu", &["select_cpu", "enqueue"]);
const SWITCH: Part = (
    "switch",
    "running",
    &["dispatch", "running", "stopping", "update_idle"],
);
const TICK: Part = ("tick", "tick", &["tick"]);

/// So many tasks of a cgroup, of which so many have something to do: each works for about `work`
/// us, and hands that on to any of them, which it wakes so.
#[derive(Clone, Copy)]
struct Load {
    tasks: u32,
    busy: u32,
    work: u64,
}

impl Workload for Load {
    fn start(&self, boot: &mut Boot<'_>) -> Started {
        let group = boot.group(GroupId::ROOT, "all", 100);
        // Each has a lock of its own.
        let work: Result<Vec<Semaphore>, _> = (0..self.tasks)
            .map(|_| Ok(boot.semaphores(1, 0)?.remove(0)))
            .collect();
        let work = work?;
        let (load, seed) = (*self, boot.seed());
        for number in 0..self.tasks {
            let work = work.clone();
            let mut random = seed.stream(&format!("lines {number}"));
            boot.task(called("task").group(group), move |task: Task| async move {
                if number >= load.busy {
                    task.lower(work[number as usize]).await;
                }
                loop {
                    let us = load.work / 2 + random.below(load.work);
                    task.compute_for(Duration::from_us(us)).await;
                    let next = random.below(u64::from(load.tasks)) as usize;
                    task.raise(work[next]).await;
                    task.lower(work[number as usize]).await;
                }
            })?;
        }
        Ok(())
    }
}

/// Lines that a CPU's own caches, level 1 and 2, do not have, and how often callbacks were called.
#[derive(Default)]
struct Lines {
    times: BTreeMap<String, u64>,
    all: BTreeMap<String, u64>,
    /// Those that caches under another last-level cache have.
    far: BTreeMap<String, u64>,
}

impl Lines {
    fn of(load: Load) -> Lines {
        let text = builtin(MACHINE).expect("a shipped machine");
        let machine = read_toml(MACHINE, text).expect("a sound machine");
        let settings = under(WARMQ, Settings::linux6(Seed(1)));
        let profiler = Profiler::starting_at(Instant::START + WARM_UP);
        let scheduler = made_and_profiled(&[], Some(&profiler));
        let booted = Kernel::boot(&machine, &Costs::free(), settings, scheduler, &load, ());
        let mut kernel = booted.expect("the workload fits");
        kernel.run_until(Instant::START + WARM_UP + COUNTED);
        let mut lines = Lines::default();
        profiler.callbacks(|name, times| add(&mut lines.times, name, times));
        profiler.instructions(|spent| {
            add(&mut lines.all, spent.callback, spent.accesses.reached(3));
            add(&mut lines.far, spent.callback, spent.accesses.by_cache);
        });
        lines
    }

    /// Hundredths of lines for each of `what`, by the callbacks of that; says so.
    fn each(&self, name: &str, (what, of, callbacks): Part) -> u64 {
        let sum = |counts: &BTreeMap<String, u64>| -> u64 {
            callbacks.iter().filter_map(|name| counts.get(*name)).sum()
        };
        let times = self.times[of];
        let [all, far] = [sum(&self.all), sum(&self.far)].map(|lines| 100 * lines / times);
        println!("{name}, each {what} ({times}): {all} hundredths of lines, {far} of them far");
        all
    }
}

fn add(counts: &mut BTreeMap<String, u64>, callback: &str, more: u64) {
    *counts.entry(callback.to_owned()).or_default() += more;
}

/// What wakeups and switches cost in hundredths of lines.
fn measured(name: &str, load: Load) -> [u64; 2] {
    let lines = Lines::of(load);
    lines.each(name, TICK);
    [WAKEUP, SWITCH].map(|part| lines.each(name, part))
}

#[test]
fn lines_of_other_cpus_where_cpus_idle() {
    if is_missing() {
        return;
    }
    let load = Load {
        tasks: 768,
        busy: 192,
        work: 100,
    };
    let [wakeup, switch] = measured("half busy", load);
    assert!((1..=925).contains(&wakeup), "{wakeup}");
    assert!((1..=1_285).contains(&switch), "{switch}");
}

#[test]
fn lines_of_other_cpus_where_tasks_wait() {
    if is_missing() {
        return;
    }
    let load = Load {
        tasks: 1536,
        busy: 650,
        work: 200,
    };
    let [wakeup, switch] = measured("overloaded", load);
    assert!((1..=1_080).contains(&wakeup), "{wakeup}");
    assert!((1..=1_340).contains(&switch), "{switch}");
}
