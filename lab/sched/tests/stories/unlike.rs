//! CPUs of unlike capacity: who needs a large one gets there, and who does not stays where it is.
//!
//! The kernel costs nothing here. Four CPUs of a capacity of 446 share a cache, and four of 1024
//! another, as Cortex-A53 and A72 do.

use std::cell::Cell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_machine::MachineDescription;
use warmq_units::{CpuId, CpuSet, Cycles, Duration, Seed};

use crate::stage::*;

const LITTLE: std::ops::Range<u16> = 0..4;
const ALL: std::ops::Range<u16> = 0..8;

fn unlike(machine: &mut MachineDescription) {
    machine.cpus.iter_mut().for_each(|place| place.socket = 0);
    machine.capacities = [[446; 4], [1_024; 4]].concat();
}

fn machine() -> Stage {
    let mut stage = stage(8).sharing(4).altered(unlike).promised_nothing();
    stage.settings = Settings {
        caches: false,
        ..Settings::linux6(Seed(1))
    };
    stage
}

fn cpus(range: std::ops::Range<u16>) -> Vec<CpuId> {
    range.map(CpuId).collect()
}

/// A task that computes on the little CPUs, and from 50 ms on wherever `then` says.
fn hog(boot: &mut Boot<'_>, done: &Done, then: std::ops::Range<u16>) -> Started {
    let (done, then) = (Rc::clone(done), cpus(then));
    boot.task(
        called("hog").bound(cpus(LITTLE)),
        move |task: Task| async move {
            task.compute(Cycles(5_000_000)).await;
            task.change(Change::Affinity(task.id(), CpuSet::from_iter(then)))
                .await;
            loop {
                task.compute(Cycles(100_000)).await;
                done.set(done.get() + 1);
            }
        },
    )?;
    Ok(())
}

/// Nobody wakes or idles: the tick sees that it does not fit, and has it pushed.
#[test]
fn a_hog_on_a_little_cpu_is_moved_to_a_big_one() {
    for name in EEVDF {
        let from = Duration::from_ms(300);
        let done = done_in_a_second(machine(), name, from, |boot, done| hog(boot, done, ALL));
        assert!(done >= 995, "{name}: {done}");
    }
}

#[test]
fn who_may_run_on_little_cpus_only_stays_there() {
    for name in EEVDF {
        let from = Duration::from_ms(300);
        let done = done_in_a_second(machine(), name, from, |boot, done| hog(boot, done, LITTLE));
        assert!((430..=436).contains(&done), "{name}: {done}");
    }
}

/// Six hogs: four on the big CPUs, and two on little ones, each alone.
#[test]
fn hogs_fill_the_big_cpus_first_and_then_the_little_ones() {
    for name in EEVDF {
        let from = Duration::from_s(1);
        let hogs = |boot: &mut Boot<'_>, done: &Done| (0..6).try_for_each(|_| hog(boot, done, ALL));
        let done = done_in_a_second(machine(), name, from, hogs);
        assert!(done >= 4_000 + 2 * 435 - 60, "{name}: {done}");
    }
}

/// How long the last round of a task took that computes `work` ms in each 10 ms, after 500 ms on
/// the little CPUs and as long everywhere: on a little CPU more than twice as long.
fn last_round(name: &str, work: u64, uclamp: Uclamp) -> Duration {
    let took = Rc::new(Cell::new(Duration::ZERO));
    let noted = Rc::clone(&took);
    let rounds = move |task: Task| {
        let noted = Rc::clone(&noted);
        async move {
            for round in 0..100 {
                if round == 50 {
                    task.change(Change::Affinity(task.id(), CpuSet::from_iter(cpus(ALL))))
                        .await;
                }
                let began = task.now().await;
                task.compute(Cycles(work * 100_000)).await;
                let took = task.now().await - began;
                noted.set(took);
                task.sleep(Duration::from_ms(10) - took).await;
            }
        }
    };
    let workload = |boot: &mut Boot<'_>| -> Started {
        let spec = called("periodic").bound(cpus(LITTLE)).uclamp(uclamp);
        boot.task(spec, rounds.clone())?;
        Ok(())
    };
    machine().plays(scheduler(name, &[]), 1_200, workload);
    took.get()
}

/// 80 % of a little CPU are 357: 200 fit, 400 do not.
#[test]
fn a_task_wakes_on_a_big_cpu_if_a_little_one_is_too_small() {
    for name in EEVDF {
        let of = |work| last_round(name, work, Uclamp::default());
        let (small, large) = (of(2), of(4));
        assert!(small > Duration::from_ms(4), "{name}: {small}");
        assert!(large < Duration::from_us(4_100), "{name}: {large}");
    }
}

/// What a task asks for counts as if it used that; what it is held back to as if there were no more
/// to use.
#[test]
fn clamps_say_which_cpus_are_large_enough() {
    let (min, max) = (0, 1_024);
    for name in EEVDF {
        let boosted = last_round(name, 2, Uclamp { min: 500, max });
        assert!(boosted < Duration::from_us(2_100), "{name}: {boosted}");
        let capped = last_round(name, 4, Uclamp { min, max: 400 });
        assert!(capped > Duration::from_ms(8), "{name}: {capped}");
    }
}

/// A hog that is held back stays where it is, until it no longer is.
#[test]
fn a_hog_that_is_held_back_stays_on_a_little_cpu() {
    for name in EEVDF {
        let from = |ms, released: bool| {
            done_in_a_second(machine(), name, Duration::from_ms(ms), move |boot, done| {
                let done = Rc::clone(done);
                let uclamp = Uclamp { min: 0, max: 400 };
                let spec = called("hog").bound(cpus(LITTLE)).uclamp(uclamp);
                boot.task(spec, move |task: Task| async move {
                    task.compute(Cycles(5_000_000)).await;
                    task.change(Change::Affinity(task.id(), CpuSet::from_iter(cpus(ALL))))
                        .await;
                    if released {
                        task.change(Change::UclampMax(task.id(), 1_024)).await;
                    }
                    loop {
                        task.compute(Cycles(100_000)).await;
                        done.set(done.get() + 1);
                    }
                })?;
                Ok(())
            })
        };
        let (held, released) = (from(300, false), from(300, true));
        assert!((430..=436).contains(&held), "{name}: {held}");
        assert!(released >= 995, "{name}: {released}");
    }
}

/// A big CPU whose hog ends takes over one of a little CPU, which is alone there.
#[test]
fn a_big_cpu_that_becomes_idle_takes_a_hog_over() {
    for name in EEVDF {
        let from = Duration::from_ms(600);
        let hogs = |boot: &mut Boot<'_>, done: &Done| -> Started {
            hog(boot, done, ALL)?;
            for big in 4..8 {
                let ends = called("ends").bound([cpu(big)]);
                boot.task(ends, |task: Task| async move {
                    task.compute(Cycles(30_000_000)).await;
                })?;
            }
            Ok(())
        };
        let done = done_in_a_second(machine(), name, from, hogs);
        assert!(done >= 995, "{name}: {done}");
    }
}
