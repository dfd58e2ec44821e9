//! Operators, and tasks that they keep from running.

use warmq_kernel::*;
use warmq_trace::Record;
use warmq_units::{Duration, Instant, TaskId};

use crate::support::*;

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

/// A task that computes for `work` us, and says so.
fn works(boot: &mut Boot<'_>, said: &Said, work: u64) -> TaskId {
    let said = said.clone();
    let task = boot.task(called("works"), move |task: Task| async move {
        task.compute(us(work)).await;
        let now = task.now().await;
        said.say(format!("done at {} us", now.since(Instant::START).as_us()));
    });
    task.expect("a task fits")
}

#[test]
fn a_stopped_task_has_the_rest_of_its_work_when_it_continues() {
    for preemption in [Preemption::None, Preemption::Full, Preemption::Lazy] {
        let said = Said::default();
        let mut on = stage(2);
        on.settings.preemption = preemption;
        on.settings.nohz = preemption == Preemption::Lazy;
        let story = on.plays(|boot: &mut Boot<'_>| -> Started {
            let task = works(boot, &said, 50_000);
            boot.operator(at(20), move |operator| async move {
                operator.change(Change::Stop(task)).await;
                operator.until(at(70)).await;
                operator.change(Change::Continue(task)).await;
            });
            Ok(())
        });
        assert_eq!(story.ending, Ending::WorkDone);
        assert_eq!(said.all(), ["done at 100000 us"], "{preemption:?}");
    }
}

/// It is in the middle of a system call when it is stopped: that goes on, and user mode does not.
#[test]
fn a_task_in_the_kernel_stops_on_its_way_to_user_mode() {
    let said = Said::default();
    let story = stage(1).costs(costs(&[("system_call", 5_000_000)])).plays(
        |boot: &mut Boot<'_>| -> Started {
            let (mutex, saying) = (boot.mutex(), said.clone());
            let owner = boot.task(called("owner"), move |task: Task| async move {
                task.lock(mutex).await;
                task.yield_now().await;
                task.unlock(mutex).await;
                saying.say("unlocked");
            })?;
            let saying = said.clone();
            boot.operator(at(7), move |operator| async move {
                operator.change(Change::Stop(owner)).await;
                operator.until(at(100)).await;
                saying.say("continues");
                operator.change(Change::Continue(owner)).await;
            });
            Ok(())
        },
    );
    assert_eq!(story.ending, Ending::WorkDone);
    // The lock is free of charge, yielding takes until 5 ms, unlocking until 10 ms.
    assert_eq!(said.all(), ["continues", "unlocked"]);
}

#[test]
fn a_machine_on_which_everybody_is_stopped_stands_still_unless_an_operator_goes_on() {
    for nohz in [false, true] {
        for goes_on in [false, true] {
            let said = Said::default();
            let mut on = stage(1).until_ms(500);
            on.settings.nohz = nohz;
            let story = on.plays(|boot: &mut Boot<'_>| -> Started {
                let task = works(boot, &said, 20_000);
                boot.operator(at(10), move |operator| async move {
                    operator.change(Change::Stop(task)).await;
                    operator.change(Change::Nice(task, 5)).await;
                    if goes_on {
                        operator.change(Change::Continue(task)).await;
                    }
                });
                Ok(())
            });
            match goes_on {
                true => assert_eq!(story.ending, Ending::WorkDone),
                false => {
                    let reported = story.ending.to_string();
                    assert!(
                        reported.contains("(works) for a signal to continue"),
                        "{reported}"
                    );
                }
            }
        }
    }
}

/// A woken task whose group is frozen joins no queue, and a forked one neither.
#[test]
fn a_frozen_group_wakes_when_it_is_thawed() {
    let story = stage(2).plays(|boot: &mut Boot<'_>| -> Started {
        let group = boot.group(GroupId::ROOT, "g", 100);
        boot.task(called("parent"), move |task: Task| async move {
            task.compute(us(30_000)).await;
            let child = |task: Task| async move { task.compute(us(1_000)).await };
            task.spawn(called("child").group(group), child).await;
        })?;
        boot.task(called("sleeper").group(group), |task: Task| async move {
            task.sleep(Duration::from_ms(20)).await;
        })?;
        boot.operator(at(10), move |operator| async move {
            operator.change(Change::Freeze(group)).await;
            operator.until(at(60)).await;
            operator.change(Change::Thaw(group)).await;
        });
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    let woken = story
        .records()
        .iter()
        .filter_map(|(at, record)| match record {
            Record::Wakeup { task, .. } => Some((at.since(Instant::START).as_us() / 1_000, task.0)),
            _ => None,
        });
    // The first two as the run begins.
    assert_eq!(
        woken.collect::<Vec<_>>(),
        [(0, 0), (0, 1), (60, 1), (60, 2)]
    );
}

#[test]
fn what_operators_ask_for_at_a_time_takes_place_in_their_order() {
    let story = stage(1)
        .until_ms(50)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let said = Said::default();
            works(boot, &said, 50_000);
            for (place, time) in [(0, 20), (1, 10), (2, 20)] {
                boot.operator(at(time), move |operator| async move {
                    operator.count(place, 7).await;
                    operator.until(at(5)).await;
                    operator.phase(place).await;
                });
            }
            Ok(())
        });
    let reported = story.records().iter().filter_map(|(at, record)| {
        let ms = at.since(Instant::START).as_us() / 1_000;
        match record {
            Record::Count { counter, total: 7 } => Some((ms, "count", *counter)),
            Record::Phase { phase } => Some((ms, "phase", *phase)),
            _ => None,
        }
    });
    let wanted = [
        (10, "count", 1),
        (10, "phase", 1),
        (20, "count", 0),
        (20, "count", 2),
        (20, "phase", 0),
        (20, "phase", 2),
    ];
    assert_eq!(reported.collect::<Vec<_>>(), wanted);
}

#[test]
fn an_operator_that_never_waits_ends_the_run() {
    let story = stage(1)
        .until_ms(50)
        .plays_badly(|boot: &mut Boot<'_>| -> Started {
            works(boot, &Said::default(), 1_000_000);
            boot.operator(at(1), |operator| async move {
                loop {
                    operator.count(0, 0).await;
                }
            });
            Ok(())
        });
    assert!(matches!(
        story.ending,
        Ending::Stalled(Stall::NoProgress { task: None, .. })
    ));
}
