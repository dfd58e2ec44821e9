//! Real-time tasks beside fair ones under EEVDF: what the deadline server of each CPU leaves to
//! them (50 ms of each second), and where real-time tasks run.
//!
//! The kernel costs nothing here, and HZ is 250. In a chart a letter is 10 ms.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::{Cycles, Duration, Instant, Seed};

use crate::stage::*;

const SECONDS: u64 = 20;

fn machine(cpus: u16) -> Stage {
    let mut stage = stage(cpus).sharing(cpus).promised_nothing();
    stage.settings = Settings {
        caches: false,
        preemption: Preemption::Lazy,
        ..Settings::linux6(Seed(1))
    };
    stage
}

/// A kernel in which `workload` has run for 20 s.
fn played(cpus: u16, name: &str, set: &[(&str, Value)], workload: impl Workload) -> Kernel<Watch> {
    let (_, kernel) = machine(cpus).plays(scheduler(name, set), SECONDS * 1_000, workload);
    kernel
}

fn pinned(name: &str, to: u16) -> TaskSpec {
    called(name).bound([cpu(to)])
}

/// What a task had of a CPU, in tenths of a percent.
fn share(kernel: &Kernel<Watch>, task: u32) -> u64 {
    task_figures(kernel, task).ran.as_us() / (SECONDS * 1_000)
}

/// The longest that CPU 0 was without the task of this letter, in ms.
fn longest_without(kernel: &Kernel<Watch>, letter: char) -> usize {
    let end = Instant::START + Duration::from_s(SECONDS);
    let chart = kernel.observer().0.0.lines_until(end).remove(0);
    let gaps = chart.split(letter).map(|gap| gap.chars().count());
    gaps.max().unwrap_or(0) * 10
}

fn served(permille: u64) -> bool {
    (48..=56).contains(&permille)
}

#[test]
fn a_fair_task_has_50_ms_of_each_second_beside_a_real_time_hog() {
    for name in EEVDF {
        for policy in [Policy::Fifo(50), Policy::RoundRobin(1)] {
            let workload = |boot: &mut Boot<'_>| -> Started {
                hog(boot, called("R").policy(policy))?;
                hog(boot, called("u"))?;
                Ok(())
            };
            let kernel = played(1, name, &[], workload);
            let (usual, waited) = (share(&kernel, 1), longest_without(&kernel, 'u'));
            assert!(served(usual), "{name}, {policy:?}: {usual}");
            assert!(
                (940..=960).contains(&waited),
                "{name}, {policy:?}: {waited}"
            );
        }
    }
}

/// 6.6 has no server. At a tick after 950 ms the real-time tasks of a CPU must wait until the
/// second is over; nobody has what they leave if nobody else is there.
#[test]
fn real_time_tasks_of_6_6_wait_for_the_end_of_each_second() {
    let span = |ms| Value::Duration(Duration::from_ms(ms));
    let shares = |set: &[(&str, Value)], others: u16| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("R").policy(Policy::Fifo(50)))?;
            hog(boot, called("S").policy(Policy::RoundRobin(50)))?;
            for _ in 0..others {
                hog(boot, called("u"))?;
            }
            Ok(())
        };
        let kernel = played(1, "eevdf-6.6", set, workload);
        [0, 1, 2].map(|task| {
            if task < 2 + u32::from(others) {
                share(&kernel, task)
            } else {
                0
            }
        })
    };
    let [one, other, usual] = shares(&[], 1);
    assert!(
        (940..=952).contains(&(one + other)) && served(usual),
        "{one} {other} {usual}"
    );
    let [one, other, _] = shares(&[], 0);
    assert!(
        (940..=952).contains(&(one + other)),
        "{one} {other}: it idles"
    );
    assert_eq!(shares(&[("rt_runtime", span(0))], 1)[2], 0);
    let half = [("rt_runtime", span(50)), ("rt_period", span(100))];
    let usual = shares(&half, 1)[2];
    assert!((490..=510).contains(&usual), "{usual}");
}

#[test]
fn the_server_can_be_set_and_switched_off() {
    let span = |ms| Value::Duration(Duration::from_ms(ms));
    let shares = |runtime, period| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("R").policy(Policy::Fifo(1)))?;
            hog(boot, called("u"))?;
            Ok(())
        };
        let set = [
            ("fair_server_runtime", span(runtime)),
            ("fair_server_period", span(period)),
        ];
        share(&played(1, "eevdf-7.2", &set, workload), 1)
    };
    assert_eq!(shares(0, 1_000), 0);
    assert!((195..=210).contains(&shares(100, 500)));
    assert!(shares(1_000, 1_000) >= 900);
    assert!(
        shares(2_000, 1_000) >= 900,
        "no more than the period counts"
    );
}

/// It waits for zero laxity once; whenever it comes back within the period that then begins, it is
/// served at once. When that is over, it waits again: 10 rounds in 1.95 s.
#[test]
fn a_task_that_sleeps_most_of_the_time_is_served_at_once_for_a_period() {
    for name in &EEVDF[1..] {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("R").policy(Policy::Fifo(50)))?;
            boot.task(called("s"), |task: Task| async move {
                loop {
                    task.compute(Cycles(100_000)).await;
                    task.sleep(Duration::from_ms(100)).await;
                }
            })?;
            Ok(())
        };
        let rounds = share(&played(1, name, &[], workload), 1) * SECONDS;
        assert!(
            (90..=110).contains(&rounds),
            "{name}: {rounds} rounds of 1 ms"
        );
    }
}

#[test]
fn each_cpu_has_a_server_of_its_own() {
    for name in EEVDF {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for to in [0, 1] {
                hog(boot, pinned("R", to).policy(Policy::Fifo(50)))?;
                hog(boot, pinned("u", to))?;
            }
            Ok(())
        };
        let kernel = played(2, name, &[], workload);
        for usual in [1, 3] {
            assert!(
                served(share(&kernel, usual)),
                "{name}: {}",
                share(&kernel, usual)
            );
        }
    }
}

/// The quota is 10 ms in 100 ms, and the server's runtime is less.
#[test]
fn a_group_with_a_quota_has_no_more_than_the_server_gives() {
    for name in &EEVDF[1..] {
        let workload = |boot: &mut Boot<'_>| -> Started {
            let group = boot.group(GroupId::ROOT, "g", 100);
            let limits = Limits {
                quota: Duration::from_ms(10),
                period: Duration::from_ms(100),
                burst: Duration::ZERO,
            };
            boot.bandwidth(group, limits);
            hog(boot, called("R").policy(Policy::Fifo(50)))?;
            hog(boot, called("u").group(group))?;
            Ok(())
        };
        let usual = share(&played(1, name, &[], workload), 1);
        assert!((20..=56).contains(&usual), "{name}: {usual}");
    }
}

/// When tasks ended, in ms.
type Ends = Rc<RefCell<Vec<u64>>>;

fn ends(boot: &mut Boot<'_>, spec: TaskSpec, (starts, ms): (u64, u64), ends: &Ends) -> Started {
    let ends = ends.clone();
    boot.task(spec, move |task: Task| async move {
        task.sleep(Duration::from_ms(starts)).await;
        task.compute(Cycles(100_000 * ms)).await;
        let now = task.now().await.since(Instant::START);
        ends.borrow_mut().push(now.as_us() / 1_000);
    })?;
    Ok(())
}

/// Two wake beside fair tasks, wherever they were: each takes a CPU (`select_task_rq_rt()`,
/// `push_rt_task()`).
#[test]
fn real_time_tasks_go_where_none_runs() {
    for name in EEVDF {
        let all = Ends::default();
        let seen = all.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            for to in [0, 1] {
                hog(boot, pinned("u", to))?;
            }
            for name in ["R", "S"] {
                ends(boot, called(name).policy(Policy::Fifo(1)), (20, 30), &all)?;
            }
            Ok(())
        };
        played(2, name, &[], workload);
        let ends = seen.borrow().clone();
        assert!(ends.len() == 2 && ends[1] < 60, "{name}: {ends:?}");
    }
}

/// Both CPUs have a better one for 50 ms, one of them for ever. The other CPU then runs first the
/// one that waits there, and after that the one that waits beside the hog (`pull_rt_task()`).
#[test]
fn a_cpu_whose_real_time_task_leaves_pulls_the_best_that_waits() {
    for name in EEVDF {
        let all = Ends::default();
        let seen = all.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            hog(boot, pinned("H", 0).policy(Policy::Fifo(50)))?;
            ends(
                boot,
                pinned("L", 1).policy(Policy::Fifo(50)),
                (0, 50),
                &Ends::default(),
            )?;
            for name in ["R", "S"] {
                ends(boot, called(name).policy(Policy::Fifo(10)), (10, 30), &all)?;
            }
            Ok(())
        };
        played(2, name, &[], workload);
        let ends = seen.borrow().clone();
        assert!(ends.len() == 2 && ends[1] < 130, "{name}: {ends:?}");
    }
}
