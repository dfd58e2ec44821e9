//! Linux 2.4.4: goodness, counters, recalculation, reschedule_idle.

use warmq_kernel::*;

use crate::stage::*;

#[test]
fn nice_0_and_nice_10_share_six_to_three() {
    let lines = stage(1).chart("linux24", 27, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        hog(boot, called("B").nice(10))?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAABBBAAAAAABBBAAAAAABBB"]);
}

#[test]
fn the_nicest_gets_one_tick_and_the_least_nice_eleven() {
    let lines = stage(1).chart("linux24", 24, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").nice(-20))?;
        hog(boot, called("B").nice(19))?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAAAAAAABAAAAAAAAAAAB"]);
}

/// A sleeper's counter: 6, and half of it plus 6 at each recalculation: 9, 10, 11, 11...
#[test]
fn a_sleeper_saves_up_to_eleven_ticks() {
    for (asleep, saved) in [(5, 6), (11, 9), (17, 10), (23, 11), (47, 11)] {
        let lines = stage(1).chart("linux24", 70, move |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("A"))?;
            sleeper(boot, called("S"), asleep, 100)?;
            Ok(())
        });
        let (before, after) = lines[0].split_once('S').expect("it wakes");
        assert_eq!(before.len() as u64, asleep, "{}", lines[0]);
        let stint = 1 + after.find('A').expect("its slice ends");
        assert_eq!(stint, saved, "{}", lines[0]);
    }
}

#[test]
fn the_woken_preempts_who_has_less_left_and_waits_for_who_has_more() {
    // A's counter is 6 - 3 when W wakes with 6 (then 3 against 7).
    let lines = stage(1).chart("linux24", 12, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        sleeper(boot, called("W"), 3, 1)?;
        Ok(())
    });
    assert_eq!(lines, ["AAAWAAAWAAAW"]);
    // V, of nice 5, first runs when A's slice is over: it goes to sleep, and all get new slices.
    // A tick later it wakes with 6 + 15 against A's 5 + 20, and waits for the next end of a slice.
    let lines = stage(1).chart("linux24", 14, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        sleeper(boot, called("V").nice(5), 1, 1)?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAAAAAAAAVA"]);
}

#[test]
fn tasks_stay_on_the_cpu_where_they_ran() {
    let lines = stage(2).chart("linux24", 48, |boot: &mut Boot<'_>| -> Started {
        for name in ["A", "B", "C", "D"] {
            hog(boot, called(name))?;
        }
        Ok(())
    });
    for line in &lines {
        let mut letters: Vec<char> = line.chars().collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(
            letters.len(),
            2,
            "{lines:?}: 15 for having run here beats any counter"
        );
    }
}

#[test]
fn an_idle_cpu_takes_the_woken() {
    let lines = stage(2).chart("linux24", 12, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").bound([cpu(0)]))?;
        sleeper(boot, called("W"), 2, 2)?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAAAAAAAA", "..WW..WW..WW"]);
}

/// Decision case 3 of the coloring paper's specification: of equals, who has the CPU keeps it; then
/// the first in the list goes, and who was woken last is first.
#[test]
fn of_equals_prev_goes_first_and_then_who_was_woken_last() {
    let lines = stage(1).chart("linux24", 9, |boot: &mut Boot<'_>| -> Started {
        // R keeps the CPU while A and then B wake behind it.
        sleeper(boot, called("R").policy(Policy::Fifo(1)), 1, 2)?;
        for (name, asleep) in [("A", 1), ("B", 2)] {
            boot.task(called(name), move |task: Task| async move {
                task.sleep(ms(asleep * 10 + 2)).await;
                task.compute(ticks(1)).await;
            })?;
        }
        Ok(())
    });
    assert_eq!(lines, [".RRBRRARR"]);
}

/// Decision case 11: how often the lock is taken.
#[test]
fn what_takes_the_run_queue_lock() {
    let requests = |workload: fn(&mut Boot<'_>) -> Started| {
        let (_, kernel) = stage(1).plays(scheduler("linux24", &[]), 35, workload);
        first_lock(&kernel).requests
    };
    // The first pick; nobody waits, so yielding does nothing.
    let alone = requests(|boot| {
        boot.task(called("Y"), |task: Task| async move {
            for _ in 0..3 {
                task.compute(ticks(1)).await;
                task.yield_now().await;
            }
            task.compute(ticks(9)).await;
        })?;
        Ok(())
    });
    assert_eq!(alone, 1);
    // A yields three times to B, which yields back: one pick each, and no look for another CPU.
    let pair = requests(|boot| {
        for name in ["A", "B"] {
            boot.task(called(name), |task: Task| async move {
                loop {
                    task.compute(ticks(1)).await;
                    task.yield_now().await;
                }
            })?;
        }
        Ok(())
    });
    assert_eq!(pair, 1 + 3);
    // S sleeps (a pick), wakes (one) and preempts H: a pick, and one more as H could have gone on.
    let sleeps = requests(|boot| {
        hog(boot, called("H"))?;
        boot.task(called("S").nice(-20), |task: Task| async move {
            task.compute(ticks(1)).await;
            task.sleep(ms(5)).await;
            task.compute(ticks(9)).await;
        })?;
        Ok(())
    });
    assert_eq!(sleeps, 1 + 1 + 1 + 2);
}

/// Decision case 4: new slices when everybody who could run here has used up his, also where
/// somebody with ticks left runs elsewhere; not when the only task yields.
#[test]
fn when_slices_are_computed_anew() {
    let recalculations = |cpus, ms, workload: fn(&mut Boot<'_>) -> Started| {
        let (_, kernel) = stage(cpus).plays(scheduler("linux24", &[]), ms, workload);
        meters(&kernel).1.1.recalculations
    };
    let yields_alone = |boot: &mut Boot<'_>| -> Started {
        boot.task(called("Y"), |task: Task| async move {
            loop {
                task.compute(ticks(1)).await;
                task.yield_now().await;
            }
        })?;
        Ok(())
    };
    assert_eq!(recalculations(1, 55, yields_alone), 0);
    let used_up = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        hog(boot, called("N").nice(-20).bound([cpu(1)]))?;
        Ok(())
    };
    assert_eq!(
        recalculations(2, 65, used_up),
        1,
        "N has 5 ticks left, on the other CPU"
    );
}

/// Decision case 8: a sync wakeup queues the task and tells nobody, idle CPUs included.
#[test]
fn nobody_is_told_of_a_sync_wakeup() {
    let told = |sync: bool| {
        let mut stage = stage(2);
        stage.settings.sync_socket_wakeups = sync;
        let workload = |boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.socket_pair(warmq_units::Bytes(100))?;
            boot.task(called("receiver"), move |task: Task| async move {
                task.receive(far, warmq_units::Bytes(10)).await;
            })?;
            boot.task(
                called("sender").bound([cpu(1)]),
                move |task: Task| async move {
                    task.compute(ticks(1)).await;
                    task.send(near, warmq_units::Bytes(10)).await;
                    task.compute(ticks(2)).await;
                },
            )?;
            Ok(())
        };
        let (ending, kernel) = stage.plays(scheduler("linux24", &[]), 60, workload);
        assert_eq!(ending, Ending::WorkDone);
        meters(&kernel).1.1.reschedules
    };
    assert_eq!((told(false), told(true)), (1, 0));
}

/// Decision case 7: of two tasks that are woken for one idle CPU, only the first sends an
/// interrupt.
#[test]
fn an_idle_cpu_that_was_asked_is_not_asked_again() {
    for (waiters, idle) in [
        (1, IdleLoop::Halt),
        (2, IdleLoop::Halt),
        (2, IdleLoop::Poll),
    ] {
        let workload = move |boot: &mut Boot<'_>| -> Started {
            let (mutex, condition) = (boot.mutex(), boot.condition());
            for _ in 0..waiters {
                boot.task(
                    called("waiter").bound([cpu(1)]),
                    move |task: Task| async move {
                        task.lock(mutex).await;
                        task.wait(condition, mutex).await;
                    },
                )?;
            }
            boot.task(
                called("waker").bound([cpu(0)]),
                move |task: Task| async move {
                    task.compute(ticks(1)).await;
                    task.notify_all(condition).await;
                },
            )?;
            Ok(())
        };
        let mut stage = stage(2);
        stage.settings.idle_loop = idle;
        let (_, kernel) = stage.plays(scheduler("linux24", &[]), 100, workload);
        let expected = u64::from(idle == IdleLoop::Halt);
        let sent = meters(&kernel).1.1.reschedules;
        assert_eq!(sent, expected, "{waiters} {idle:?}");
    }
}
