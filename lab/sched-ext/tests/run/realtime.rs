//! Real-time tasks beside those of a program. The letters are those of order.rs, and L cpu_release,
//! A cpu_acquire.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_units::{CpuId, Duration, Instant};

use crate::stage::*;

/// What an object that writes down its callbacks has written when `most` have come.
fn written(most: i128, series: &str, workload: &dyn Workload) -> String {
    let loaded = load(ORDER, series, &[("most", most)]);
    said(&play(loaded, 1, 1_000, workload))
}

/// One that computes, and a real-time task that wakes each 2 ms for 1 ms.
fn beside_a_sleeper(boot: &mut Boot<'_>) -> Started {
    hog(boot, called("a"))?;
    urgent_sleeper(boot)
}

fn urgent_sleeper(boot: &mut Boot<'_>) -> Started {
    boot.task(urgent("b"), |task: Task| async move {
        loop {
            task.sleep(ms(2)).await;
            task.compute_for(ms(1)).await;
        }
    })?;
    Ok(())
}

fn urgent(name: &str) -> TaskSpec {
    called(name).policy(Policy::Fifo(10))
}

/// Changes the policy of a task after 2 ms, before the first tick.
fn changed(policy: Policy) -> impl Fn(&mut Boot<'_>) -> Started {
    move |boot: &mut Boot<'_>| {
        let task = boot.task(called("a"), |task: Task| async move {
            loop {
                task.compute_for(ms(1)).await;
            }
        })?;
        for (at, policy) in [(2, policy), (3, Policy::Other)] {
            boot.operator(Instant::START + ms(at), move |operator| async move {
                operator.change(Change::Policy(task, policy)).await;
            });
        }
        Ok(())
    }
}

/// init_task comes for all, enable for those of the program. Who is preempted stops, and goes to
/// the head of its CPU's own queue with what is left of its slice; then switch_class() says that
/// the CPU is lost. Up to 6.19 prev_balance() asks for a task all the same, which keeps who runs.
#[test]
fn a_real_time_task_that_wakes_takes_the_cpu() {
    for (series, most, first) in [("7.3", 15, "d D"), ("6.18", 14, "d")] {
        assert_eq!(
            written(most, series, &beside_a_sleeper),
            format!("I E W R Q I {first} + -1 L A + t -1"),
            "{series}"
        );
    }
}

/// A CPU that goes idle asks the program for a task. Up to 6.19 it also does so when a real-time
/// task wakes there (`prev_balance()`): in 20 ms, each 3 ms.
#[test]
fn an_idle_cpu_that_a_real_time_task_takes_asks_the_program_up_to_6_19() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        urgent_sleeper(boot)?;
        boot.task(called("a"), |task: Task| async move {
            loop {
                task.sleep(ms(20)).await;
            }
        })?;
        Ok(())
    };
    for (series, asked) in [("6.18", 13), ("7.3", 7)] {
        let written = written(30, series, &workload);
        let between = written
            .split(" q ")
            .nth(1)
            .and_then(|rest| rest.split(" R").next());
        let between = between.unwrap_or_default();
        assert_eq!(between, vec!["d"; asked].join(" "), "{series}");
    }
}

/// `switched_from_scx()` and `switching_to_scx()`: one that runs leaves the program and comes back.
#[test]
fn a_task_that_becomes_a_real_time_one_leaves_the_program_and_comes_back() {
    for policy in [Policy::Fifo(1), Policy::RoundRobin(99), reserved(50, 100)] {
        assert_eq!(
            written(15, "7.3", &changed(policy)),
            "I E W R Q d D + -0 q x E W M R",
        );
    }
}

/// How long a task needs for 90 ms of work beside a real-time one that never sleeps, in ms.
fn beside_a_hog(series: &str) -> Option<u64> {
    let ended = Rc::new(RefCell::new(None));
    let end = ended.clone();
    let workload = move |boot: &mut Boot<'_>| -> Started {
        boot.task(urgent("b"), |task: Task| async move {
            loop {
                task.compute_for(ms(1)).await;
            }
        })?;
        let end = end.clone();
        boot.task(called("a"), move |task: Task| async move {
            task.compute_for(ms(90)).await;
            let now = task.now().await;
            *end.borrow_mut() = Some(now);
        })?;
        Ok(())
    };
    let played = play(load(FAULTS, series, &[]), 1, 5_000, &workload);
    assert_eq!(played.violation, None);
    let ended = *ended.borrow();
    ended.map(|at: Instant| at.since(Instant::START).as_us() / 1_000)
}

/// From 7.0 on a server gives tasks of sched_ext 50 ms of each second, after 950 ms.
#[test]
fn beside_a_real_time_hog_a_task_has_a_part_of_the_cpu_from_7_0_on() {
    assert_eq!(beside_a_hog("6.18"), None);
    let ended = beside_a_hog("7.3").expect("it is served");
    assert!((1_980..=2_000).contains(&ended), "{ended} ms");
}

/// Two of SCHED_RR take turns of 100 ms; two of SCHED_FIFO do not.
#[test]
fn equals_of_sched_rr_take_turns() {
    let ran = |policy: Policy| -> Vec<Duration> {
        let spans = Rc::new(RefCell::new(Vec::new()));
        let all = spans.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            for name in ["a", "b"] {
                let all = all.clone();
                boot.task(called(name).policy(policy), move |task: Task| async move {
                    task.compute_for(ms(150)).await;
                    let now = task.now().await;
                    all.borrow_mut().push(now.since(Instant::START));
                })?;
            }
            Ok(())
        };
        let played = play(load(FAULTS, "7.3", &[]), 1, 2_000, &workload);
        assert_eq!((played.ending, played.violation), (Ending::WorkDone, None));
        spans.borrow().clone()
    };
    let ends = |policy| -> Vec<u64> {
        let ends = ran(policy).into_iter();
        ends.map(|at| at.as_us() / 10_000).collect()
    };
    assert_eq!(ends(Policy::Fifo(5)), [15, 30]);
    assert_eq!(ends(Policy::RoundRobin(5)), [25, 30]);
}

fn reserved(runtime: u64, period: u64) -> Policy {
    Policy::Deadline(Reserved {
        runtime: ms(runtime),
        deadline: ms(period),
        period: ms(period),
    })
}

/// Beside a real-time hog and one of the program, a deadline task has 10 ms of each 50 ms.
#[test]
fn a_deadline_task_has_its_runtime_in_each_period() {
    for series in ["6.18", "7.3"] {
        let ended = Rc::new(RefCell::new(None));
        let at = ended.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            let at = at.clone();
            hog(boot, urgent("r"))?;
            hog(boot, called("a"))?;
            boot.task(
                called("d").policy(reserved(10, 50)),
                move |task: Task| async move {
                    task.compute_for(ms(200)).await;
                    *at.borrow_mut() = Some(task.now().await.since(Instant::START));
                },
            )?;
            Ok(())
        };
        let played = play(load(FAULTS, series, &[]), 1, 1_500, &workload);
        assert_eq!(played.violation, None, "{series}");
        let ended = ended.borrow().expect("it ends");
        assert!((ms(955)..=ms(1_000)).contains(&ended), "{series}: {ended}");
    }
}

/// One that wakes where another real-time task runs goes to a CPU without one, and one that is
/// moved off its CPU takes that of a task of the program.
#[test]
fn real_time_tasks_go_where_none_runs() {
    let ended = Rc::new(RefCell::new(Vec::new()));
    let all = ended.clone();
    let workload = move |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a").bound([CpuId(0)]))?;
        hog(boot, called("b").bound([CpuId(1)]))?;
        for name in ["c", "d"] {
            let all = all.clone();
            boot.task(urgent(name), move |task: Task| async move {
                task.sleep(ms(5)).await;
                task.compute_for(ms(10)).await;
                let now = task.now().await;
                all.borrow_mut().push(now.since(Instant::START));
            })?;
        }
        Ok(())
    };
    let played = play(load(FAULTS, "7.3", &[]), 2, 100, &workload);
    assert_eq!(played.violation, None);
    let late = ended.borrow().iter().filter(|at| **at > ms(17)).count();
    assert_eq!((ended.borrow().len(), late), (2, 0), "{ended:?}");
}

/// Both CPUs have a better one, one of them for ever, the other for 20 ms. That one then pulls
/// both, one after the other, wherever they wait (`pull_rt_task()`).
#[test]
fn a_cpu_whose_real_time_task_leaves_pulls_the_best_that_waits() {
    let ended = Rc::new(RefCell::new(Vec::new()));
    let all = ended.clone();
    let workload = move |boot: &mut Boot<'_>| -> Started {
        let best = |name, cpu| called(name).bound([cpu]).policy(Policy::Fifo(50));
        hog(boot, best("a", CpuId(0)))?;
        boot.task(best("b", CpuId(1)), |task: Task| async move {
            task.compute_for(ms(20)).await;
        })?;
        for name in ["c", "d"] {
            let all = all.clone();
            boot.task(urgent(name), move |task: Task| async move {
                task.sleep(ms(5)).await;
                task.compute_for(ms(10)).await;
                let now = task.now().await;
                all.borrow_mut().push(now.since(Instant::START));
            })?;
        }
        Ok(())
    };
    let played = play(load(FAULTS, "7.3", &[]), 2, 100, &workload);
    assert_eq!(played.violation, None);
    let ended = ended.borrow();
    assert!(ended.len() == 2 && ended[1] <= ms(46), "{ended:?}");
}
