//! CFS of Linux 2.6.24: turns, sleepers, forks, yields, groups, and where it fails.
//!
//! In the charts a letter is 10 ms, and the tick comes every 4 ms, or as is said. A slice ends at
//! the first tick after it is used up: 10 ms end at 12.

use proptest::prelude::*;
use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::{CpuSet, Cycles, Duration, Instant};

use crate::stage::*;

fn set(settings: &[(&str, Value)]) -> MakeScheduler {
    scheduler("cfs", settings)
}

fn span(ms: u64) -> Value {
    Value::Duration(Duration::from_ms(ms))
}

fn text(name: &str) -> Value {
    Value::Text(name.into())
}

fn groups_on() -> (&'static str, Value) {
    ("groups", text("on"))
}

fn chart(stage: Stage, scheduler: MakeScheduler, of: u64, what: impl Workload) -> Vec<String> {
    let (_, kernel) = stage.plays(scheduler, of * 10, what);
    let end = Instant::START + Duration::from_ms(of * 10);
    kernel.observer().0.0.lines_until(end)
}

/// The CPU time of the first tasks after `ms`, in ms.
fn ran<const N: usize>(
    stage: Stage,
    set_: MakeScheduler,
    ms: u64,
    what: impl Workload,
) -> [u64; N] {
    let (_, kernel) = stage.plays(set_, ms, what);
    std::array::from_fn(|task| task_figures(&kernel, task as u32).ran.as_us() / 1_000)
}

fn hogs(names: &'static [&'static str]) -> impl Workload {
    move |boot: &mut Boot<'_>| -> Started {
        for name in names {
            hog(boot, called(name))?;
        }
        Ok(())
    }
}

#[test]
fn equal_hogs_take_turns_of_a_slice() {
    // Ticks of 10 ms: a slice of 10 ms is not over when just used up, one of 20 / 3 ms is.
    let lines = chart(stage(1), set(&[]), 12, hogs(&["A", "B"]));
    assert_eq!(lines, ["AABBAABBAABB"]);
    let lines = chart(stage(1), set(&[]), 12, hogs(&["A", "B", "C"]));
    assert_eq!(lines, ["ABCABCABCABC"]);
}

/// A letter is 1 ms, and the tick comes every ms: slices of 15.06 and 4.94 ms.
#[test]
fn a_heavier_task_runs_longer_not_more_often() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").nice(-5))?;
        hog(boot, called("b"))?;
        Ok(())
    };
    let fine = warmq_metrics::Chart::new(1, ms(1));
    let (_, kernel) = stage(1)
        .tick_of(1)
        .plays_before(fine, set(&[]), 63, workload);
    let lines = kernel.observer().lines_until(Instant::START + ms(63));
    // Both are slices of one period, and b's second turn follows at once: after 5 ms it was still
    // behind A, which 16 ms had brought to 5.25.
    let turn = ["A".repeat(16), "b".repeat(5)];
    let (a, b) = (&turn[0], &turn[1]);
    assert_eq!(lines, [format!("{a}{b}{b}{a}{b}{a}")]);
}

/// A hog, and a task that sleeps for `asleep` us and works for 200, for a second. How long they ran
/// in ms, and how often the hog was preempted.
fn beside_a_sleeper(asleep: u64, settings: &[(&str, Value)]) -> (u64, u64, u64) {
    let workload = move |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("hog"))?;
        boot.task(called("receiver"), move |task: Task| async move {
            loop {
                task.sleep(Duration::from_us(asleep)).await;
                task.compute(Cycles(20_000)).await;
            }
        })?;
        Ok(())
    };
    let (_, kernel) = stage(1).tick_of(4).plays(set(settings), 1_000, workload);
    let (hog, receiver) = (task_figures(&kernel, 0), task_figures(&kernel, 1));
    let ms = |span: Duration| span.as_us() / 1_000;
    (ms(hog.ran), ms(receiver.ran), hog.involuntary)
}

/// The thesis' finding: any sleep is credited with up to a latency, so each wakeup of a task that
/// sleeps often preempts; and its cure.
#[test]
fn a_frequent_sleeper_preempts_at_each_wakeup_unless_the_granularity_is_a_latency() {
    let (hog, receiver, preempted) = beside_a_sleeper(200, &[]);
    assert_eq!((hog, receiver, preempted), (506, 494, 2471));
    let (_, _, cured) = beside_a_sleeper(200, &[("wakeup_granularity", span(20))]);
    // At the ends of its slices, of 12 ms.
    assert_eq!(cured, 83);
    let credit_off = ("new_fair_sleepers", Value::Bool(false));
    let (_, _, uncredited) = beside_a_sleeper(200, &[credit_off]);
    assert_eq!(uncredited, 83);
}

#[test]
fn a_local_granularity_stops_who_sleeps_often_and_nobody_else() {
    let local = [
        ("granularity", text("local")),
        ("alpha", Value::Duration(Duration::from_us(100))),
    ];
    let (_, _, often) = beside_a_sleeper(200, &local);
    let (_, _, seldom) = beside_a_sleeper(30_000, &local);
    // Four sleeps in a period of 20 ms make 4 * 50 * 100 us, one latency: four wakeups preempt in
    // each of the 50 periods, and the slices end at times. One sleep in a period is no more than 5
    // ms.
    assert_eq!((often, seldom), (208, 33));
}

#[test]
fn a_batch_task_preempts_nobody() {
    let woken = |policy: Policy| {
        let workload = move |boot: &mut Boot<'_>| -> Started {
            boot.task(called("woken").policy(policy), |task: Task| async move {
                task.sleep(ms(101)).await;
                task.compute(Cycles(1_000)).await;
            })?;
            hog(boot, called("hog"))?;
            Ok(())
        };
        let (_, kernel) = stage(1).tick_of(4).plays(set(&[]), 200, workload);
        task_figures(&kernel, 0).waited
    };
    assert!(woken(Policy::Other) < Duration::from_us(10));
    // Woken 1 ms after a tick, it waits for the next one: the hog's slice has long been over.
    assert_eq!(woken(Policy::Batch), Duration::from_ms(3));
}

#[test]
fn a_real_time_task_runs_before_all_fair_ones() {
    let lines = chart(stage(1), set(&[]), 12, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").nice(-20))?;
        boot.task(
            called("R").policy(Policy::Fifo(1)),
            |task: Task| async move {
                task.sleep(ms(30)).await;
                task.compute(ticks(4)).await;
            },
        )?;
        Ok(())
    });
    assert_eq!(lines, ["AAARRRRAAAAA"]);
}

/// Who computes first after a fork, for each setting of `child_runs_first`.
#[test]
fn a_child_runs_before_its_parent_which_takes_its_place() {
    let first = |child_first: bool| {
        let flag = ("child_runs_first", Value::Bool(child_first));
        chart(
            stage(1),
            set(&[flag]),
            10,
            |boot: &mut Boot<'_>| -> Started {
                boot.task(called("P"), |task: Task| async move {
                    task.compute(ticks(2)).await;
                    task.spawn(called("c"), |task: Task| async move {
                        task.compute(ticks(3)).await
                    })
                    .await;
                    task.compute(ticks(3)).await;
                })?;
                Ok(())
            },
        )
    };
    // At 20 ms the child takes the parent's place, and the parent starts a slice of 10 ms later.
    assert_eq!(first(true), ["PPccPPcP.."]);
    // With its own 30 ms, the child waits until the parent is at 40.
    assert_eq!(first(false), ["PPPPccPc.."]);
}

/// A task that yields after each ms of work, beside a hog: how long they ran in 400 ms, in ms.
fn beside_a_yielder(compat: bool) -> [u64; 2] {
    let flag = ("compat_yield", Value::Bool(compat));
    ran(
        stage(1).tick_of(4),
        set(&[flag]),
        400,
        |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("hog"))?;
            boot.task(called("yielder"), |task: Task| async move {
                loop {
                    task.compute(Cycles(100_000)).await;
                    task.yield_now().await;
                }
            })?;
            Ok(())
        },
    )
}

#[test]
fn a_yield_only_accounts_unless_it_is_the_old_one() {
    assert_eq!(beside_a_yielder(false), [204, 196]);
    // Once behind the hog, it waits for the end of a slice for each ms.
    assert_eq!(beside_a_yielder(true), [367, 33]);
}

fn one_beside_three(boot: &mut Boot<'_>) -> Started {
    let one = boot.group(GroupId::ROOT, "one", 100);
    let many = boot.group(GroupId::ROOT, "many", 100);
    hog(boot, called("A").group(one))?;
    for name in ["x", "y", "z"] {
        hog(boot, called(name).group(many))?;
    }
    Ok(())
}

#[test]
fn groups_share_a_cpu_and_then_their_tasks_do() {
    let on = ran::<4>(
        stage(1).tick_of(4),
        set(&[groups_on()]),
        2_000,
        one_beside_three,
    );
    let off = ran::<4>(stage(1).tick_of(4), set(&[]), 2_000, one_beside_three);
    assert_eq!(on, [1_000, 336, 336, 328]);
    assert_eq!(off, [504, 504, 496, 496]);
    let lines = chart(stage(1), set(&[groups_on()]), 24, one_beside_three);
    assert_eq!(lines, ["AAxyAAzxAAyzAAxyAAzxAAyz"]);
}

#[test]
fn a_receiver_and_a_hog_of_one_group_behave_as_without_groups() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let user = boot.group(GroupId::ROOT, "user", 100);
        hog(boot, called("A").group(user))?;
        sleeper(boot, called("b").group(user), 3, 1)?;
        Ok(())
    };
    let on = chart(stage(1), set(&[groups_on()]), 40, workload);
    assert_eq!(on, chart(stage(1), set(&[]), 40, workload));
}

/// In 2.6.24 a group in a group cannot be made; its tasks are the outer one's.
#[test]
fn groups_in_groups_count_as_deep_as_is_said() {
    let nested = |levels: i64| {
        let set_ = set(&[groups_on(), ("group_levels", Value::Integer(levels))]);
        ran::<3>(
            stage(1).tick_of(4),
            set_,
            1_200,
            |boot: &mut Boot<'_>| -> Started {
                let outer = boot.group(GroupId::ROOT, "outer", 100);
                let inner = boot.group(outer, "inner", 100);
                hog(boot, called("A").group(outer))?;
                hog(boot, called("b").group(inner))?;
                hog(boot, called("c").group(inner))?;
                Ok(())
            },
        )
    };
    assert_eq!(nested(1), [400, 400, 400]);
    assert_eq!(nested(2), [600, 300, 300]);
}

/// Groups get no credit for sleep: in a group of its own, the receiver of the thesis preempts
/// nobody.
#[test]
fn a_frequent_sleeper_in_a_group_of_its_own_preempts_nobody() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let (one, other) = (
            boot.group(GroupId::ROOT, "one", 100),
            boot.group(GroupId::ROOT, "other", 100),
        );
        hog(boot, called("hog").group(one))?;
        boot.task(called("receiver").group(other), |task: Task| async move {
            loop {
                task.sleep(Duration::from_us(200)).await;
                task.compute(Cycles(20_000)).await;
            }
        })?;
        Ok(())
    };
    let preempted = |set_: MakeScheduler| {
        let (_, kernel) = stage(1).tick_of(4).plays(set_, 1_000, workload);
        task_figures(&kernel, 0).involuntary
    };
    assert_eq!(preempted(set(&[])), 2_471);
    // At the ends of its slices.
    assert_eq!(preempted(set(&[groups_on()])), 83);
}

#[test]
fn an_idle_cpu_pulls_what_waits_elsewhere() {
    let lines = chart(stage(2), set(&[]), 20, |boot: &mut Boot<'_>| -> Started {
        boot.task(called("B"), |task: Task| async move {
            task.compute(ticks(4)).await;
        })?;
        hog(boot, called("A"))?;
        hog(boot, called("C"))?;
        Ok(())
    });
    // The period is 40 ms on two CPUs, and slices of 20 ms end after 30.
    assert_eq!(lines, ["AAACCCCCCCCCCCCCCCCC", "BBBBAAAAAAAAAAAAAAAA"]);
}

/// B is woken on CPU 0, where A runs alone; CPU 1 idles, under the same cache or another.
#[test]
fn a_woken_task_goes_to_an_idle_core_under_its_cache() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").bound([cpu(0)]))?;
        boot.task(called("B").bound([cpu(0)]), |task: Task| async move {
            task.change(Change::Affinity(
                task.id(),
                CpuSet::from_iter([cpu(0), cpu(1)]),
            ))
            .await;
            loop {
                task.sleep(ms(30)).await;
                task.compute(Cycles(100_000)).await;
            }
        })?;
        Ok(())
    };
    let moved = |sharing: u16| {
        let stage = stage(2).tick_of(4).sharing(sharing);
        let (_, kernel) = stage.plays(set(&[]), 1_000, workload);
        let (hog, woken) = (task_figures(&kernel, 0), task_figures(&kernel, 1));
        (woken.migrations, hog.involuntary)
    };
    // It moves once and stays, or preempts A at each of its 33 wakeups but the first.
    assert_eq!(moved(2), (1, 1));
    assert_eq!(moved(1), (0, 32));
}

/// Two cores with two threads each: A and B run on one core, and the other idles. Nobody waits, so
/// that nothing can be pulled; when they may move, attempts enough have failed, and A is pushed.
#[test]
fn of_two_tasks_on_one_core_one_is_pushed_to_an_idle_core() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        for (name, first) in [("A", 0), ("B", 1)] {
            boot.task(called(name).bound([cpu(first)]), |task: Task| async move {
                task.compute(ticks(4)).await;
                task.change(Change::Affinity(
                    task.id(),
                    CpuSet::from_iter((0..4).map(cpu)),
                ))
                .await;
                loop {
                    task.compute(ticks(1)).await;
                }
            })?;
        }
        Ok(())
    };
    let cores = stage(4).sharing(4).altered(|machine| {
        for (number, place) in machine.cpus.iter_mut().enumerate() {
            place.core = number as u16 / 2;
        }
    });
    let lines = chart(cores, set(&[]), 12, workload);
    assert_eq!(
        lines,
        [
            "AAAAA.......",
            "BBBBBBBBBBBB",
            ".....AAAAAAA",
            "............"
        ]
    );
}

/// Two caches with two CPUs each; a nice -20 task under one, four of nice 0 under the other. The
/// first cache's load is greater, so that its idle CPU pulls nothing.
#[test]
fn a_cpu_idles_beside_a_heavy_neighbour_while_others_wait_elsewhere() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("H").nice(-20).bound([cpu(0)]))?;
        for name in ["a", "b", "c", "d"] {
            boot.task(
                called(name).bound([cpu(2), cpu(3)]),
                |task: Task| async move {
                    task.compute(ticks(4)).await;
                    task.change(Change::Affinity(
                        task.id(),
                        CpuSet::from_iter((0..4).map(cpu)),
                    ))
                    .await;
                    loop {
                        task.compute(ticks(1)).await;
                    }
                },
            )?;
        }
        Ok(())
    };
    let lines = chart(stage(4).sharing(2), set(&[]), 30, workload);
    assert_eq!(lines[1], ".".repeat(30), "{lines:?}");
}

/// A hog of a random weight.
fn nice_values() -> impl Strategy<Value = Vec<i8>> {
    prop::collection::vec(-20i8..20, 1..8)
}

/// How much CPU time each of `weights` gets in `ms` may differ from its share, in ns, by the
/// theory: it was leftmost when it was picked, so it is ahead by its own slice and a tick at most;
/// it is behind by its part of what all others are ahead.
fn bounds(weights: &[u64], of: usize, tick: u64) -> (u64, u64) {
    let (total, running) = (weights.iter().sum::<u64>(), weights.len() as u64);
    let period = 20_000_000 * running.max(5) / 5;
    let ahead = |weight: u64| period * weight / total + tick;
    let others = weights.iter().enumerate().filter(|(other, _)| *other != of);
    let all: u64 = others.map(|(_, weight)| ahead(*weight)).sum();
    (ahead(weights[of]), weights[of] * all / total)
}

fn holds(
    name: &str,
    ran: u64,
    share: u64,
    (ahead, behind): (u64, u64),
) -> Result<(), TestCaseError> {
    // A tick more for how they start.
    let slack = 4_000_000;
    prop_assert!(
        ran <= share + ahead + slack,
        "{name}: {ran} of {share}, ahead by {ahead}"
    );
    prop_assert!(
        ran + behind + slack >= share,
        "{name}: {ran} of {share}, behind by {behind}"
    );
    Ok(())
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn each_runnable_task_gets_its_share_within_a_slice(nice in nice_values()) {
        let weights: Vec<u64> = nice.iter().map(|nice| weight_of_nice(*nice)).collect();
        let total: u64 = weights.iter().sum();
        let workload = |boot: &mut Boot<'_>| -> Started {
            for nice in &nice {
                hog(boot, called("hog").nice(*nice))?;
            }
            Ok(())
        };
        let (_, kernel) = stage(1).tick_of(4).plays(set(&[]), 4_000, workload);
        for (task, weight) in weights.iter().enumerate() {
            let ran = task_figures(&kernel, task as u32).ran.as_ns();
            let share = 4_000_000_000 * weight / total;
            holds(&format!("{nice:?} {task}"), ran, share, bounds(&weights, task, 4_000_000))?;
        }
    }

    #[test]
    fn each_group_gets_its_share_within_a_slice(
        groups in prop::collection::vec((1u32..1_000, 1usize..4, -5i8..6), 1..5)
    ) {
        let shares = groups.iter().map(|(weight, ..)| u64::from(*weight) * 1_024 / 100);
        let weights: Vec<u64> = shares.collect();
        let total: u64 = weights.iter().sum();
        let workload = |boot: &mut Boot<'_>| -> Started {
            for (weight, tasks, nice) in &groups {
                let group = boot.group(GroupId::ROOT, "g", *weight);
                for _ in 0..*tasks {
                    hog(boot, called("hog").group(group).nice(*nice))?;
                }
            }
            Ok(())
        };
        let (_, kernel) = stage(1).tick_of(4).plays(set(&[groups_on()]), 4_000, workload);
        let mut task = 0;
        for (number, (_, tasks, _)) in groups.iter().enumerate() {
            let own = task..task + *tasks as u32;
            task = own.end;
            let ran: u64 = own.map(|task| task_figures(&kernel, task).ran.as_ns()).sum();
            let share = 4_000_000_000 * weights[number] / total;
            let name = format!("{groups:?} {number}");
            holds(&name, ran, share, bounds(&weights, number, 4_000_000))?;
        }
    }
}
