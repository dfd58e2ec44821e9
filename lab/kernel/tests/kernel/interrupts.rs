//! Interrupts, spin locks, and where a CPU's time goes.

use warmq_kernel::*;
use warmq_machine::Steal;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, Duration, Instant, Seed};

use crate::round_robin::*;
use crate::support::*;

/// Tasks that yield all the time, under a pick that holds the lock for `pick_ns`.
fn yielders(cpus: u16, tasks: u32, pick_ns: u64) -> Story {
    yielders_under(LockKind::TestAndSet, cpus, tasks, pick_ns)
}

fn yielders_under(locks: LockKind, cpus: u16, tasks: u32, pick_ns: u64) -> Story {
    let mut stage = stage(cpus);
    stage.settings.locks = locks;
    stage
        .under(round_robin(pick_ns))
        .costs(some_costs())
        .until_ms(100)
        .plays(move |boot: &mut Boot<'_>| -> Started {
            for _ in 0..tasks {
                boot.task(called("yielder"), |task: Task| async move {
                    loop {
                        task.compute(us(5)).await;
                        task.yield_now().await;
                    }
                })?;
            }
            Ok(())
        })
}

#[test]
fn spinning_burns_the_cpu_that_waits() {
    let alone = yielders(1, 8, 20_000);
    assert_eq!(alone.kernel.spent(Mode::Spin), Duration::ZERO);
    assert_eq!(alone.first_lock().contended, 0);
    let crowd = yielders(4, 8, 20_000);
    let lock = crowd.first_lock();
    assert!(
        crowd.kernel.spent(Mode::Spin) > Duration::from_ms(100),
        "picks take turns"
    );
    assert!(
        lock.waited <= crowd.kernel.spent(Mode::Spin),
        "some still wait at the end"
    );
    assert!(lock.held <= Duration::from_ms(100), "one holder at a time");
    assert!(lock.contended * 2 > lock.requests);
}

#[test]
fn no_interrupt_comes_while_a_cpu_spins_or_holds_the_lock() {
    let story = yielders(4, 8, 200_000);
    let tenures = story
        .records()
        .iter()
        .filter_map(|(at, record)| match record {
            Record::Lock {
                cpu, waited, held, ..
            } => Some((*cpu, Instant(at.0 - held.0 - waited.0), *at)),
            _ => None,
        });
    let tenures: Vec<_> = tenures.collect();
    let entries: Vec<_> = story
        .records()
        .iter()
        .filter_map(|(at, record)| match record {
            Record::InterruptEnter { cpu, .. } => Some((*cpu, *at)),
            _ => None,
        })
        .collect();
    assert!(tenures.len() > 100 && entries.len() > 30);
    for (cpu, at) in entries {
        let inside = tenures
            .iter()
            .find(|(holder, from, to)| *holder == cpu && *from < at && at < *to);
        assert_eq!(inside, None, "an interrupt on {cpu} at {at}");
    }
}

#[test]
fn queues_grant_locks_in_the_order_of_asking() {
    let story = yielders_under(LockKind::Queued, 4, 8, 50_000);
    let mut last_request = Instant::START;
    for (at, record) in story.records() {
        if let Record::Lock { waited, held, .. } = record {
            let request = Instant(at.0 - held.0 - waited.0);
            assert!(request >= last_request, "overtaken at {at}");
            last_request = request;
        }
    }
}

/// The bus serves spinners in turn, so of four CPUs none waits for more than three tenures.
#[test]
fn no_cpu_is_passed_over_twice_by_a_test_and_set_lock() {
    let story = yielders(4, 8, 50_000);
    let lock = story.first_lock();
    assert!(lock.max_wait > lock.max_hold);
    assert!(lock.max_wait <= lock.max_hold * 3, "{lock:?}");
}

#[test]
fn a_tick_interrupts_every_cpu_a_hundred_times_a_second() {
    let story = stage(2)
        .costs(costs(&[
            ("interrupt_entry", 400),
            ("interrupt_exit", 100),
            ("timer_tick", 500),
        ]))
        .until_ms(1_000)
        .plays(|boot: &mut Boot<'_>| -> Started {
            boot.task(called("hog"), |task: Task| async move {
                task.compute(us(10_000_000)).await;
            })?;
            Ok(())
        });
    for number in 0..2 {
        let ticks = story.records().iter().filter(|(_, record)| {
            *record
                == Record::InterruptEnter {
                    cpu: cpu(number),
                    interrupt: Interrupt::Timer,
                }
        });
        assert_eq!(ticks.count(), 100, "cpu{number}");
    }
    // The last tick of the hog's CPU has just begun, or is just over.
    let interrupted = story.spent(1, Mode::Interrupt).as_us();
    assert!((99..=100).contains(&interrupted), "{interrupted} us");
    let hog = story.spent(0, Mode::User) + story.spent(1, Mode::User);
    assert!(
        hog < Duration::from_us(999_902),
        "interrupts took their time from it: {hog}"
    );
}

#[test]
fn a_wakeup_for_another_cpu_costs_both_an_interrupt() {
    let story = stage(2)
        .costs(costs(&[
            ("reschedule_interrupt", 600),
            ("interrupt_entry", 400),
            ("interrupt_exit", 200),
        ]))
        .until_ms(4)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.socket_pair(Bytes(100))?;
            boot.task(
                called("waker").bound([cpu(0)]),
                move |task: Task| async move {
                    task.compute(us(1_000)).await;
                    task.send(near, Bytes(10)).await;
                    task.compute(us(1_000)).await;
                },
            )?;
            boot.task(
                called("woken").bound([cpu(1)]),
                move |task: Task| async move {
                    task.receive(far, Bytes(10)).await;
                },
            )?;
            Ok(())
        });
    assert_eq!(story.spent(0, Mode::Softirq).as_ns(), 600);
    assert_eq!(story.spent(1, Mode::Interrupt).as_ns(), 600);
    let sent = story
        .records()
        .iter()
        .position(|(_, record)| matches!(record, Record::RescheduleSent { .. }));
    let (at, _) = story.records()[sent.expect("one is sent")];
    assert_eq!(
        at - Instant::START,
        Duration::from_ns(1_000_600),
        "when the sender is done"
    );
}

#[test]
fn figures_can_start_anew_in_the_middle() {
    let mut kernel = stage(2)
        .costs(some_costs())
        .boot(|boot: &mut Boot<'_>| -> Started {
            for _ in 0..5 {
                boot.task(called("hog"), |task: Task| async move {
                    task.compute(us(10_000_000)).await;
                })?;
            }
            Ok(())
        })
        .unwrap();
    let ms = |ms| Instant::START + Duration::from_ms(ms);
    assert_eq!(kernel.run_until(ms(333)), Ending::TimeUp);
    kernel.reset_figures();
    assert_eq!(kernel.run_until(ms(1_000)), Ending::TimeUp);
    assert_eq!(kernel.measured(), Duration::from_ms(667));
    for spent in kernel.spent_by_cpu() {
        assert_eq!(spent.into_iter().sum::<Duration>(), Duration::from_ms(667));
    }
    assert_eq!(kernel.runnable(), 5);
}

/// The times of the first two ticks of each of two busy CPUs, in microseconds.
fn ticks(settings: Settings, steals: &[Steal]) -> Vec<Vec<u64>> {
    let mut on = stage(2).until_ms(25);
    on.machine.steals = steals.to_vec();
    on.settings = Settings {
        caches: false,
        ..settings
    };
    let story = on.plays(|boot: &mut Boot<'_>| bound_hogs(boot, 2, 100));
    let on = |cpu: u16| {
        let enters = story
            .records()
            .iter()
            .filter_map(move |(at, record)| match record {
                Record::InterruptEnter {
                    cpu: on,
                    interrupt: Interrupt::Timer,
                } if on.0 == cpu => Some((*at - Instant::START).as_us()),
                _ => None,
            });
        enters.take(2).collect()
    };
    (0..2).map(on).collect()
}

#[test]
fn ticks_of_linux_6_come_at_the_same_time_where_something_is_random_and_else_in_turn() {
    let rare = Steal {
        every: Duration::from_s(1_000),
        span: Duration::from_ns(1),
    };
    let now = Settings::linux6(Seed(1));
    let then = Settings::linux24(Seed(1));
    assert_eq!(
        ticks(now.clone(), &[rare]),
        [[4_000, 8_000], [4_000, 8_000]]
    );
    assert_eq!(ticks(now, &[]), [[2_000, 6_000], [4_000, 8_000]]);
    assert_eq!(ticks(then, &[rare]), [[5_000, 15_000], [10_000, 20_000]]);
}

#[test]
fn where_in_a_period_the_work_begins_is_drawn_from_the_seed() {
    let settings = |seed| Settings {
        drawn_ticks: true,
        ..Settings::linux6(Seed(seed))
    };
    let first = |seed| ticks(settings(seed), &[])[1][0];
    let drawn: Vec<u64> = (0..64).map(first).collect();
    assert!(drawn.iter().all(|&at| at <= 4_000), "{drawn:?}");
    let quarter = |which| drawn.iter().filter(|&at| at / 1_000 == which).count();
    assert!((0..4).all(|which| quarter(which) >= 8), "{drawn:?}");
}
