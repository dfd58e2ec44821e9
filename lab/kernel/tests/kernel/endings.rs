//! How a run can end, and what the ending reports.

use warmq_kernel::*;
use warmq_units::{Bytes, CpuId, Duration, Instant, LockId, TaskId};

use crate::round_robin::*;
use crate::support::*;

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    PicksNobody,
    PicksTheDead,
    PicksASleeper,
    PicksWhoRunsElsewhere,
    PicksWhereForbidden,
    WakesWhereForbidden,
    WakesNowhere,
    ReschedulesNowhere,
    TriesForEver,
    UnlocksWhatItHasNot,
    KeepsALock,
    Forgets,
}

/// Round robin with a fault that shows from 5 ms on.
struct Bad {
    fault: Fault,
    other_lock: LockId,
}

fn bad(fault: Fault) -> MakeScheduler {
    hooked(move |attach| Bad {
        fault,
        other_lock: attach.lock("other"),
    })
}

impl Bad {
    fn shows(&self, context: &Context<'_>, fault: Fault) -> bool {
        self.fault == fault && context.now() >= Instant::START + Duration::from_ms(5)
    }
}

impl Hooks for Bad {
    fn select_cpu(&mut self) -> Option<CpuId> {
        match self.fault {
            Fault::WakesWhereForbidden => Some(cpu(1)),
            Fault::WakesNowhere => Some(cpu(64)),
            _ => None,
        }
    }

    fn enqueue(&mut self, context: &mut Context<'_>, _: Why) -> bool {
        !self.shows(context, Fault::Forgets)
    }

    fn pick_next(&mut self, context: &mut Context<'_>) -> Option<Pick> {
        let shows = |fault| self.shows(context, fault);
        let runs = |task| context.task(TaskId(task)).on_cpu() == Some(cpu(0));
        if shows(Fault::PicksNobody) {
            return Some(Pick::Task(TaskId(77)));
        } else if shows(Fault::PicksTheDead) {
            return Some(Pick::Task(TaskId(2)));
        } else if shows(Fault::PicksASleeper) {
            return Some(Pick::Task(TaskId(1)));
        } else if shows(Fault::TriesForEver) {
            return Some(Pick::Retry);
        } else if shows(Fault::PicksWhoRunsElsewhere) && runs(0) && context.cpu() == cpu(1) {
            return Some(Pick::Task(TaskId(0)));
        } else if shows(Fault::PicksWhereForbidden) && !runs(3) && context.cpu() == cpu(1) {
            return Some(Pick::Task(TaskId(3)));
        } else if shows(Fault::UnlocksWhatItHasNot) {
            context.unlock(self.other_lock);
        } else if shows(Fault::KeepsALock) {
            assert!(context.try_lock(self.other_lock));
        } else if shows(Fault::ReschedulesNowhere) {
            context.reschedule(cpu(9));
        }
        None
    }

    fn tick(&mut self, context: &mut Context<'_>) -> bool {
        context.reschedule(context.cpu());
        false
    }
}

/// Task 0 computes on CPU 0, task 1 sleeps for 30 ms, task 2 has exited, and task 3 may run on CPU
/// 0 only.
fn play(fault: Fault) -> Ending {
    let story = stage(2)
        .under(bad(fault))
        .plays_badly(|boot: &mut Boot<'_>| -> Started {
            let here = [cpu(0)];
            boot.task(called("hog").bound(here), |task: Task| async move {
                task.compute(us(500_000)).await;
            })?;
            boot.task(called("sleeper").bound(here), |task: Task| async move {
                task.sleep(Duration::from_ms(30)).await;
            })?;
            boot.task(called("dead").bound(here), |_: Task| async move {})?;
            boot.task(called("bound").bound(here), |task: Task| async move {
                task.compute(us(500_000)).await;
            })?;
            Ok(())
        });
    story.ending
}

#[test]
fn each_rule_that_a_scheduler_breaks_is_named() {
    let task = TaskId;
    for (fault, rule, said) in [
        (
            Fault::PicksNobody,
            Rule::PickedNobody(task(77)),
            "picked task77, which does not exist",
        ),
        (
            Fault::PicksTheDead,
            Rule::PickedNobody(task(2)),
            "picked task2, which does not exist",
        ),
        (
            Fault::PicksASleeper,
            Rule::PickedSleeper(task(1)),
            "picked task1, which is not runnable",
        ),
        (
            Fault::PicksWhereForbidden,
            Rule::CpuNotAllowed(task(3)),
            "chose a CPU that the affinity of task3 forbids",
        ),
        (
            Fault::PicksWhoRunsElsewhere,
            Rule::PickedRunning(task(0), cpu(0)),
            "picked task0, which runs on cpu0",
        ),
        (
            Fault::WakesWhereForbidden,
            Rule::CpuNotAllowed(task(1)),
            "chose a CPU that the affinity of task1 forbids",
        ),
        (
            Fault::WakesNowhere,
            Rule::NoSuchCpu(cpu(64)),
            "chose cpu64, which the machine lacks",
        ),
        (
            Fault::ReschedulesNowhere,
            Rule::NoSuchCpu(cpu(9)),
            "chose cpu9, which the machine lacks",
        ),
        (
            Fault::TriesForEver,
            Rule::TriedTooOften,
            "asked to pick again without end",
        ),
        (
            Fault::UnlocksWhatItHasNot,
            Rule::NotTheHolder,
            "released a lock that it does not hold",
        ),
        (
            Fault::KeepsALock,
            Rule::KeptLock,
            "kept a lock beyond the callback that took it",
        ),
    ] {
        let ending = play(fault);
        let Ending::SchedulerBroke(violation) = &ending else {
            panic!("{said}: {ending}");
        };
        assert_eq!(violation.rule, rule);
        assert!(violation.at >= Instant::START + Duration::from_ms(5));
        assert!(
            ending.to_string().ends_with(&format!("it {said}")),
            "{ending}"
        );
    }
}

#[test]
fn an_ending_stays() {
    let mut kernel = stage(2)
        .under(bad(Fault::PicksNobody))
        .boot(|boot: &mut Boot<'_>| -> Started {
            boot.task(called("hog"), |task: Task| async move {
                task.compute(us(500_000)).await;
            })?;
            Ok(())
        })
        .unwrap();
    let first = kernel.run_until(Instant::START + Duration::from_s(1));
    let now = kernel.now();
    assert!(matches!(first, Ending::SchedulerBroke(_)));
    assert_eq!(
        kernel.run_until(Instant::START + Duration::from_s(2)),
        first
    );
    assert_eq!(kernel.now(), now);
}

#[test]
fn a_task_that_the_scheduler_forgets_is_found_and_named() {
    let ending = play(Fault::Forgets);
    let Ending::Stalled(Stall::NeverRan {
        task,
        comm,
        since,
        waited,
    }) = &ending
    else {
        panic!("{ending}");
    };
    assert_eq!((*task, comm.as_str()), (TaskId(1), "sleeper"));
    assert_eq!(*since, Instant::START + Duration::from_ms(40));
    assert!(*waited > Duration::from_s(5), "the stage's patience");
    assert_eq!(
        ending.to_string(),
        "stalled: task1 (sleeper) is runnable since 40.000 ms and never ran: 6.210 s"
    );
}

#[test]
fn work_done_and_time_up_are_distinguished() {
    let hog = |boot: &mut Boot<'_>| -> Started {
        boot.task(called("hog"), |task: Task| async move {
            task.compute(us(5_000)).await;
        })?;
        Ok(())
    };
    let story = stage(1).until_ms(5).plays(hog);
    assert_eq!(story.ending, Ending::WorkDone, "just in time");
    let story = stage(1).until_ms(4).plays(hog);
    assert_eq!(story.ending, Ending::TimeUp);
    assert_eq!(story.kernel.now(), Instant::START + Duration::from_ms(4));
    let empty = stage(1).plays(|_: &mut Boot<'_>| -> Started { Ok(()) });
    assert_eq!(empty.ending, Ending::WorkDone);
}

#[test]
fn a_loop_without_time_is_found() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("looper"), |task: Task| async move {
            task.compute(us(100)).await;
            loop {
                task.yield_now().await;
            }
        })?;
        Ok(())
    });
    assert_eq!(
        story.ending.to_string(),
        "stalled: looper works without end while time stands still at 100.000 us"
    );
}

#[test]
fn a_loop_without_time_over_two_cpus_is_found() {
    let story = stage(2).plays_badly(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(100))?;
        for (number, end) in [(0, near), (1, far)] {
            boot.task(
                called("player").bound([cpu(number)]),
                move |task: Task| async move {
                    loop {
                        task.send(end, Bytes(1)).await;
                        task.receive(end, Bytes(1)).await;
                    }
                },
            )?;
        }
        Ok(())
    });
    assert!(
        matches!(story.ending, Ending::Stalled(Stall::NoProgress { .. })),
        "{}",
        story.ending
    );
}

#[test]
fn a_client_that_loops_without_time_is_found() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("hog"), |task: Task| async move {
            task.compute(us(100)).await;
        })?;
        boot.remote(|client: RemotePeer| async move {
            loop {
                client.pause(Duration::ZERO).await;
            }
        });
        Ok(())
    });
    assert_eq!(
        story.ending.to_string(),
        "stalled: client 0 works without end while time stands still at 0 ps"
    );
}

#[test]
fn who_waits_for_ever_is_named_with_what_it_waits_for() {
    let story = stage(2).plays_badly(|boot: &mut Boot<'_>| -> Started {
        let (mutex, held) = (boot.mutex(), boot.mutex());
        let condition = boot.condition();
        let (near, far) = boot.socket_pair(Bytes(10))?;
        let listener = boot.listener();
        boot.task(called("holder"), move |task: Task| async move {
            task.lock(held).await;
            task.lock(mutex).await;
            task.wait(condition, mutex).await;
        })?;
        boot.task(called("locker"), move |task: Task| async move {
            task.compute(us(10)).await;
            task.lock(held).await;
        })?;
        boot.task(called("reader"), move |task: Task| async move {
            task.receive(near, Bytes(1)).await;
        })?;
        boot.task(called("writer"), move |task: Task| async move {
            task.send(near, Bytes(11)).await;
        })?;
        boot.task(called("acceptor"), move |task: Task| async move {
            task.accept(listener).await;
        })?;
        boot.task(called("sixth"), move |task: Task| async move {
            task.receive(far, Bytes(10)).await;
            task.receive(near, Bytes(1)).await;
        })?;
        Ok(())
    });
    let Ending::Stalled(Stall::WaitsForEver { who, tasks, .. }) = &story.ending else {
        panic!("{}", story.ending);
    };
    let said: Vec<String> = who
        .iter()
        .map(|(_, comm, waiting)| format!("{comm}: {waiting}"))
        .collect();
    assert_eq!(
        said,
        [
            "holder: condition 0",
            "locker: mutex 1",
            "reader: data on socket 0",
            "acceptor: a connection on 0",
            "sixth: data on socket 0"
        ]
    );
    assert_eq!(*tasks, 5);
}

#[test]
fn a_fork_that_finds_no_memory_ends_the_run() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("forker"), |task: Task| async move {
            loop {
                let child = |child: Task| async move { child.sleep(Duration::from_s(9)).await };
                task.spawn(called("child"), child).await;
                task.compute(us(1)).await;
            }
        })?;
        Ok(())
    });
    assert!(
        matches!(story.ending, Ending::MemoryFull { .. }),
        "{}",
        story.ending
    );
}

#[test]
fn a_workload_that_does_not_fit_is_refused_at_boot() {
    let boot = stage(1).boot(|boot: &mut Boot<'_>| -> Started {
        boot.region(Bytes::from_mb(9))?;
        Ok(())
    });
    let error = boot.err().expect("8 MB do not hold 9").to_string();
    assert!(
        error.starts_with("the workload does not fit into the machine: "),
        "{error}"
    );
}

#[test]
fn a_cost_that_is_missing_is_named_at_boot() {
    let mut table = Costs::free().table().clone();
    table.remove("fork");
    let boot = stage(1)
        .costs(Costs::new(table))
        .boot(|_: &mut Boot<'_>| -> Started { Ok(()) });
    assert_eq!(
        boot.err().expect("no cost of a fork").to_string(),
        "the machine gives no cost `fork`: add `fork = { cycles = N, source = \"...\" }` to its costs"
    );
}
