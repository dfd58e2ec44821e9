//! Mutexes, conditions and barriers.

use std::cell::Cell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_units::Duration;

use crate::support::*;

#[test]
fn a_mutex_is_handed_on_in_the_order_of_asking() {
    let said = Said::default();
    let speaker = said.clone();
    let story = stage(4).plays(move |boot: &mut Boot<'_>| -> Started {
        let mutex = boot.mutex();
        for (number, name) in ["one", "two", "three", "four"].into_iter().enumerate() {
            let said = speaker.clone();
            boot.task(called(name), move |task: Task| async move {
                task.compute(us(10 * number as u64)).await;
                task.lock(mutex).await;
                said.say(format!("{name} in"));
                task.compute(us(100)).await;
                said.say(format!("{name} out"));
                task.unlock(mutex).await;
            })?;
        }
        Ok(())
    });
    let expected = ["one", "two", "three", "four"]
        .iter()
        .flat_map(|name| [format!("{name} in"), format!("{name} out")]);
    assert_eq!(said.all(), expected.collect::<Vec<_>>());
    assert_eq!(
        story.exit_us(3),
        400,
        "no task waits for more than the others' 100 us each"
    );
}

#[test]
fn a_free_mutex_costs_no_system_call() {
    let story = stage(1)
        .costs(costs(&[("lock_uncontended", 40), ("system_call", 1_000)]))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let mutex = boot.mutex();
            boot.task(called("one"), move |task: Task| async move {
                task.lock(mutex).await;
            })?;
            Ok(())
        });
    assert_eq!(story.spent(0, Mode::User).as_ns(), 40);
    assert_eq!(story.spent(0, Mode::System).as_ns(), 0);
}

/// Three tasks wait for a condition; another notifies as `notify` says. Returns which of them
/// continue.
fn woken_by(notify: fn(u32) -> bool, times: u32) -> (Ending, Vec<String>) {
    let said = Said::default();
    let speaker = said.clone();
    let story = stage(2).plays(move |boot: &mut Boot<'_>| -> Started {
        let (mutex, condition) = (boot.mutex(), boot.condition());
        for name in ["one", "two", "three"] {
            let said = speaker.clone();
            boot.task(called(name), move |task: Task| async move {
                task.lock(mutex).await;
                task.wait(condition, mutex).await;
                said.say(name);
                task.compute(us(10)).await;
                task.unlock(mutex).await;
            })?;
        }
        boot.task(called("notifier"), move |task: Task| async move {
            task.compute(us(50_000)).await;
            for time in 0..times {
                match notify(time) {
                    true => task.notify_all(condition).await,
                    false => task.notify_one(condition).await,
                }
                task.compute(us(1_000)).await;
            }
        })?;
        Ok(())
    });
    (story.ending, said.all())
}

#[test]
fn notifying_one_wakes_the_one_that_waited_longest() {
    let (ending, said) = woken_by(|_| false, 2);
    assert_eq!(said, ["one", "two"]);
    let Ending::Stalled(Stall::WaitsForEver { who, tasks, .. }) = ending else {
        panic!("the third waits for ever");
    };
    assert_eq!(
        (tasks, who[0].1.as_str(), who[0].2.to_string()),
        (1, "three", "condition 0".to_owned())
    );
    assert_eq!(
        woken_by(|_| false, 4).0,
        Ending::WorkDone,
        "a surplus notification is lost"
    );
}

#[test]
fn notifying_all_wakes_all_one_after_the_other() {
    let (ending, said) = woken_by(|_| true, 1);
    assert_eq!(
        (ending, said.join(" ")),
        (Ending::WorkDone, "one two three".to_owned())
    );
}

#[test]
fn who_locks_a_mutex_twice_waits_for_ever() {
    let story = stage(1).plays(|boot: &mut Boot<'_>| -> Started {
        let mutex = boot.mutex();
        boot.task(called("owner"), move |task: Task| async move {
            task.lock(mutex).await;
            task.lock(mutex).await;
        })?;
        Ok(())
    });
    assert!(
        matches!(story.ending, Ending::Stalled(_)),
        "{:?}",
        story.ending
    );
}

#[test]
fn a_wait_gives_the_mutex_back_and_ends_with_it() {
    let inside = Rc::new(Cell::new(0));
    let (counted, most) = (inside.clone(), Rc::new(Cell::new(0)));
    let highest = most.clone();
    stage(3)
        .costs(some_costs())
        .plays(move |boot: &mut Boot<'_>| -> Started {
            let (mutex, condition) = (boot.mutex(), boot.condition());
            for turn in 0..6 {
                let (inside, most) = (counted.clone(), highest.clone());
                let enters = move || {
                    inside.set(inside.get() + 1);
                    most.set(most.get().max(inside.get()));
                    inside.clone()
                };
                boot.task(called("member"), move |task: Task| async move {
                    task.lock(mutex).await;
                    let inside = enters();
                    task.compute(us(10)).await;
                    if turn < 3 {
                        inside.set(inside.get() - 1);
                        task.wait(condition, mutex).await;
                        enters();
                        task.compute(us(10)).await;
                    } else {
                        task.notify_one(condition).await;
                    }
                    inside.set(inside.get() - 1);
                    task.unlock(mutex).await;
                })?;
            }
            Ok(())
        });
    assert_eq!(
        (most.get(), inside.get()),
        (1, 0),
        "never two in the critical section at once"
    );
}

/// Whoever comes last wakes all others, and none of them needs anything that another one holds:
/// with a long run each after the barrier, all are past it before the first is through with its
/// run.
#[test]
fn a_barrier_lets_all_go_at_once_and_opens_again() {
    let said = Said::default();
    let speaker = said.clone();
    let story = stage(3).plays(move |boot: &mut Boot<'_>| -> Started {
        let barrier = boot.barrier(3);
        for before in [10, 20, 30] {
            let said = speaker.clone();
            boot.task(called("member"), move |task: Task| async move {
                for _ in 0..2 {
                    task.compute(us(before)).await;
                    said.say("comes");
                    task.meet(barrier).await;
                    said.say("passes");
                    task.compute(us(1_000)).await;
                    said.say("is through");
                }
            })?;
        }
        Ok(())
    });
    let round = ["comes", "passes", "is through"]
        .map(|word| [word; 3])
        .concat();
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!(said.all(), [round.clone(), round].concat());
}

/// A task waits in a futex for `timeout` at most, and another wakes it after 500 us, if `wakes`.
/// Returns how the run ended, and when the wait did, in us.
fn waits_in_a_futex(timeout: Option<u64>, wakes: bool) -> (Ending, u64) {
    let mut on = stage(2).costs(costs(&[("timer_program", 1_000)]));
    on.settings.timer_resolution = Duration::from_us(1);
    let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
        let futex = boot.condition();
        boot.task(called("waiter"), move |task: Task| async move {
            task.wait_at_most(futex, None, timeout.map(Duration::from_us))
                .await;
        })?;
        boot.task(called("waker"), move |task: Task| async move {
            task.compute(us(500)).await;
            if wakes {
                task.notify_one(futex).await;
            }
        })?;
        Ok(())
    });
    let woken = matches!(story.ending, Ending::WorkDone).then(|| story.exit_us(0));
    (story.ending, woken.unwrap_or_default())
}

#[test]
fn a_wait_ends_by_a_wakeup_or_after_its_timeout() {
    assert_eq!(waits_in_a_futex(None, true), (Ending::WorkDone, 500));
    let (_, early) = waits_in_a_futex(Some(200), true);
    assert_eq!(early, 200);
    // The timer that is not needed any more is cancelled, which takes 1 us.
    assert_eq!(waits_in_a_futex(Some(900), true).1, 501);
    // The timer's interrupt programs the next one, which takes 1 us, too.
    assert_eq!(waits_in_a_futex(Some(900), false).1, 901);
    let (ending, _) = waits_in_a_futex(None, false);
    assert!(matches!(
        ending,
        Ending::Stalled(Stall::WaitsForEver { .. })
    ));
}

#[test]
fn who_waits_for_a_condition_in_vain_has_the_mutex_again() {
    let said = Said::default();
    let speaker = said.clone();
    let story = stage(2).plays(move |boot: &mut Boot<'_>| -> Started {
        let (mutex, condition) = (boot.mutex(), boot.condition());
        let says = speaker.clone();
        boot.task(called("waiter"), move |task: Task| async move {
            task.lock(mutex).await;
            let timeout = Some(Duration::from_us(100));
            task.wait_at_most(condition, Some(mutex), timeout).await;
            says.say("in vain");
            task.unlock(mutex).await;
        })?;
        let says = speaker.clone();
        boot.task(called("holder"), move |task: Task| async move {
            task.compute(us(50)).await;
            task.lock(mutex).await;
            task.compute(us(200)).await;
            says.say("released");
            task.unlock(mutex).await;
            task.notify_all(condition).await;
        })?;
        Ok(())
    });
    assert_eq!(said.all(), ["released", "in vain"]);
    assert_eq!(story.ending, Ending::WorkDone);
}

#[test]
fn a_call_of_a_futex_costs_what_the_machine_says() {
    let took = |own| {
        let story = stage(1)
            .costs(costs(&[("system_call", 100), ("futex", own)]))
            .plays(|boot: &mut Boot<'_>| -> Started {
                let futex = boot.condition();
                boot.task(called("waker"), move |task: Task| async move {
                    task.notify_one(futex).await;
                })?;
                Ok(())
            });
        story.spent(0, Mode::System).as_ns()
    };
    assert_eq!([0, 250].map(took), [100, 350]);
}
