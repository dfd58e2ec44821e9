//! The threads of a core are slower together: whoever computes has a core of its own while one
//! idles, however CPUs are numbered.
//!
//! The kernel costs nothing here. A thread whose sibling is busy has 0.61 of its speed.

use std::cell::Cell;
use std::rc::Rc;

use warmq_config::Value;
use warmq_kernel::*;
use warmq_machine::MachineDescription;
use warmq_units::{CpuId, CpuSet, Cycles, Duration, Instant, Seed};

use crate::compiled::{WARMQ, is_missing};
use crate::stage::*;

/// Those before it that balance over cores.
const BEFORE: [&str; 2] = ["cfs", "o1"];

/// All that place tasks by cores.
fn all() -> impl Iterator<Item = &'static str> {
    EEVDF.into_iter().chain(BEFORE).chain(warmq())
}

/// The compiled scheduler, where it was built.
fn warmq() -> Option<&'static str> {
    (!is_missing()).then_some(WARMQ)
}

/// Two cores of two threads, in each way of numbering them.
const NUMBERED: [fn(&mut MachineDescription); 3] = [
    |machine| on_cores(machine, [0, 0, 1, 1]),
    |machine| on_cores(machine, [0, 1, 0, 1]),
    |machine| on_cores(machine, [0, 1, 1, 0]),
];

fn on_cores(machine: &mut MachineDescription, cores: impl IntoIterator<Item = u16>) {
    for (place, core) in machine.cpus.iter_mut().zip(cores) {
        place.core = core;
    }
    machine.smt_speed = 610;
}

/// CPUs whose siblings are numbered side by side, `threads` on a core.
fn side_by_side(machine: &mut MachineDescription, threads: u16) {
    let cpus = machine.cpus.len() as u16;
    on_cores(machine, (0..cpus).map(|cpu| cpu / threads));
}

/// CPUs, `sharing` of them under a cache, with the timers of the scheduler's time.
fn machine(name: &str, cpus: u16, sharing: u16) -> Stage {
    let mut stage = stage(cpus).sharing(sharing).promised_nothing();
    let of_its_time = match BEFORE.contains(&name) {
        true => Settings::linux24(Seed(1)),
        false => Settings::linux6(Seed(1)),
    };
    stage.settings = Settings {
        caches: false,
        ..of_its_time
    };
    stage
}

/// Work that is done, in ms at full speed.
type Done = Rc<Cell<u64>>;

/// A task that counts what it does.
fn worker(boot: &mut Boot<'_>, name: &str, done: &Done) -> Started {
    let done = Rc::clone(done);
    boot.task(called(name), move |task: Task| async move {
        loop {
            task.compute(Cycles(100_000)).await;
            done.set(done.get() + 1);
        }
    })?;
    Ok(())
}

/// How much of what so many CPUs could do was done from `from` to `from` + 1 s, in thousandths.
fn done_in_a_second(
    stage: Stage,
    name: &str,
    from: Duration,
    cpus: u64,
    workload: impl Fn(&mut Boot<'_>, &Done) -> Started,
) -> u64 {
    done_by(stage, scheduler(name, &[]), from, cpus, workload)
}

fn done_by(
    stage: Stage,
    scheduler: MakeScheduler,
    from: Duration,
    cpus: u64,
    workload: impl Fn(&mut Boot<'_>, &Done) -> Started,
) -> u64 {
    let done = Done::default();
    let from = Instant::START + from;
    let mut kernel = stage.boots(scheduler, |boot: &mut Boot<'_>| workload(boot, &done));
    kernel.run_until(from);
    let before = done.get();
    kernel.run_until(from + Duration::from_s(1));
    (done.get() - before) / cpus
}

fn workers(count: u32) -> impl Fn(&mut Boot<'_>, &Done) -> Started {
    move |boot, done| (0..count).try_for_each(|_| worker(boot, "worker", done))
}

/// A third task, created between the two, runs for a millisecond and ends: by their numbers the two
/// would be on the threads of one core. Guests of 6.12 and 6.18 keep them apart.
#[test]
fn two_tasks_do_not_share_a_core_beside_an_idle_one() {
    let blip = |boot: &mut Boot<'_>, done: &Done| -> Started {
        worker(boot, "a", done)?;
        boot.task(called("blip"), |task: Task| async move {
            task.compute(Cycles(100_000)).await;
        })?;
        worker(boot, "b", done)
    };
    for name in all() {
        for alter in NUMBERED {
            let stage = machine(name, 4, 4).altered(alter);
            let done = done_in_a_second(stage, name, Duration::from_ms(500), 2, blip);
            assert!((995..=1_000).contains(&done), "{name}: {done}");
        }
    }
}

#[test]
fn eight_tasks_begin_on_eight_cores_also_with_siblings_side_by_side() {
    for name in all() {
        let stage = machine(name, 16, 16).altered(|machine| side_by_side(machine, 2));
        let done = done_in_a_second(stage, name, Duration::ZERO, 8, workers(8));
        assert!((995..=1_000).contains(&done), "{name}: {done}");
    }
}

/// Two sockets of 32 cores with four threads each.
#[test]
fn as_many_tasks_as_cores_have_one_each_on_two_sockets() {
    for name in EEVDF.into_iter().chain(warmq()) {
        let stage = machine(name, 256, 128).altered(|machine| side_by_side(machine, 4));
        let done = done_in_a_second(stage, name, Duration::from_ms(500), 64, workers(64));
        assert!((995..=1_000).contains(&done), "{name}: {done}");
    }
}

/// Three hogs begin on CPU 2 and soon may run on CPU 3, too, which idles. It is another CPU of
/// their core's group that balances for it (`LBF_DST_PINNED`).
#[test]
fn what_may_run_on_one_idle_cpu_of_a_group_gets_there() {
    let hogs = |boot: &mut Boot<'_>, done: &Done| -> Started {
        for _ in 0..3 {
            let done = Rc::clone(done);
            boot.task(
                called("hog").bound([cpu(2)]),
                move |task: Task| async move {
                    task.compute(Cycles(100_000)).await;
                    task.change(Change::Affinity(
                        task.id(),
                        CpuSet::from_iter([cpu(2), cpu(3)]),
                    ))
                    .await;
                    loop {
                        task.compute(Cycles(100_000)).await;
                        done.set(done.get() + 1);
                    }
                },
            )?;
        }
        Ok(())
    };
    for name in EEVDF {
        let stage = machine(name, 4, 4).altered(NUMBERED[1]);
        let done = done_in_a_second(stage, name, Duration::from_s(1), 2, hogs);
        assert!(done >= 990, "{name}: {done}");
    }
}

/// A task that computes, at first on `on`, and after 100 ms wherever `then` says.
fn released(boot: &mut Boot<'_>, on: u16, then: std::ops::Range<u16>, done: &Done) -> Started {
    let done = Rc::clone(done);
    boot.task(
        called("hog").bound([CpuId(on)]),
        move |task: Task| async move {
            task.compute(Cycles(10_000_000)).await;
            task.change(Change::Affinity(task.id(), then.map(CpuId).collect()))
                .await;
            loop {
                task.compute(Cycles(100_000)).await;
                done.set(done.get() + 1);
            }
        },
    )?;
    Ok(())
}

/// How often tasks changed their CPU within a second that are released from the CPUs `on`, and what
/// they did in the next second, in thousandths of what as many cores can do.
fn spread(stage: Stage, on: &[u16], then: impl Fn(u16) -> std::ops::Range<u16>) -> (u64, u64) {
    let done = Done::default();
    let mut kernel = stage.boots(scheduler(WARMQ, &[]), |boot: &mut Boot<'_>| {
        on.iter()
            .try_for_each(|cpu| released(boot, *cpu, then(*cpu), &done))
    });
    kernel.run_until(Instant::START + Duration::from_s(1));
    let before = done.get();
    let end = Instant::START + Duration::from_s(2);
    kernel.run_until(end);
    let moved = meters(&kernel).0.all(end).map(|(_, task)| task.migrations);
    (moved.sum(), (done.get() - before) / on.len() as u64)
}

/// Both threads have their ticks at the same time, and find two idle cores.
#[test]
fn one_of_two_tasks_leaves_their_core() {
    if is_missing() {
        return;
    }
    let stage = machine(WARMQ, 6, 6).altered(|machine| side_by_side(machine, 2));
    let (moves, done) = spread(stage, &[0, 1], |_| 0..6);
    assert_eq!(moves, 1);
    assert!((995..=1_000).contains(&done), "{done}");
}

#[test]
fn whoever_may_leave_a_core_leaves_it() {
    if is_missing() {
        return;
    }
    for narrow in [0, 1] {
        let stage = machine(WARMQ, 4, 4).altered(|machine| side_by_side(machine, 2));
        let then = move |cpu| if cpu == narrow { 0..2 } else { 0..4 };
        let (moves, done) = spread(stage, &[0, 1], then);
        assert_eq!(moves, 1, "CPU {narrow} is narrow");
        assert!((995..=1_000).contains(&done), "{done}");
    }
}

/// Two cores of four threads: four tasks and one become three and two, four and none two and two.
#[test]
fn tasks_spread_evenly_over_cores_of_many_threads() {
    if is_missing() {
        return;
    }
    for (on, moves) in [
        (&[0, 1, 2, 3, 4][..], 1),
        (&[4, 5, 6, 7], 2),
        (&[0, 1, 5], 0),
    ] {
        let stage = machine(WARMQ, 8, 8).altered(|machine| side_by_side(machine, 4));
        assert_eq!(spread(stage, on, |_| 0..8).0, moves, "{on:?}");
    }
}

/// Two caches of two cores each: the four tasks of one of them leave for the other only as far as
/// they have to.
#[test]
fn tasks_leave_a_cache_for_idle_cores_if_it_has_none() {
    if is_missing() {
        return;
    }
    let stage = || machine(WARMQ, 8, 4).altered(|machine| side_by_side(machine, 2));
    let (moves, done) = spread(stage(), &[0, 1, 2, 3], |_| 0..8);
    assert_eq!(moves, 2);
    assert!((995..=1_000).contains(&done), "{done}");
    let (moves, done) = spread(stage(), &[0, 1], |_| 0..8);
    assert_eq!(moves, 1);
    assert!((995..=1_000).contains(&done), "{done}");
}

/// Two groups of a task each, which are founded on the threads of one core; the other core has work
/// for `busy` of its own. What they do in a second, `after` so long.
fn groups_on_a_core(busy: Duration, after: Duration) -> u64 {
    let stage = machine(WARMQ, 4, 4).altered(|machine| side_by_side(machine, 2));
    let place = [("place", Value::Text("cpu".to_owned()))];
    let member = |boot: &mut Boot<'_>, done: &Done, number: u16| -> Started {
        let done = Rc::clone(done);
        let spec = called("member").bound([CpuId(number)]);
        boot.task(spec, move |task: Task| async move {
            task.compute(Cycles(1_000_000)).await;
            let all = (0..4).map(CpuId).collect::<Vec<_>>();
            task.change(Change::Affinity(task.id(), CpuSet::from_iter(all)))
                .await;
            task.enter(1, number.into()).await;
            loop {
                task.compute(Cycles(100_000)).await;
                done.set(done.get() + 1);
            }
        })?;
        Ok(())
    };
    let other = move |boot: &mut Boot<'_>, cpu: u16| -> Started {
        boot.task(
            called("other").bound([CpuId(cpu)]),
            move |task: Task| async move {
                task.compute(Cycles(busy.as_us() * 100)).await;
            },
        )?;
        Ok(())
    };
    let workload = |boot: &mut Boot<'_>, done: &Done| -> Started {
        (0..2).try_for_each(|number| member(boot, done, number))?;
        (2..4).try_for_each(|cpu| other(boot, cpu))
    };
    done_by(stage, scheduler(WARMQ, &place), after, 2, workload)
}

#[test]
fn a_group_whose_home_is_a_cpu_leaves_its_core_as_a_whole() {
    if is_missing() {
        return;
    }
    let busy = Duration::from_ms(50);
    let done = groups_on_a_core(busy, Duration::from_ms(150));
    assert!((995..=1_000).contains(&done), "{done}");
}

#[test]
fn a_group_is_founded_on_an_idle_core() {
    if is_missing() {
        return;
    }
    let done = groups_on_a_core(Duration::from_us(1), Duration::from_ms(17));
    assert!((999..=1_000).contains(&done), "{done}");
}
