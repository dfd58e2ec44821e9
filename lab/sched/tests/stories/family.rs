//! What all schedulers of the 2.4 family do alike: real time, yielding, forking.

use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::{CpuSet, Instant};

use crate::stage::*;

const FAMILY: [&str; 4] = ["linux24", "mq", "elsc", "pls"];

/// The chart of one CPU, the same under every scheduler of the family.
fn same_for_all(ticks: u64, line: &str, workload: fn(&mut Boot<'_>) -> Started) {
    same_for_all_but_mq(ticks, line, workload);
    assert_eq!(stage(1).chart("mq", ticks, workload), [line], "mq");
}

/// MQ favours the task that has the CPU: of its own queue's tasks only that one gets the bonus for
/// having run here.
fn same_for_all_but_mq(ticks: u64, line: &str, workload: fn(&mut Boot<'_>) -> Started) {
    for name in FAMILY.into_iter().filter(|name| *name != "mq") {
        assert_eq!(stage(1).chart(name, ticks, workload), [line], "{name}");
    }
}

#[test]
fn a_hog_alone_keeps_the_cpu() {
    same_for_all(20, "AAAAAAAAAAAAAAAAAAAA", |boot| {
        hog(boot, called("A"))?;
        Ok(())
    });
}

#[test]
fn shares_follow_nice() {
    let two = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        hog(boot, called("B").nice(10))?;
        Ok(())
    };
    same_for_all_but_mq(18, "AAAAAABBBAAAAAABBB", two);
    // After new slices for all, B counts 3 + 10 + 15 and A 6 + 20: B goes on for a second slice.
    assert_eq!(stage(1).chart("mq", 18, two), ["AAAAAABBBBBBAAAAAA"]);
}

#[test]
fn real_time_runs_before_everybody_and_for_as_long_as_it_likes() {
    same_for_all(20, "AAARRRRRRRRAAARRRRRR", |boot| {
        hog(boot, called("A").nice(-20))?;
        sleeper(boot, called("R").policy(Policy::Fifo(1)), 3, 8)?;
        Ok(())
    });
}

#[test]
fn the_higher_priority_preempts_the_lower() {
    same_for_all(12, "LLHHLLHHLLHH", |boot| {
        hog(boot, called("L").policy(Policy::Fifo(10)))?;
        sleeper(boot, called("H").policy(Policy::RoundRobin(50)), 2, 2)?;
        Ok(())
    });
}

#[test]
fn round_robin_takes_turns_and_fifo_does_not() {
    same_for_all(24, "AAAAAABBBBBBAAAAAABBBBBB", |boot| {
        for name in ["B", "A"] {
            hog(boot, called(name).policy(Policy::RoundRobin(7)))?;
        }
        Ok(())
    });
    same_for_all(24, "AAAAAAAAAAAAAAAAAAAAAAAA", |boot| {
        for name in ["B", "A"] {
            hog(boot, called(name).policy(Policy::Fifo(7)))?;
        }
        Ok(())
    });
}

/// Y gives way after each tick. Its second yield finds A with nothing left: new slices for both,
/// and it loses again.
#[test]
fn who_yields_loses_to_everybody_even_with_more_left() {
    same_for_all(15, "YAAAAAAYAAAAAAY", |boot| {
        boot.task(called("Y").nice(-3), |task: Task| async move {
            loop {
                task.compute(ticks(1)).await;
                task.yield_now().await;
            }
        })?;
        hog(boot, called("A"))?;
        Ok(())
    });
}

fn forks_at_once(boot: &mut Boot<'_>) -> Started {
    boot.task(called("P"), |task: Task| async move {
        let child = |child: Task| async move {
            loop {
                child.compute(ticks(1)).await;
            }
        };
        task.spawn(called("C"), child).await;
        loop {
            task.compute(ticks(1)).await;
        }
    })?;
    Ok(())
}

/// All six ticks; then both get six, and of equals who has the CPU keeps it.
#[test]
fn a_fork_gives_the_child_everything() {
    same_for_all(18, "CCCCCCCCCCCCPPPPPP", forks_at_once);
}

/// Three ticks each.
#[test]
fn with_share_a_fork_halves_what_is_left() {
    for name in FAMILY {
        let shares = scheduler(name, &[("share", Value::Bool(true))]);
        let (_, kernel) = stage(1).plays(shares, 180, forks_at_once);
        let lines = kernel.observer().0.0.lines_until(Instant::START + ms(180));
        assert_eq!(lines, ["PPPCCCCCCCCCPPPPPP"], "{name}");
    }
}

#[test]
fn affinity_is_respected_however_idle_the_others_are() {
    for name in FAMILY {
        let lines = stage(3).chart(name, 12, |boot: &mut Boot<'_>| -> Started {
            for letter in ["A", "B"] {
                hog(boot, called(letter).bound([cpu(1)]))?;
            }
            sleeper(boot, called("S").bound([cpu(2)]), 1, 1)?;
            Ok(())
        });
        assert_eq!(lines[0], "............", "{name}");
        assert!(
            !lines[1].contains('.') && !lines[1].contains('S'),
            "{name} {lines:?}"
        );
        assert_eq!(lines[2], ".S.S.S.S.S.S", "{name}");
    }
}

#[test]
fn a_running_task_whose_affinity_changes_moves_at_once() {
    for name in FAMILY {
        let lines = stage(2).chart(name, 6, |boot: &mut Boot<'_>| -> Started {
            boot.task(called("A").bound([cpu(0)]), |task: Task| async move {
                task.compute(ticks(3)).await;
                task.change(Change::Affinity(task.id(), CpuSet::from_iter([cpu(1)])))
                    .await;
                task.compute(ticks(9)).await;
            })?;
            Ok(())
        });
        assert_eq!(lines, ["AAA...", "...AAA"], "{name}");
    }
}

#[test]
fn a_new_nice_value_counts_from_the_next_slice_on() {
    same_for_all_but_mq(25, "AAAAAABAAAAAABAAAAAABBBBB", |boot| {
        let second = hog(boot, called("B").nice(19))?;
        boot.task(called("A"), move |task: Task| async move {
            task.compute(ticks(8)).await;
            task.change(Change::Nice(second, 4)).await;
            loop {
                task.compute(ticks(1)).await;
            }
        })?;
        Ok(())
    });
}
