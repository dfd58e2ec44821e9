//! The threads of a core are slower together: whoever computes has a core of its own while one idles,
//! however CPUs are numbered.
//!
//! The kernel costs nothing here. A thread whose sibling is busy has 0.61 of its speed.

use std::cell::Cell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_machine::MachineDescription;
use warmq_units::{Cycles, Duration, Instant, Seed};

use crate::stage::*;

const EEVDF: [&str; 5] = [
    "eevdf-6.12",
    "eevdf-6.18",
    "eevdf-7.1",
    "eevdf-7.2",
    "eevdf-7.3",
];
/// Those before it that balance over cores.
const BEFORE: [&str; 2] = ["cfs", "o1"];

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
    let done = Done::default();
    let from = Instant::START + from;
    let mut kernel = stage.boots(scheduler(name, &[]), |boot: &mut Boot<'_>| {
        workload(boot, &done)
    });
    kernel.run_until(from);
    let before = done.get();
    kernel.run_until(from + Duration::from_s(1));
    (done.get() - before) / cpus
}

fn workers(count: u32) -> impl Fn(&mut Boot<'_>, &Done) -> Started {
    move |boot, done| (0..count).try_for_each(|_| worker(boot, "worker", done))
}

/// The task between the two is over after a millisecond, and leaves them on the threads of one core. Guests of 6.12 and 6.18 keep them apart.
#[test]
fn two_tasks_do_not_share_a_core_beside_an_idle_one() {
    let blip = |boot: &mut Boot<'_>, done: &Done| -> Started {
        worker(boot, "a", done)?;
        boot.task(called("blip"), |task: Task| async move {
            task.compute(Cycles(100_000)).await;
        })?;
        worker(boot, "b", done)
    };
    for name in EEVDF.into_iter().chain(BEFORE) {
        for alter in NUMBERED {
            let stage = machine(name, 4, 4).altered(alter);
            let done = done_in_a_second(stage, name, Duration::from_ms(500), 2, blip);
            assert!((995..=1_000).contains(&done), "{name}: {done}");
        }
    }
}

#[test]
fn eight_tasks_begin_on_eight_cores_also_with_siblings_side_by_side() {
    for name in EEVDF.into_iter().chain(BEFORE) {
        let stage = machine(name, 16, 16).altered(|machine| side_by_side(machine, 2));
        let done = done_in_a_second(stage, name, Duration::ZERO, 8, workers(8));
        assert!((995..=1_000).contains(&done), "{name}: {done}");
    }
}

/// Two sockets of 32 cores with four threads each.
#[test]
fn as_many_tasks_as_cores_have_one_each_on_two_sockets() {
    for name in EEVDF {
        let stage = machine(name, 256, 128).altered(|machine| side_by_side(machine, 4));
        let done = done_in_a_second(stage, name, Duration::from_ms(500), 64, workers(64));
        assert!((995..=1_000).contains(&done), "{name}: {done}");
    }
}

/// Three hogs begin on CPU 2 and soon may run on CPU 3, too, which idles. It is another CPU of their core's
/// group that balances for it (`LBF_DST_PINNED`).
#[test]
fn what_may_run_on_one_idle_cpu_of_a_group_gets_there() {
    let hogs = |boot: &mut Boot<'_>, done: &Done| -> Started {
        for _ in 0..3 {
            let done = Rc::clone(done);
            boot.task(
                called("hog").bound([cpu(2)]),
                move |task: Task| async move {
                    task.compute(Cycles(100_000)).await;
                    task.set_affinity(task.id(), [cpu(2), cpu(3)]).await;
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
