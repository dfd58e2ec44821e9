//! System calls of tasks, apart from sockets and locks.

use warmq_kernel::*;
use warmq_machine::Fragmentation;
use warmq_trace::Record;
use warmq_units::{Bytes, CpuSet, Cycles, Duration, TaskId};

use crate::round_robin::*;
use crate::support::*;

#[test]
fn computing_takes_its_cycles_and_nothing_else() {
    let story = stage(1).plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("one"), |task: Task| async move {
            task.compute(us(1_500)).await;
            task.compute(us(0)).await;
            task.compute(us(500)).await;
        })?;
        Ok(())
    });
    assert_eq!(
        (story.ending.clone(), story.exit_us(0)),
        (Ending::WorkDone, 2_000)
    );
    assert_eq!(story.spent(0, Mode::User), Duration::from_us(2_000));
}

#[test]
fn a_preempted_computation_goes_on_where_it_stopped() {
    let story = stage(1).plays(|boot: &mut Boot<'_>| -> Started {
        for name in ["one", "two"] {
            boot.task(called(name), |task: Task| async move {
                task.compute(us(25_000)).await;
            })?;
        }
        Ok(())
    });
    // Turns of ten milliseconds: 1 2 1 2 1 2, the last two half as long.
    assert_eq!((story.exit_us(0), story.exit_us(1)), (45_000, 50_000));
    assert_eq!(story.turns(0)[..6], [0, 1, 0, 1, 0, 1].map(Some));
    let figures = story.task(0);
    assert_eq!((figures.voluntary, figures.involuntary), (1, 2));
    assert_eq!(figures.ran, Duration::from_ms(25));
}

#[test]
fn an_access_of_a_program_costs_what_the_machine_says_besides_its_own_work() {
    let story = stage(1)
        .costs(costs(&[("access", 300)]))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let region = boot.region(Bytes::from_kb(8))?;
            boot.task(called("toucher"), move |task: Task| async move {
                let touch = Touch::read(region, 0, 64);
                task.touch(touch).await;
                task.touch(touch.working(Cycles(200))).await;
            })?;
            Ok(())
        });
    assert_eq!(
        story.spent(0, Mode::User),
        Duration::from_ns(64 * (300 + 500))
    );
}

#[test]
fn each_line_is_touched_once_and_waited_for() {
    let touched = |cpus, lines: u64, access: fn(Touch) -> Touch| {
        stage(cpus)
            .with_caches()
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let region = boot.region(Bytes::from_kb(8))?;
                boot.task(called("toucher"), move |task: Task| async move {
                    task.touch(access(Touch::read(region, 0, lines))).await;
                    task.touch(access(Touch::read(region, 0, lines))).await;
                })?;
                Ok(())
            })
    };
    // Cold misses: 100 ns of memory and 20 ns of the bus each; overlapping bus times may shorten
    // this, but never below memory's latency.
    let cold = touched(1, 64, |touch| touch);
    assert!(cold.spent(0, Mode::User) >= Duration::from_ns(64 * 100));
    assert_eq!(
        cold.kernel.accesses(Within::Elsewhere).by_memory,
        64 + first_stack()
    );
    // The second round of 2 KB hits the cache of 4 KB; so do the lock's second user and the store
    // that releases it.
    assert_eq!(cold.kernel.accesses(Within::Elsewhere).by_level[0], 64 + 2);
    assert!(cold.spent(0, Mode::User) < Duration::from_ns(64 * 150));
    let around = touched(1, 1, |touch| Touch {
        lines: 64,
        stride: 256,
        ..touch
    });
    assert_eq!(
        around.kernel.accesses(Within::Elsewhere).by_memory,
        1 + first_stack(),
        "a stride of the region's size comes back to the same line"
    );
    let worked = touched(1, 64, |touch| touch.working(Cycles(500)));
    assert_eq!(
        worked.spent(0, Mode::User),
        cold.spent(0, Mode::User) + Duration::from_us(64)
    );
}

/// Cold misses of a run besides those of its program: the lock's line, and the top of the kernel
/// stack (6 lines).
fn first_stack() -> u64 {
    7
}

#[test]
fn a_sleep_ends_at_the_first_jiffy_that_is_late_enough() {
    for (asleep_us, from_us, woken_us) in [
        (1, 0, 10_000),
        (10_000, 0, 10_000),
        (10_001, 0, 20_000),
        (9_000, 3_000, 20_000),
    ] {
        let story = stage(1).plays(move |boot: &mut Boot<'_>| -> Started {
            boot.task(called("sleeper"), move |task: Task| async move {
                task.compute(us(from_us)).await;
                task.sleep(Duration::from_us(asleep_us)).await;
            })?;
            Ok(())
        });
        assert_eq!(
            story.exit_us(0),
            woken_us,
            "{asleep_us} us from {from_us} us on"
        );
        let figures = story.task(0);
        assert_eq!(figures.voluntary, 2, "to sleep, and to exit");
    }
}

#[test]
fn who_yields_lets_the_others_run_first() {
    let said = Said::default();
    let (one, two) = (said.clone(), said.clone());
    stage(1).plays(move |boot: &mut Boot<'_>| -> Started {
        for (name, said) in [("one", one.clone()), ("two", two.clone())] {
            boot.task(called(name), move |task: Task| async move {
                for _ in 0..3 {
                    said.say(name);
                    task.compute(us(10)).await;
                    task.yield_now().await;
                }
            })?;
        }
        Ok(())
    });
    assert_eq!(said.all(), ["one", "two", "one", "two", "one", "two"]);
}

#[test]
fn a_child_runs_beside_its_parent_and_both_exit_once() {
    let story = stage(2)
        .costs(costs(&[("fork", 5_000), ("exit", 4_000)]))
        .plays(|boot: &mut Boot<'_>| -> Started {
            boot.task(called("parent"), |task: Task| async move {
                let child = task
                    .spawn(called("child"), |child: Task| async move {
                        child.compute(us(100)).await;
                    })
                    .await;
                assert_eq!(child, TaskId(1));
                task.compute(us(100)).await;
            })?;
            Ok(())
        });
    // The child exists after 5 us; both compute at once on two CPUs, and are gone 4 us later.
    assert_eq!((story.exit_us(0), story.exit_us(1)), (109, 109));
    let forks: Vec<_> = story
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Fork { parent, child, .. } => Some((parent.map(|parent| parent.0), child.0)),
            _ => None,
        })
        .collect();
    assert_eq!(forks, [(None, 0), (Some(0), 1)]);
}

#[test]
fn a_new_process_begins_with_page_faults_and_a_new_thread_does_not() {
    let story = stage(2)
        .costs(costs(&[
            ("fork", 5_000),
            ("fork_faults", 30_000),
            ("exit", 4_000),
        ]))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (own, other) = (boot.mm(), boot.mm());
            let parent = TaskSpec::new("parent", Some(own));
            boot.task(parent, move |task: Task| async move {
                for mm in [own, other] {
                    let child = TaskSpec::new("child", Some(mm));
                    task.spawn(child, |child: Task| async move {
                        child.compute(us(100)).await;
                    })
                    .await;
                    task.sleep(Duration::from_us(500)).await;
                }
            })?;
            Ok(())
        });
    // The second sleep ends with a tick of 100 Hz, 10 ms.
    assert_eq!((story.exit_us(1), story.exit_us(2)), (109, 10_139));
}

#[test]
fn the_memory_of_the_dead_is_used_again() {
    let mut stage = stage(1);
    stage.settings.fragmentation = Fragmentation::Fresh;
    // 8 MB hold a thousand blocks of 8 KB; three thousand tasks run one after another.
    let story = stage.plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("parent"), |task: Task| async move {
            for _ in 0..3_000 {
                task.spawn(called("child"), |child: Task| async move {
                    child.compute(us(1)).await;
                })
                .await;
                task.yield_now().await;
                task.yield_now().await;
            }
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
}

#[test]
fn affinity_binds_from_birth_and_whenever_it_is_set() {
    let story = stage(3).plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("mover").bound([cpu(2)]), |task: Task| async move {
            task.compute(us(100)).await;
            task.change(Change::Affinity(task.id(), CpuSet::from_iter([cpu(1)])))
                .await;
            task.compute(us(100)).await;
            task.spawn(called("child").bound([cpu(0)]), |child: Task| async move {
                child.compute(us(50)).await;
            })
            .await;
        })?;
        Ok(())
    });
    assert_eq!(story.spent(2, Mode::User), Duration::from_us(100));
    assert_eq!(story.spent(1, Mode::User), Duration::from_us(100));
    assert_eq!(story.spent(0, Mode::User), Duration::from_us(50));
}

#[test]
fn an_affinity_for_no_cpu_of_the_machine_is_refused() {
    let story = stage(2).plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("one").bound([cpu(9)]), |task: Task| async move {
            task.change(Change::Affinity(task.id(), CpuSet::from_iter([])))
                .await;
            task.change(Change::Affinity(task.id(), CpuSet::from_iter([cpu(7)])))
                .await;
            task.sleep(Duration::from_ms(1)).await;
            task.change(Change::Affinity(
                task.id(),
                CpuSet::from_iter([cpu(7), cpu(1)]),
            ))
            .await;
            task.compute(us(100)).await;
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!(story.spent(1, Mode::User), Duration::from_us(100));
}

#[test]
fn the_scheduler_learns_of_a_new_nice_value() {
    struct Nosy(Said);
    impl Hooks for Nosy {
        fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
            self.0.say(format!("{task} {}", context.task(task).nice()));
        }
        fn exit(&mut self, task: TaskId) {
            self.0.say(format!("{task} exits"));
        }
    }
    let said = Said::default();
    let nosy = Nosy(said.clone());
    stage(1)
        .under(hooked(|_| nosy))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let other = boot.task(called("other").nice(-99), |task: Task| async move {
                task.compute(us(1)).await;
            })?;
            boot.task(called("one"), move |task: Task| async move {
                task.change(Change::Nice(task.id(), 7)).await;
                task.change(Change::Nice(task.id(), 99)).await;
                task.change(Change::Nice(other, 3)).await;
            })?;
            Ok(())
        });
    // The other task has exited by then, so its nice value is not reported.
    assert_eq!(
        said.all(),
        ["task0 exits", "task1 7", "task1 19", "task1 exits"]
    );
}
