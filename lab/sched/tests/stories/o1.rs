//! The O(1) scheduler of Linux 2.6.16: slices, arrays, credit for sleeping, starvation, balancing.
//!
//! At HZ 100 a jiffy is a letter of the chart, and a slice of nice 0 is ten. Tasks without an
//! address space count as kernel threads, whose long sleeps are credited like short ones.

use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::{Bytes, Cycles, Duration, Instant, Seed};

use crate::stage::*;

/// The chart of `of` ticks under o1, set as said.
fn chart(stage: Stage, set: &[(&str, Value)], of: u64, what: impl Workload) -> Vec<String> {
    let (_, kernel) = stage.plays(scheduler("o1", set), of * 10, what);
    let end = Instant::START + Duration::from_ms(of * 10);
    kernel.observer().0.0.lines_until(end)
}

fn choice(name: &'static str, value: &str) -> (&'static str, Value) {
    (name, Value::Text(value.to_owned()))
}

/// How often `name` stands in `line`.
fn ticks_of(name: char, line: &str) -> usize {
    line.chars().filter(|letter| *letter == name).count()
}

/// The longest that `line` goes without `name`.
fn longest_wait(name: char, line: &str) -> usize {
    line.split(name).map(str::len).max().unwrap_or(0)
}

#[test]
fn hogs_take_turns_of_a_slice() {
    let lines = chart(stage(1), &[], 40, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        hog(boot, called("B"))?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAAAAAABBBBBBBBBBAAAAAAAAAABBBBBBBBBB"]);
}

/// 800 ms, 50 ms and a tick, which is more than 5 ms; the best first in each array.
#[test]
fn slices_are_of_the_nice_value() {
    let lines = chart(stage(1), &[], 96, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A").nice(-20))?;
        hog(boot, called("B").nice(19))?;
        hog(boot, called("C").nice(10))?;
        Ok(())
    });
    assert_eq!(
        lines,
        [format!("{}CCCCCB{}", "A".repeat(80), "A".repeat(10))]
    );
}

/// S, which first runs when A's slice is over, sleeps for 300 ms and gets the greatest bonus. It
/// preempts A and goes on for 100 ticks: its slices end in the active array.
#[test]
fn a_sleeper_preempts_and_keeps_the_cpu() {
    let lines = chart(stage(1), &[], 150, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        sleeper(boot, called("S"), 30, 100)?;
        Ok(())
    });
    let (before, stint, after) = ("A".repeat(40), "S".repeat(100), "A".repeat(10));
    assert_eq!(lines, [before + &stint + &after]);
}

/// A batch task earns nothing by sleeping: it wakes with A's priority, and waits for the end of the
/// slice.
#[test]
fn a_woken_task_of_equal_priority_waits() {
    let lines = chart(stage(1), &[], 50, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("A"))?;
        boot.task(called("W").policy(Policy::Batch), |task: Task| async move {
            task.sleep(ms(31)).await;
            task.compute(ticks(100)).await;
        })?;
        Ok(())
    });
    let turns = [
        "A".repeat(20),
        "W".repeat(10),
        "A".repeat(10),
        "W".repeat(10),
    ];
    assert_eq!(lines, [turns.concat()]);
}

#[test]
fn who_yields_goes_to_the_expired_array() {
    let lines = chart(stage(1), &[], 33, |boot: &mut Boot<'_>| -> Started {
        boot.task(called("Y"), |task: Task| async move {
            loop {
                task.compute(ticks(1)).await;
                task.yield_now().await;
            }
        })?;
        hog(boot, called("A"))?;
        Ok(())
    });
    assert_eq!(lines, ["YAAAAAAAAAAYAAAAAAAAAAYAAAAAAAAAA"]);
}

/// With eight ticks left, both get four. A process runs before its parent, a thread after it.
#[test]
fn a_fork_halves_the_slice_and_a_new_process_goes_first() {
    let family = |own_memory: bool| {
        chart(stage(1), &[], 30, move |boot: &mut Boot<'_>| -> Started {
            let (mm, other) = (boot.mm(), boot.mm());
            let child = TaskSpec::new("c", Some(if own_memory { other } else { mm }));
            boot.task(TaskSpec::new("P", Some(mm)), move |task: Task| async move {
                task.compute(ticks(2)).await;
                let long = |child: Task| async move { child.compute(ticks(100)).await };
                task.spawn(child, long).await;
                task.compute(ticks(100)).await;
            })?;
            Ok(())
        })
    };
    assert_eq!(family(true), ["PPccccPPPPccccccccccPPPPPPPPPP"]);
    assert_eq!(family(false), ["PPPPPPccccPPPPPPPPPPcccccccccc"]);
}

/// The child runs for a tick of the four that it got. What is left goes back to the parent, who has
/// had two ticks and so has 4 + 3 more until H's turn.
#[test]
fn an_early_exit_returns_the_slice() {
    let lines = chart(stage(1), &[], 25, |boot: &mut Boot<'_>| -> Started {
        let (mm, other) = (boot.mm(), boot.mm());
        boot.task(TaskSpec::new("P", Some(mm)), move |task: Task| async move {
            task.compute(ticks(2)).await;
            let child = TaskSpec::new("c", Some(other));
            let short = |child: Task| async move { child.compute(ticks(1)).await };
            task.spawn(child, short).await;
            task.compute(ticks(100)).await;
        })?;
        hog(boot, called("H"))?;
        Ok(())
    });
    assert_eq!(lines, ["PPcPPPPPPPHHHHHHHHHHPPPPP"]);
}

/// R runs for 9.5 ms and sleeps for 0.5 ms with a tick in it, which counts as 10 ms. It is never
/// charged for a tick, so its slice never ends, and H has a twentieth of the CPU.
#[test]
fn on_the_jiffy_clock_a_sleep_over_each_tick_is_all_that_counts() {
    let lines = chart(
        stage(1).tick_of(10),
        &[],
        60,
        |boot: &mut Boot<'_>| -> Started {
            boot.task(called("R"), move |task: Task| async move {
                task.sleep(Duration::from_us(10_300)).await;
                loop {
                    task.compute(Cycles(950_000)).await;
                    task.sleep(Duration::from_us(500)).await;
                }
            })?;
            hog(boot, called("H"))?;
            Ok(())
        },
    );
    assert_eq!(lines, [format!("H{}", "R".repeat(59))]);
}

/// H computes, and three tasks run for 25 ms and sleep for 10 ms, which is more than one CPU has.
fn three_sleepers(set: &[(&str, Value)]) -> String {
    let lines = chart(stage(1), set, 2_000, |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("H"))?;
        for (name, begins) in [("R", 11), ("S", 21), ("T", 31)] {
            boot.task(called(name), move |task: Task| async move {
                task.sleep(ms(begins)).await;
                loop {
                    task.compute(Cycles(2_500_000)).await;
                    task.sleep(ms(10)).await;
                }
            })?;
        }
        Ok(())
    });
    lines.concat()
}

/// By nice values, each of four has a quarter: a slice of 10 of 40 ticks. With credit for sleeping,
/// the three keep a better priority, return to the active array, and H waits for more than a
/// second.
#[test]
fn interactive_tasks_starve_a_hog() {
    let starved = three_sleepers(&[]);
    assert!(ticks_of('H', &starved) < 2_000 / 10, "{starved}");
    assert!(longest_wait('H', &starved) > 100, "{starved}");
    let frozen = three_sleepers(&[choice("dynamic_priority", "frozen")]);
    let settled = &frozen[400..];
    assert_eq!(ticks_of('H', settled), 1_600 / 4, "{frozen}");
    assert_eq!(longest_wait('H', settled), 30, "{frozen}");
}

/// A second, the most that counts of a sleep or wait, is at most ten by its weight. The tasks are
/// kernel threads, so that no long sleep sets `sleep_avg`.
#[test]
fn a_threshold_above_all_sleeps_is_the_patch() {
    let threshold = ("network_min_sleep", Value::Duration(Duration::from_s(10)));
    let patch = choice("dynamic_priority", "patch");
    assert_eq!(three_sleepers(&[threshold]), three_sleepers(&[patch]));
}

/// R receives a packet every 5 ms and computes for 4 ms, on a clock that is exact.
fn receiver(set: &[(&str, Value)]) -> String {
    let set: Vec<_> = set
        .iter()
        .cloned()
        .chain([choice("clock", "tsc")])
        .collect();
    let lines = chart(
        stage(1).tick_of(10),
        &set,
        2_000,
        |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("H"))?;
            let nic = boot.nic(1_000_000_000, Duration::from_us(50));
            let socket = boot.datagram_socket(Bytes(2_000))?;
            boot.task(called("R"), move |task: Task| async move {
                loop {
                    task.receive_datagram(socket).await;
                    task.compute(Cycles(400_000)).await;
                }
            })?;
            boot.remote(move |peer| async move {
                loop {
                    peer.send_datagram(socket, nic, Bytes(64)).await;
                    peer.pause(Duration::from_ms(5)).await;
                }
            });
            Ok(())
        },
    );
    lines.concat()
}

/// What H waits for between two turns falls from the whole run to seconds. Not further: where R has
/// waited for H's slice, that wait counts as a sleep which is longer than nine of ten.
#[test]
fn a_local_threshold_lets_a_hog_run_beside_a_receiver() {
    let local = ("local_percentile", Value::Integer(90));
    let waits = [receiver(&[]), receiver(&[local])].map(|line| longest_wait('H', &line));
    assert!(waits[0] > 1_900 && waits[1] < 600, "{waits:?}");
}

/// Newly idle CPUs and ticks pull until no CPU has two tasks more than another.
#[test]
fn hogs_that_one_task_forks_spread_and_stay() {
    let lines = chart(stage(4), &[], 30, |boot: &mut Boot<'_>| -> Started {
        boot.task(called("P"), |task: Task| async move {
            for name in ["A", "B", "C", "D", "E", "F"] {
                let hog = |hog: Task| async move { hog.compute(ticks(1_000)).await };
                task.spawn(called(name), hog).await;
            }
        })?;
        Ok(())
    });
    let expected = [
        ".CCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
        "AAAAABBBAAAAAAAAAABBBBBBBBBBAA",
        ".EEEEEFFFEEEEEEEEEEFFFFFFFFFFE",
        ".DDDDDDDDDDDDDDDDDDDDDDDDDDDDD",
    ];
    assert_eq!(lines, expected);
}

/// Two tasks against one are in balance, for ever.
#[test]
fn two_tasks_stay_beside_one() {
    let lines = chart(stage(2), &[], 60, |boot: &mut Boot<'_>| -> Started {
        for name in ["B", "A", "C"] {
            hog(boot, called(name))?;
        }
        Ok(())
    });
    let (turn_of_a, turn_of_c) = ("A".repeat(10), "C".repeat(10));
    let shared = (turn_of_a + &turn_of_c).repeat(3);
    assert_eq!(lines, [shared, "B".repeat(60)]);
}

/// B is bound and A runs, so that nothing can be pulled; after four ticks, A is pushed.
#[test]
fn a_running_task_is_pushed_when_nothing_else_may_move() {
    let lines = chart(stage(2), &[], 20, |boot: &mut Boot<'_>| -> Started {
        boot.task(called("x"), |task: Task| async move {
            task.compute(ticks(3)).await
        })?;
        hog(boot, called("A"))?;
        hog(boot, called("B").bound([cpu(0)]))?;
        Ok(())
    });
    assert_eq!(lines, ["AAAAAAABBBBBBBBBBBBB", "xxx....AAAAAAAAAAAAA"]);
}

/// CPU 1 idles from tick 11 on. At the next it looks at CPU 0, where A and C take turns; the one
/// that waits has run a moment ago.
#[test]
fn a_task_with_a_warm_cache_moves_after_two_attempts() {
    let moves_at = |hot_ms: u64| {
        let hot = ("cache_hot_time", Value::Duration(ms(hot_ms)));
        let lines = chart(stage(2), &[hot], 40, |boot: &mut Boot<'_>| -> Started {
            boot.task(called("x"), |task: Task| async move {
                task.compute(ticks(11)).await
            })?;
            hog(boot, called("A"))?;
            hog(boot, called("C"))?;
            Ok(())
        });
        lines[1].find(['A', 'C'])
    };
    assert_eq!((moves_at(0), moves_at(1_000)), (Some(12), Some(14)));
}

/// How long H, who needs 200 ms of a free CPU, takes beside R, who receives a packet each `gap` and
/// computes for 9.8 us; in ms, at most 2000. H begins after 3 s and, as a batch task, without
/// credit for having slept. The gaps do not divide a jiffy of 4 ms, so that ticks find R running as
/// often as it runs.
fn beside_a_receiver(gap: Duration) -> u64 {
    let mut stage = stage(1);
    stage.settings = Settings {
        caches: false,
        ..Settings::linux2616(Seed(1))
    };
    let workload = |boot: &mut Boot<'_>| -> Started {
        let (first, second) = (boot.mm(), boot.mm());
        let nic = boot.nic(1_000_000_000, Duration::from_us(50));
        let socket = boot.datagram_socket(boot.datagram_buffer())?;
        boot.task(
            TaskSpec::new("R", Some(first)),
            move |task: Task| async move {
                loop {
                    task.receive_datagram(socket).await;
                    task.compute(Cycles(980)).await;
                }
            },
        )?;
        let hog = TaskSpec::new("H", Some(second)).policy(Policy::Batch);
        boot.task(hog, |task: Task| async move {
            task.sleep(ms(3_000)).await;
            task.compute(ticks(20)).await;
        })?;
        boot.remote(move |peer| async move {
            loop {
                peer.send_datagram(socket, nic, Bytes(64)).await;
                peer.pause(gap).await;
            }
        });
        Ok(())
    };
    let (_, kernel) = stage.plays(scheduler("o1", &[]), 5_000, workload);
    let hog = task_figures(&kernel, 1);
    (hog.ran + hog.waited).as_us() / 1_000
}

/// The starvation paper's finding. At 40,000 packets a second H has what R leaves, 61 %. At 95,000
/// that is 7 %: H has one slice, for which R waits. The wait counts as a sleep, and from then on R
/// sleeps often enough to stay interactive. At 105,000 R never sleeps, and the two take turns of
/// 100 ms.
#[test]
fn a_hog_starves_in_a_band_of_packet_rates_only() {
    let kpps_40_95_105 = [25_013, 10_487, 9_533].map(Duration::from_ns);
    let [slow, band, fast] = kpps_40_95_105.map(beside_a_receiver);
    assert!((320..340).contains(&slow), "{slow}");
    assert!(band > 1_200, "{band}");
    assert!((380..=420).contains(&fast), "{fast}");
}

/// The longest wait of H beside R, for whom CPU 1 writes every 5 ms and who then computes for 4 ms.
fn beside_a_reader(
    pair: impl Fn(&mut Boot<'_>) -> Result<(Socket, Socket), warmq_machine::OutOfMemory>,
) -> usize {
    let tsc = [choice("clock", "tsc")];
    let stage = stage(2).tick_of(10);
    let lines = chart(stage, &tsc, 1_000, |boot: &mut Boot<'_>| -> Started {
        let (writes, reads) = pair(boot)?;
        hog(boot, called("H").bound([cpu(0)]))?;
        boot.task(called("R").bound([cpu(0)]), move |task: Task| async move {
            loop {
                task.receive(reads, Bytes(1)).await;
                task.compute(Cycles(400_000)).await;
            }
        })?;
        boot.task(called("W").bound([cpu(1)]), move |task: Task| async move {
            loop {
                task.send(writes, Bytes(1)).await;
                task.sleep(Duration::from_ms(5)).await;
            }
        })?;
        Ok(())
    });
    longest_wait('H', &lines[0])
}

/// Whoever waits for a socket gets the best priority for it, whoever waits for a pipe gets nothing.
#[test]
fn sleeps_in_a_pipe_earn_nothing() {
    let by_socket = beside_a_reader(|boot| boot.socket_pair(Bytes(2)));
    let by_pipe = beside_a_reader(|boot| boot.pipe(Bytes(2)));
    assert!(by_socket > 900 && by_pipe < 30, "{by_socket} {by_pipe}");
}
