//! Spin locks of user space, whose holders and whose spinners can be preempted.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use warmq_kernel::*;
use warmq_units::{Duration, Instant, Seed};

use crate::support::*;

const PAUSE: Duration = Duration::from_us(2);
const FOR_EVER: u64 = Looked::MOST;

/// A task on `on` that comes after `comes_us`, looks `looks` times, holds the lock for `holds_us`,
/// and says what it got.
fn user(
    boot: &mut Boot<'_>,
    (name, on): (&'static str, u16),
    lock: Spinlock,
    (comes_us, looks, holds_us): (u64, u64, u64),
    said: &Said,
) -> Started {
    let said = said.clone();
    boot.task(
        called(name).bound([cpu(on)]),
        move |task: Task| async move {
            task.compute(us(comes_us)).await;
            let Looked { taken, left } = task.look(lock, looks, PAUSE).await;
            let at = (task.now().await - Instant::START).as_us();
            let used = looks - left;
            said.say(format!("{name} {taken} {used} at {at}"));
            if taken {
                task.compute(us(holds_us)).await;
                task.release(lock).await;
            }
        },
    )
    .map(|_| ())
}

/// A user's name and CPU; when it comes, how often it looks and how long it holds the lock.
type User = ((&'static str, u16), (u64, u64, u64));

/// Plays users of one lock; returns what they say.
fn users(stage: Stage, users: &[User]) -> (Story, Vec<String>) {
    let said = Said::default();
    let speaker = said.clone();
    let users = users.to_vec();
    let story = stage.plays(move |boot: &mut Boot<'_>| -> Started {
        let lock = boot.spinlock()?;
        users
            .iter()
            .try_for_each(|(who, how)| user(boot, *who, lock, *how, &speaker))
    });
    (story, said.all())
}

#[test]
fn a_lock_is_taken_at_the_first_look_after_its_release() {
    let (story, said) = users(
        stage(3),
        &[
            (("holder", 0), (0, 0, 100)),
            // It looks at 31, 33, ... 99, 101.
            (("odd", 1), (31, FOR_EVER, 10)),
            // It looks at 32, ... 100: no look sees what happens at the same time.
            (("even", 2), (32, FOR_EVER, 10)),
        ],
    );
    let expected = [
        "holder true 0 at 0",
        "odd true 35 at 101",
        // It has looked at 102, ... 110; the lock is free from 111 on.
        "even true 40 at 112",
    ];
    assert_eq!(said, expected);
    assert_eq!(
        story.spent(1, Mode::User),
        Duration::from_us(111),
        "who looks computes"
    );
}

#[test]
fn looks_in_vain_end_after_as_many_as_were_asked_for() {
    let (story, said) = users(
        stage(3),
        &[
            (("holder", 0), (0, 0, 100)),
            (("once", 1), (10, 0, 0)),
            (("ten", 2), (20, 10, 0)),
        ],
    );
    let expected = [
        "holder true 0 at 0",
        "once false 0 at 10",
        "ten false 10 at 40",
    ];
    assert_eq!(said, expected);
    assert_eq!(story.exit_us(2), 40);
}

#[test]
fn a_holder_that_is_preempted_costs_its_spinner_the_time_until_it_is_back() {
    // The ticks of CPU 0, which are turns, are at 5, 15, 25 ms: the holder is back at 15.
    let (story, said) = users(
        stage(2),
        &[
            (("holder", 0), (0, 0, 12_000)),
            (("other", 0), (0, FOR_EVER, 0)),
            (("spinner", 1), (1, FOR_EVER, 0)),
        ],
    );
    let expected = [
        "holder true 0 at 0",
        // On the holder's CPU the other spins for a whole turn, and goes on when it is over.
        "other true 5000 at 22000",
        // Its tick at 10 ms ended a look half-way.
        "spinner true 11000 at 22002",
    ];
    assert_eq!(said, expected);
    assert_eq!(story.turns(0)[..4], [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(story.spent(0, Mode::User), Duration::from_us(22_000));
}

#[test]
fn who_is_interrupted_while_it_spins_looks_as_soon_as_it_runs_again() {
    // The tick of CPU 0 is at 5 ms, and takes 700 us.
    let ticking = || stage(2).costs(costs(&[("timer_tick", 700_000)]));
    let before = [
        (("spinner", 0), (1, FOR_EVER, 0)),
        (("holder", 1), (0, 0, 4_000)),
    ];
    let (_, said) = users(ticking(), &before);
    assert_eq!(said[1], "spinner true 2000 at 4001");
    let meanwhile = [
        (("spinner", 0), (1, FOR_EVER, 0)),
        (("holder", 1), (0, 0, 5_300)),
    ];
    let (_, said) = users(ticking(), &meanwhile);
    assert_eq!(said[1], "spinner true 2499 at 5700");
}

#[test]
fn siblings_of_a_core_slow_down_each_others_looks() {
    let mut on = stage(2);
    on.machine.smt_speed = 500;
    on.machine.cpus[1].core = 0;
    let (_, said) = users(
        on,
        &[
            (("holder", 0), (0, 0, 51)),
            // It comes at 20; it looks each 4 us while the holder runs, until 102. What is
            // left of the last is twice as fast.
            (("spinner", 1), (10, FOR_EVER, 0)),
        ],
    );
    assert_eq!(said[1], "spinner true 21 at 103");
}

/// Tasks on CPUs of their own that take a lock and sleep in its futex while it is held. Returns
/// how the run went, and the time in the kernel.
fn sleepers(tasks: u16, holds_us: u64) -> (Story, Duration) {
    let on = stage(tasks).costs(costs(&[("system_call", 1_000)]));
    let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
        let lock = boot.spinlock()?;
        for number in 0..tasks {
            boot.task(
                called("user").bound([cpu(number)]),
                move |task: Task| async move {
                    task.compute(us(number.into())).await;
                    if !task.look(lock, 0, PAUSE).await.taken {
                        task.sleep_for_spinlock(lock).await;
                    }
                    task.compute(us(holds_us)).await;
                    task.release(lock).await;
                },
            )?;
        }
        Ok(())
    });
    let kernel = (0..tasks).map(|cpu| story.spent(cpu, Mode::System)).sum();
    (story, kernel)
}

#[test]
fn a_release_wakes_one_that_sleeps() {
    let (story, _) = sleepers(3, 100);
    assert_eq!(story.ending, Ending::WorkDone);
    // Each is woken by a system call of the one before, which it takes 1 us to make.
    let exits = [0, 1, 2].map(|task| story.exit_us(task));
    assert_eq!(exits, [101, 202, 303]);
}

#[test]
fn a_free_lock_costs_no_system_call() {
    assert_eq!(sleepers(1, 100).1, Duration::ZERO);
    assert!(sleepers(2, 100).1 > Duration::ZERO);
}

#[test]
fn who_releases_a_lock_of_somebody_else_ends_the_run() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        let lock = boot.spinlock()?;
        boot.task(called("one"), move |task: Task| async move {
            task.release(lock).await;
        })?;
        Ok(())
    });
    let Ending::ProgramBroke { misuse, .. } = story.ending else {
        panic!("{:?}", story.ending);
    };
    assert_eq!(
        misuse.to_string(),
        "unlocked spin lock 0, which is not locked"
    );
}

/// What a task of a random run does again and again: how long it computes, how often it looks, how
/// long it holds the lock, and whether it then sleeps in the futex or yields.
type Habit = (u64, u64, u64, bool);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever is preempted or interrupted where, one task at a time holds a lock, all get it in
    /// the end, and two runs are the same.
    #[test]
    fn one_task_at_a_time_holds_a_lock(
        cpus in 1_u16..4, shared in any::<bool>(),
        habits in prop::collection::vec((1_u64..3_000, 0_u64..2_000, 1_u64..3_000, any::<bool>()), 1..6)
    ) {
        let run = || {
            let (inside, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let (habits, highest): (Vec<Habit>, _) = (habits.clone(), most.clone());
            let mut on = stage(cpus).costs(some_costs()).with_caches();
            on.settings.seed = Seed(u64::from(cpus));
            if shared {
                on.machine.smt_speed = 600;
                on.machine.cpus.iter_mut().for_each(|place| place.core = 0);
            }
            let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
                let lock = boot.spinlock()?;
                for (comes, looks, holds, sleeps) in habits.clone() {
                    let (inside, highest) = (inside.clone(), highest.clone());
                    boot.task(called("user"), move |task: Task| async move {
                        for _ in 0..20 {
                            task.compute(us(comes)).await;
                            while !task.look(lock, looks, PAUSE).await.taken {
                                if sleeps {
                                    task.sleep_for_spinlock(lock).await;
                                    break;
                                }
                                task.yield_now().await;
                            }
                            inside.set(inside.get() + 1);
                            highest.set(inside.get().max(highest.get()));
                            task.compute(us(holds)).await;
                            inside.set(inside.get() - 1);
                            task.release(lock).await;
                        }
                    })?;
                }
                Ok(())
            });
            (story.ending.clone(), most.get(), story.kernel.observer().digest.value())
        };
        let first = run();
        prop_assert_eq!((&first.0, first.1), (&Ending::WorkDone, 1));
        prop_assert_eq!(run(), first);
    }
}

/// A busy sibling stretches looks to a time that is rounded: of many looks that are asked for, a
/// few are counted right.
#[test]
fn looks_beside_a_busy_sibling_are_counted_right() {
    let mut on = stage(2);
    on.machine.smt_speed = 610;
    on.machine.cpus.iter_mut().for_each(|place| place.core = 0);
    let used = Rc::new(Cell::new(0));
    let counted = used.clone();
    on.plays(move |boot: &mut Boot<'_>| -> Started {
        let (lock, counted) = (boot.spinlock()?, counted.clone());
        boot.task(
            called("holder").bound([cpu(0)]),
            move |task: Task| async move {
                task.look(lock, 0, PAUSE).await;
                task.compute(us(100)).await;
                task.release(lock).await;
            },
        )?;
        boot.task(
            called("spinner").bound([cpu(1)]),
            move |task: Task| async move {
                task.compute(us(99)).await;
                let pause = Duration::from_ns(38);
                let looked = task.look(lock, FOR_EVER, pause).await;
                counted.set(FOR_EVER - looked.left);
            },
        )?;
        Ok(())
    });
    // A microsecond has 26.3 looks.
    assert_eq!(used.get(), 27);
}
