//! Deadline tasks under EEVDF: what each has beside who, and where they run.
//!
//! The kernel costs nothing here, and HZ is 250. In a chart a letter is 1 ms.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::{CpuId, Cycles, Duration, Instant, Seed, TaskId};

use crate::stage::*;

/// From 7.1 on a timer ends the runtime of a deadline task; before, a tick does.
const BY_TICKS: [&str; 2] = ["eevdf-6.12", "eevdf-6.18"];
const BY_TIMER: [&str; 3] = ["eevdf-7.1", "eevdf-7.2", "eevdf-7.3"];

fn versions() -> impl Iterator<Item = &'static str> {
    BY_TICKS.into_iter().chain(BY_TIMER)
}

fn played(cpus: u16, name: &str, ms: u64, workload: impl Workload) -> Kernel<Watch> {
    let mut stage = stage(cpus).sharing(cpus).promised_nothing();
    stage.settings = Settings {
        caches: false,
        preemption: Preemption::Lazy,
        ..Settings::linux6(Seed(1))
    };
    let none: [(&str, Value); 0] = [];
    let step = Duration::from_ms(1);
    let (_, kernel) = stage.charted(step, scheduler(name, &none), ms, workload);
    kernel
}

/// Runtime, deadline and period in ms.
fn reserved(runtime: u64, deadline: u64, period: u64) -> Policy {
    Policy::Deadline(Reserved {
        runtime: Duration::from_ms(runtime),
        deadline: Duration::from_ms(deadline),
        period: Duration::from_ms(period),
    })
}

fn pinned(name: &str, to: u16) -> TaskSpec {
    called(name).bound([cpu(to)])
}

fn ran(kernel: &Kernel<Watch>, task: u32) -> u64 {
    task_figures(kernel, task).ran.as_us() / 1_000
}

fn chart(kernel: &Kernel<Watch>, cpu: usize, ms: u64) -> String {
    let end = Instant::START + Duration::from_ms(ms);
    kernel.observer().0.0.lines_until(end).remove(cpu)
}

#[test]
fn a_hog_has_its_runtime_in_each_period_beside_real_time_and_fair_hogs() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("R").policy(Policy::Fifo(99)))?;
            hog(boot, called("D").policy(reserved(10, 50, 50)))?;
            hog(boot, called("u"))?;
            Ok(())
        };
        let kernel = played(1, name, 10_000, workload);
        let had = ran(&kernel, 1);
        assert!((1_990..=2_012).contains(&had), "{name}: {had} of 2000 ms");
        let fair = ran(&kernel, 2);
        assert!((450..=560).contains(&fair), "{name}: {fair} of 500 ms");
    }
}

#[test]
fn a_timer_ends_a_runtime_and_before_7_1_a_tick_which_is_paid_back() {
    let first = |name: &str| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("D").policy(reserved(5, 20, 20)))?;
            hog(boot, called("u"))?;
            Ok(())
        };
        let kernel = played(1, name, 100, workload);
        chart(&kernel, 0, 60)
    };
    // 8 ms at first; then what is left of 5 ms, 2 ms and 3 ms, and the ticks in which it ends.
    let by_ticks = "DDDDDDDDuuuuuuuuuuuuDDDDuuuuuuuuuuuuuuuuDDDDuuuuuuuuuuuuuuuu";
    for name in BY_TICKS {
        assert_eq!(first(name), by_ticks, "{name}");
    }
    let by_timer = "DDDDDuuuuuuuuuuuuuuu".repeat(3);
    for name in BY_TIMER {
        assert_eq!(first(name), by_timer, "{name}");
    }
}

#[test]
fn the_earliest_deadline_runs_first() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for (letter, deadline) in [("a", 60), ("b", 40), ("c", 20)] {
                let spec = called(letter).policy(reserved(8, deadline, 100));
                boot.task(spec, |task: Task| async move {
                    task.sleep(Duration::from_ms(10)).await;
                    task.compute(Cycles(800_000 - 20_000)).await;
                })?;
            }
            hog(boot, called("u"))?;
            Ok(())
        };
        let kernel = played(1, name, 50, workload);
        let seen = chart(&kernel, 0, 50);
        let mut order: Vec<char> = seen
            .chars()
            .filter(|letter| "abc".contains(*letter))
            .collect();
        order.dedup();
        assert_eq!(order, ['c', 'b', 'a'], "{name}: {seen}");
    }
}

/// What it leaves of its runtime is lost; it goes on when the next period begins.
#[test]
fn who_yields_runs_once_in_each_period() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            boot.task(
                called("D").policy(reserved(4, 20, 20)),
                |task: Task| async move {
                    loop {
                        task.compute(Cycles(100_000)).await;
                        task.yield_now().await;
                    }
                },
            )?;
            hog(boot, called("u"))?;
            Ok(())
        };
        let kernel = played(1, name, 2_000, workload);
        let had = ran(&kernel, 0);
        assert!((98..=101).contains(&had), "{name}: {had} rounds of 1 ms");
    }
}

/// Three that use 6 of 10 ms fit on two CPUs as two of them only at a time; where all are admitted,
/// each has what it asked for (global earliest deadline first).
#[test]
fn tasks_spread_over_cpus() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for letter in ["a", "b"] {
                hog(boot, called(letter).policy(reserved(12, 20, 20)))?;
            }
            for to in [0, 1] {
                hog(boot, pinned("R", to).policy(Policy::Fifo(1)))?;
            }
            Ok(())
        };
        let kernel = played(2, name, 2_000, workload);
        for task in [0, 1] {
            let had = ran(&kernel, task);
            assert!((1_190..=1_216).contains(&had), "{name}: {had} of 1200 ms");
        }
    }
}

/// A task that wakes where an earlier deadline runs goes to the CPU with none, or the latest.
#[test]
fn who_wakes_beside_an_earlier_deadline_goes_elsewhere() {
    for name in versions() {
        let late = Rc::new(RefCell::new(Vec::new()));
        let seen = late.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            let spec = called("E").policy(reserved(40, 50, 100));
            boot.task(spec, |task: Task| async move {
                task.compute(Cycles(4_000_000)).await;
            })?;
            hog(boot, called("R").policy(Policy::Fifo(1)))?;
            let late = late.clone();
            boot.task(
                called("L").policy(reserved(10, 100, 100)),
                move |task: Task| async move {
                    task.sleep(Duration::from_ms(10)).await;
                    task.compute(Cycles(500_000)).await;
                    let now = task.now().await;
                    late.borrow_mut().push(now.since(Instant::START));
                },
            )?;
            Ok(())
        };
        played(2, name, 200, workload);
        let ended = seen.borrow().clone();
        assert!(
            ended.len() == 1 && ended[0] < Duration::from_ms(20),
            "{name}: {ended:?}"
        );
    }
}

/// A fair task becomes one with a deadline and back, and loses nothing that it is owed.
#[test]
fn a_policy_can_change_while_the_task_is_throttled() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            let task = hog(boot, called("D"))?;
            hog(boot, called("u"))?;
            let at = |ms| Instant::START + Duration::from_ms(ms);
            for (ms, policy) in [(102, reserved(10, 100, 100)), (150, Policy::Other)] {
                boot.operator(at(ms), move |operator| async move {
                    operator.change(Change::Policy(task, policy)).await;
                });
            }
            Ok(())
        };
        let kernel = played(1, name, 500, workload);
        let seen = chart(&kernel, 0, 500);
        let throttled = &seen[120..148];
        assert!(!throttled.contains('D'), "{name}: {seen}");
        let after = seen[150..].matches('D').count();
        assert!((150..=210).contains(&after), "{name}: {after}\n{seen}");
    }
}

/// A CPU with a deadline task goes offline: the task has its runtime elsewhere.
#[test]
fn who_is_throttled_where_its_cpu_goes_offline_goes_on_elsewhere() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for letter in ["D", "E"] {
                hog(boot, called(letter).policy(reserved(10, 50, 50)))?;
            }
            let at = Instant::START + Duration::from_ms(530);
            boot.operator(at, |operator| async move {
                operator.change(Change::Online(CpuId(1), false)).await;
            });
            Ok(())
        };
        let kernel = played(2, name, 2_000, workload);
        for task in [0, 1] {
            let had = ran(&kernel, task);
            assert!((385..=412).contains(&had), "{name}: {had} of 400 ms");
        }
    }
}

/// Two reserve 4 ms in 10 each, and a hog may use what they leave: a CPU is always free.
#[test]
fn who_gets_its_runtime_back_takes_a_cpu_on_which_no_deadline_task_runs() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("h"))?;
            hog(boot, called("a").policy(reserved(4, 10, 10)))?;
            boot.task(
                called("b").policy(reserved(4, 10, 10)),
                |task: Task| async move {
                    task.sleep(Duration::from_ms(4)).await;
                    task.compute(Cycles(1_000_000_000)).await;
                },
            )?;
            Ok(())
        };
        let kernel = played(2, name, 1_000, workload);
        let had = ran(&kernel, 0);
        assert!(had > 680, "{name}: the hog has {had} of 1000 ms");
    }
}

#[test]
fn a_task_that_comes_back_to_the_class_has_what_was_left_of_its_runtime() {
    for name in versions() {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("u"))?;
            boot.task(
                called("D").policy(reserved(4, 10, 10)),
                |task: Task| async move {
                    for _ in 0..2_000 {
                        task.compute(Cycles(50_000)).await;
                        task.change(Change::Policy(TaskId(1), Policy::Other)).await;
                        task.change(Change::Policy(TaskId(1), reserved(4, 10, 10)))
                            .await;
                    }
                },
            )?;
            Ok(())
        };
        let kernel = played(1, name, 500, workload);
        // 40 % are reserved; and it is a usual task only for a moment.
        let had = ran(&kernel, 1);
        assert!(had <= 230, "{name}: it has {had} of 500 ms");
    }
}
