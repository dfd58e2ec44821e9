//! Cores of several CPUs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, work};

pub const DRILLS: &[Drill] = &[Drill {
    name: "cores/one-leaves-a-shared-core",
    law: "of two tasks that compute on the siblings of one core, one leaves for an idle core, and they stay apart",
    run: leaves,
}];

/// The first CPU of the core of `cpu`.
fn core_of(cpu: usize) -> Result<usize, Failure> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let siblings =
        fs::read_to_string(&path).map_err(|error| Failure(format!("{path}: {error}")))?;
    let first = siblings.trim().split(['-', ',']).next();
    let number = first.and_then(|first| first.parse().ok());
    number.ok_or_else(|| Failure(format!("{path}: {siblings}")))
}

/// Computes, at first on one CPU only, and notes where it is.
fn released(crew: &mut Crew, first: usize) -> Arc<AtomicUsize> {
    let at = Arc::new(AtomicUsize::new(first));
    let seen = Arc::clone(&at);
    crew.add("released", move |shift| {
        sys::run_on(&[first]);
        work(Duration::from_millis(200));
        sys::run_on(&(0..=sys::last_cpu()).collect::<Vec<_>>());
        while shift.goes_on() {
            work(Duration::from_micros(200));
            seen.store(sys::current_cpu() as usize, Ordering::Relaxed);
        }
    });
    at
}

fn leaves() -> Result<Outcome, Failure> {
    let siblings = (1..=sys::last_cpu()).find(|cpu| core_of(*cpu).is_ok_and(|core| core == 0));
    let Some(sibling) = siblings else {
        return Err(Failure(
            "this drill needs CPUs that share a core".to_owned(),
        ));
    };
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::default();
    let tasks = [0, sibling].map(|cpu| released(&mut crew, cpu));
    thread::sleep(Duration::from_secs(2));
    let before = figures()?.counter("core_moves");
    let mut together = 0;
    for _ in 0..30 {
        thread::sleep(Duration::from_millis(100));
        let cores = tasks
            .each_ref()
            .map(|at| core_of(at.load(Ordering::Relaxed)));
        let [one, other] = cores;
        together += u32::from(one? == other?);
    }
    let after = figures()?.counter("core_moves");
    crew.stop();
    must!(before > 0, "nobody left a core");
    must!(
        together <= 3,
        "they shared a core at {together} of 30 times"
    );
    // Whoever else wakes may share a core for a slice. Tasks that drive each other out would move
    // 250 times a second.
    must!(
        after - before <= 10,
        "{} tasks left their core in 3 s",
        after - before
    );
    Ok(Outcome::Holds(format!(
        "apart at {} of 30 times, {} moves since",
        30 - together,
        after - before
    )))
}
