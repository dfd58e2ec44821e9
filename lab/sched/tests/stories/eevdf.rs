//! EEVDF of Linux 6.6, 6.12, 6.18, 7.1, 7.2 and 7.3: turns, groups, lazy preemption, and the
//! starvation of 6.13 to 7.0.
//!
//! The kernel costs nothing here, and HZ is 250.

use proptest::prelude::*;

use warmq_config::Value;
use warmq_kernel::*;
use warmq_trace::Record;
use warmq_units::{Bytes, CpuId, Cycles, Duration, Instant, Seed, TaskId};

use crate::stage::*;
use crate::told::Kept;

/// CPUs under one cache, with the timers of Linux 6.
fn machine(cpus: u16, preemption: Preemption) -> Stage {
    let mut stage = stage(cpus).sharing(cpus).promised_nothing();
    stage.settings = Settings {
        caches: false,
        preemption,
        ..Settings::linux6(Seed(1))
    };
    stage
}

/// CPU time in units of 1 ns, as cycles of the 100 MHz machine.
fn us(us: u64) -> Cycles {
    Cycles(us * 100)
}

fn flag(name: &'static str, value: bool) -> (&'static str, Value) {
    (name, Value::Bool(value))
}

/// What the first tasks are given of a CPU from 2 s to 12 s, in tenths of a percent.
fn shares<const N: usize>(
    stage: Stage,
    name: &str,
    set: &[(&str, Value)],
    workload: impl Workload,
) -> [u64; N] {
    let settles = Instant::START + Duration::from_s(2);
    let end = settles + Duration::from_s(10);
    let mut kernel = stage.boots(scheduler(name, set), workload);
    kernel.run_until(settles);
    let ran = |kernel: &Kernel<Watch>, task: usize| task_figures(kernel, task as u32).ran.as_us();
    let before: [u64; N] = std::array::from_fn(|task| ran(&kernel, task));
    kernel.run_until(end);
    std::array::from_fn(|task| (ran(&kernel, task) - before[task]) / 10_000)
}

/// How often two hogs on one CPU are preempted in a second, each as `made`.
fn turns_of_hogs(name: &str, set: &[(&str, Value)], made: fn(TaskSpec) -> TaskSpec) -> u64 {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, made(called("A")))?;
        hog(boot, made(called("B")))?;
        Ok(())
    };
    let (_, kernel) = machine(1, Preemption::Lazy).plays(scheduler(name, set), 1_000, workload);
    let figures = [0, 1].map(|task| task_figures(&kernel, task).involuntary);
    figures.iter().sum()
}

/// Decision case 8: equal hogs on one CPU, whose slice is 0.7 ms.
#[test]
fn slices_end_with_the_tick_until_7_1_and_by_a_timer_from_then_on() {
    let turns = |name, set: &[_]| turns_of_hogs(name, set, |hog| hog);
    assert_eq!(
        EEVDF.map(|name| turns(name, &[])),
        [250, 250, 250, 1_429, 1_429, 1_429]
    );
    assert_eq!(turns("eevdf-7.1", &[flag("hrtick", false)]), 250);
    assert_eq!(turns("eevdf-6.12", &[flag("hrtick", true)]), 1_429);
}

/// Of two hogs the heavier one is due the CPU again when its slice ends, and no timer is armed for
/// a task that is picked again: it keeps the CPU until a tick, and so does the other one then, to
/// whom time is owed. In a guest of 7.3.4 they take 201 turns a second.
#[test]
fn whoever_is_picked_again_has_the_cpu_until_a_tick_unless_the_timer_is_armed_again() {
    let turns = |set: &[(&str, Value)]| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("A"))?;
            hog(boot, called("B").nice(-3))?;
            Ok(())
        };
        let (_, kernel) =
            machine(1, Preemption::Lazy).plays(scheduler("eevdf-7.3", set), 1_000, workload);
        let figures = [0, 1].map(|task| task_figures(&kernel, task).involuntary);
        figures.iter().sum::<u64>()
    };
    let (by_tick, now) = (turns(&[flag("hrtick", false)]), turns(&[]));
    let again = turns(&[flag("hrtick_again", true)]);
    assert!((150..=200).contains(&by_tick), "{by_tick}");
    assert!((150..=215).contains(&now), "{now}");
    assert!((900..=1_000).contains(&again), "{again}");
}

/// In 6.6 each change of a task begins a slice, which would never end. But the CPU picks again
/// where a running task has become nicer (`prio_changed_fair()`).
#[test]
fn who_changes_itself_within_each_slice_does_not_keep_the_cpu() {
    let of_the_other = |name: &str| {
        let workload = |boot: &mut Boot<'_>| -> Started {
            boot.task(called("C"), |task: Task| async move {
                loop {
                    for nice in [5, 0] {
                        task.compute(us(400)).await;
                        task.change(Change::Nice(task.id(), nice)).await;
                    }
                }
            })?;
            hog(boot, called("u"))?;
            Ok(())
        };
        let [_, other] = shares(machine(1, Preemption::Voluntary), name, &[], workload);
        other
    };
    for name in EEVDF {
        let other = of_the_other(name);
        assert!((450..=800).contains(&other), "{name}: {other}");
    }
}

fn groups_of(sizes: &'static [usize], sessions: bool) -> impl Workload {
    move |boot: &mut Boot<'_>| -> Started {
        for (number, size) in sizes.iter().enumerate() {
            let group = match sessions {
                true => boot.autogroup("session", 0),
                false => boot.group(GroupId::ROOT, "group", 100),
            };
            for task in 0..*size {
                let name = format!("{number}.{task}");
                hog(boot, called(&name).group(group))?;
            }
        }
        Ok(())
    }
}

/// Decision cases 29 and 30.
#[test]
fn a_cpu_is_shared_out_to_groups_and_then_to_their_tasks() {
    for name in EEVDF {
        let full = || machine(1, Preemption::Full);
        let shares_of = |set: &[(&str, Value)], sessions| -> [u64; 4] {
            shares(full(), name, set, groups_of(&[1, 3], sessions))
        };
        let grouped = [500, 166, 166, 166];
        let alike = [250, 250, 250, 250];
        for (case, found, expected) in [
            ("cgroups", shares_of(&[], false), grouped),
            ("sessions", shares_of(&[], true), grouped),
            (
                "no autogroup",
                shares_of(&[flag("autogroup", false)], true),
                alike,
            ),
            (
                "no groups",
                shares_of(&[flag("groups", false)], false),
                alike,
            ),
        ] {
            let near = found
                .iter()
                .zip(expected)
                .all(|(found, expected)| found.abs_diff(expected) <= 3);
            assert!(near, "{name}, {case}: {found:?}");
        }
        let beside_root = |boot: &mut Boot<'_>| -> Started {
            hog(boot, called("root"))?;
            let session = boot.autogroup("session", 0);
            hog(boot, called("a").group(session))?;
            hog(boot, called("b").group(session))?;
            Ok(())
        };
        let found: [u64; 3] = shares(full(), name, &[], beside_root);
        let near = found
            .iter()
            .zip([500, 250, 250])
            .all(|(found, expected)| found.abs_diff(expected) <= 3);
        assert!(near, "{name}: {found:?}");
    }
}

/// Loads that differ by rounding have tasks pulled, but nobody is pushed off its CPU for them.
#[test]
fn a_group_of_one_keeps_its_cpu_beside_a_group_of_many() {
    // The flat run queue gives the group of one 64 % (docs/fidelity/guests.md).
    for name in EEVDF.into_iter().filter(|name| *name != "eevdf-7.3") {
        let [single]: [u64; 1] = shares(
            machine(2, Preemption::Full),
            name,
            &[],
            groups_of(&[1, 7], false),
        );
        assert!(single >= 990, "{name}: {single}");
    }
}

#[test]
fn where_a_child_runs_first_is_no_migration() {
    for name in EEVDF {
        let forks = |boot: &mut Boot<'_>| -> Started {
            boot.task(called("parent"), |task: Task| async move {
                let computes = |child: Task| async move {
                    loop {
                        child.compute(us(1_000)).await;
                    }
                };
                task.spawn(called("child"), computes).await;
                loop {
                    task.compute(us(1_000)).await;
                }
            })?;
            Ok(())
        };
        let stage = machine(2, Preemption::Full);
        let (_, kernel) = stage.plays(scheduler(name, &[]), 100, forks);
        // Behind the parent and a ksoftirqd for each CPU.
        let child = task_figures(&kernel, 3);
        let ran = child.ran.as_us();
        assert!(ran > 90_000 && child.migrations == 0, "{name}: {child:?}");
    }
}

/// By `post_init_entity_util_avg()` the first task of each CPU counts as half of it, the next as a
/// quarter and an eighth: CPU 0, where they are created, has room for three.
#[test]
fn tasks_that_begin_at_once_begin_on_all_cpus() {
    for name in EEVDF {
        let workload = |boot: &mut Boot<'_>| -> Started {
            (0..6).try_for_each(|_| hog(boot, called("H")).map(drop))
        };
        let stage = machine(2, Preemption::Full);
        let (_, kernel) = stage.plays_before(Kept::default(), scheduler(name, &[]), 1, workload);
        let began = kernel.into_observer().0.into_iter();
        let began = began.filter_map(|(at, record)| match record {
            Record::Wakeup { task, target, .. } if at == Instant::START && task.0 < 6 => {
                Some(target.0)
            }
            _ => None,
        });
        assert_eq!(began.collect::<Vec<_>>(), [0, 1, 0, 0, 1, 1], "{name}");
    }
}

/// Until 6.12 a task cannot ask for a slice: with 20 ms or without, two hogs take turns of a tick.
#[test]
fn a_task_may_ask_for_a_slice_from_6_12_on() {
    let turns = |name, set: &[_]| turns_of_hogs(name, set, |hog| hog.slice(Duration::from_ms(20)));
    assert_eq!(turns("eevdf-6.6", &[]), 250);
    assert_eq!(turns("eevdf-6.12", &[]), 50);
    assert_eq!(turns("eevdf-6.6", &[flag("custom_slices", true)]), 50);
}

/// The timer that was to end the slice of a task stays armed when the task sleeps and leaves
/// another one alone (`hrtick_schedule_exit()` of 7.1.5, as in a guest of 7.2.12): it expires in
/// the turn of that one.
#[test]
fn a_slices_timer_outlives_its_task() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let short = called("S").slice(Duration::from_us(300));
        boot.task(short, |task: Task| async move {
            loop {
                task.sleep(Duration::from_us(4_100)).await;
                task.compute(us(10)).await;
            }
        })?;
        hog(boot, called("H"))?;
        Ok(())
    };
    let stage = machine(1, Preemption::Lazy);
    let scheduler = scheduler("eevdf-7.1", &[]);
    let (_, kernel) = stage.plays_before(Kept::default(), scheduler, 100, workload);
    let told = kernel.into_observer().0;
    let (mut turns, mut expired, mut began) = (0, 0, None);
    for (at, record) in told {
        match record {
            Record::Switch {
                next: Some(TaskId(0)),
                ..
            } => {
                began = Some(at);
                turns += 1;
            }
            Record::InterruptEnter { .. } => {
                let slice = Duration::from_us(300);
                expired += u32::from(began.is_some_and(|began| at.since(began) == slice));
            }
            _ => {}
        }
    }
    assert!(turns > 10 && expired * 2 > turns, "{expired} of {turns}");
}

/// Which CPUs make a task runnable on CPU 1 that CPU 0 wakes. The CPUs share a cache or none, and
/// CPU 1 has a hog or none.
fn who_queues(sharing: u16, busy: bool, set: &[(&str, Value)]) -> Vec<u16> {
    let workload = move |boot: &mut Boot<'_>| -> Started {
        let (writes, reads) = boot.pipe(Bytes(64))?;
        boot.task(called("R").bound([cpu(1)]), move |task: Task| async move {
            loop {
                task.receive(reads, Bytes(1)).await;
                task.compute(us(10)).await;
            }
        })?;
        boot.task(called("W").bound([cpu(0)]), move |task: Task| async move {
            loop {
                task.compute(us(17_300)).await;
                task.send(writes, Bytes(1)).await;
            }
        })?;
        if busy {
            hog(boot, called("H").bound([cpu(1)]))?;
        }
        Ok(())
    };
    let stage = machine(2, Preemption::Full).sharing(sharing);
    let scheduler = scheduler("eevdf-6.18", set);
    let (_, kernel) = stage.plays_before(Kept::default(), scheduler, 2_000, workload);
    let told = kernel.into_observer().0.into_iter();
    let wakers = told.filter_map(|(at, record)| match record {
        Record::Wakeup {
            task: TaskId(0),
            waker,
            target: CpuId(1),
        } if at > Instant::START + Duration::from_ms(5) => Some(waker.0),
        _ => None,
    });
    let mut wakers: Vec<u16> = wakers.collect();
    assert!(wakers.len() > 50, "{}", wakers.len());
    wakers.sort_unstable();
    wakers.dedup();
    wakers
}

/// `ttwu_queue_cond()`: left to the CPU where the task runs are wakeups of one that idles or that
/// has a cache of its own; but one that is still queued in its sleep is taken back by the waker.
#[test]
fn a_wakeup_is_left_to_a_cpu_that_idles_or_has_another_cache() {
    assert_eq!(who_queues(2, false, &[]), [1]);
    assert_eq!(who_queues(1, false, &[]), [1]);
    assert_eq!(who_queues(2, true, &[]), [0]);
    assert!(who_queues(1, true, &[]).contains(&1));
    let at_once = [flag("ttwu_queue", false)];
    assert_eq!(who_queues(2, false, &at_once), [0]);
    assert_eq!(who_queues(1, true, &at_once), [0]);
}

/// Decision case 28: a hog on CPU 0 and on CPU 1, from which a task with a short slice is woken.
/// How long it waits at most, in us.
fn longest_wait(preemption: Preemption) -> u64 {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let (writes, reads) = boot.pipe(Bytes(64))?;
        let short = called("R").slice(Duration::from_us(100));
        boot.task(short.bound([cpu(0)]), move |task: Task| async move {
            loop {
                task.receive(reads, Bytes(1)).await;
                task.compute(us(10)).await;
            }
        })?;
        hog(boot, called("H").bound([cpu(0)]))?;
        boot.task(called("W").bound([cpu(1)]), move |task: Task| async move {
            loop {
                task.compute(us(17_300)).await;
                task.send(writes, Bytes(1)).await;
            }
        })?;
        Ok(())
    };
    let stage = machine(2, preemption);
    let (_, kernel) = stage.plays(scheduler("eevdf-6.18", &[]), 2_000, workload);
    task_figures(&kernel, 0).longest_wait.as_us()
}

#[test]
fn case_28_a_lazy_request_of_another_cpu_waits_for_a_tick() {
    let [lazy, full] = [Preemption::Lazy, Preemption::Full].map(longest_wait);
    assert!(
        full <= 2 && (1_000..=4_000).contains(&lazy),
        "{full} {lazy}"
    );
}

/// A receiver beside a hog on CPU 0, woken from CPU 1 every 97 us, which takes 10 us to interrupt
/// CPU 0. How long the receiver waits in a second, in ms: 93 where it takes the CPU at each wakeup.
fn waited_for_slow_interrupts(name: &str, clock_skip: bool) -> u64 {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let (writes, reads) = boot.pipe(Bytes(64))?;
        boot.task(called("R").bound([cpu(0)]), move |task: Task| async move {
            loop {
                task.receive(reads, Bytes(1)).await;
                task.compute(us(1)).await;
            }
        })?;
        hog(boot, called("H").bound([cpu(0)]))?;
        boot.task(called("W").bound([cpu(1)]), move |task: Task| async move {
            loop {
                task.compute(us(97)).await;
                task.send(writes, Bytes(1)).await;
            }
        })?;
        Ok(())
    };
    let stage = Stage {
        costs: costs(&[("reschedule_interrupt", 10)]),
        ..machine(2, Preemption::Full)
    };
    let set = [flag("clock_skip", clock_skip)];
    let (_, kernel) = stage.plays(scheduler(name, &set), 1_000, workload);
    task_figures(&kernel, 0).waited.as_us() / 1_000
}

/// `rq_clock_skip_update()`: what passes until the interrupt comes is charged to the woken task,
/// which owes after some wakeups, and then waits for a turn. Charged to the hog, it is owed more
/// with each.
#[test]
fn who_is_woken_pays_for_the_time_until_the_switch() {
    for name in EEVDF {
        let waits = [true, false].map(|skip| waited_for_slow_interrupts(name, skip));
        assert!(waits[0] >= 150 && waits[1] <= 100, "{name}: {waits:?} ms");
    }
}

/// Section 11 of the EEVDF specification: hog A of one group, and of another group hog b and
/// receiver r, all on CPU 1, and on CPU 0 a thread of the other group, which wakes r every `gap`
/// us. r computes for `work` us. What A is given. Gaps are such that wakeups and ticks do not keep
/// step.
struct Starves {
    name: &'static str,
    preemption: Preemption,
    gap: u64,
    work: u64,
    /// Whether the thread on CPU 0 is of the receiver's group.
    together: bool,
}

const STARVES: Starves = Starves {
    name: "eevdf-6.18",
    preemption: Preemption::Full,
    gap: 997,
    work: 20,
    together: true,
};

impl Starves {
    fn workload(&self) -> impl Workload {
        let Starves {
            gap,
            work,
            together,
            ..
        } = *self;
        move |boot: &mut Boot<'_>| -> Started {
            let (a, b) = (boot.autogroup("a", 0), boot.autogroup("b", 0));
            let elsewhere = match together {
                true => b,
                false => boot.autogroup("c", 0),
            };
            let (writes, reads) = boot.pipe(Bytes(1 << 20))?;
            hog(boot, called("A").group(a).bound([cpu(1)]))?;
            hog(boot, called("b").group(b).bound([cpu(1)]))?;
            boot.task(
                called("r").group(b).bound([cpu(1)]),
                move |task: Task| async move {
                    loop {
                        task.receive(reads, Bytes(1)).await;
                        task.compute(us(work)).await;
                    }
                },
            )?;
            boot.task(
                called("s").group(elsewhere).bound([cpu(0)]),
                move |task: Task| async move {
                    loop {
                        task.compute(us(gap)).await;
                        task.send(writes, Bytes(1)).await;
                    }
                },
            )?;
            Ok(())
        }
    }

    fn share(&self, set: &[(&str, Value)]) -> u64 {
        let [share] = shares(machine(2, self.preemption), self.name, set, self.workload());
        share
    }
}

/// The check values of the specification, in tenths of a percent, from a program of exactly these
/// rules; measured were 60, 0, 50 to 55 and 60 %.
#[test]
fn who_shares_a_cpu_with_a_group_that_is_woken_often_starves_from_6_13_to_7_0() {
    let table = [
        ("eevdf-6.12", Preemption::Voluntary, 606),
        ("eevdf-6.18", Preemption::Full, 0),
        ("eevdf-6.18", Preemption::Lazy, 548),
        ("eevdf-7.1", Preemption::Full, 607),
        ("eevdf-7.1", Preemption::Lazy, 600),
    ];
    for (name, preemption, expected) in table {
        let share = Starves {
            name,
            preemption,
            ..STARVES
        }
        .share(&[]);
        assert!(
            share.abs_diff(expected) <= 10,
            "{name}, {preemption:?}: {share}"
        );
    }
}

/// What groups are owed is recorded at each pick and change of weight, so that it can be followed
/// by hand: all of a CPU together are owed nothing, and the receiver's group more and more, up to
/// the limit.
#[test]
fn what_groups_are_owed_is_told_as_the_starvation_begins() {
    let scheduler = scheduler(STARVES.name, &[]);
    let stage = machine(2, STARVES.preemption);
    let (_, kernel) = stage.plays_before(Kept::default(), scheduler, 200, STARVES.workload());
    let told = kernel.into_observer().0.into_iter();
    let told = told.filter_map(|(at, record)| match record {
        Record::Owed {
            cpu: CpuId(1),
            group,
            weight,
            lag,
            ..
        } => Some((at, group, i128::from(weight), i128::from(lag))),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    let (mut rest, mut pairs) = (&told[..], 0);
    while let [one, other, ..] = rest {
        // One group alone is recorded while the other one has nobody who wants to run.
        let pair = one.0 == other.0 && one.1 != other.1;
        rest = &rest[1 + usize::from(pair)..];
        let owed = one.2 * one.3 + other.2 * other.3;
        assert!(!pair || owed.abs() <= one.2 + other.2, "{one:?} {other:?}");
        pairs += u32::from(pair);
    }
    assert!(pairs > 100, "{pairs}");
    let last = |of: u32| {
        told.iter()
            .rfind(|(_, group, ..)| *group == of)
            .expect("told of")
            .3
    };
    assert!(
        last(2) > 5_000_000 && last(1) < -4_000_000,
        "{} {}",
        last(1),
        last(2)
    );
}

/// That one setting does it.
#[test]
fn the_rule_of_reweights_alone_makes_the_difference() {
    let rule = |rule: &str| [("reweight", Value::Text(rule.into()))];
    assert!(STARVES.share(&rule("keeps-average")) > 550);
    for name in ["eevdf-6.12", "eevdf-7.1"] {
        let share = Starves { name, ..STARVES }.share(&rule("places-again"));
        assert!(share < 10, "{name}: {share}");
    }
}

/// Where only tasks compete, no group has a lag that could be multiplied, whatever the rule of
/// reweights. Hog b, which shares its group with a receiver, weighs half of A while it is alone, a
/// third else; while it waits, what it did when it ran last. So A should have from two thirds to
/// three quarters, but for the receiver. Under lazy preemption it has more, up to 80 % by the rules
/// of 7.3, for reasons that are not known in full; the other group still has some 15 % at least.
#[test]
fn where_only_tasks_compete_nobody_starves() {
    let places_again = ("reweight", Value::Text("places-again".into()));
    let smp = ("cgroup_mode", Value::Text("smp".into()));
    for name in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        for preemption in [Preemption::Full, Preemption::Lazy] {
            for gap in [1_999, 997, 499] {
                let starves = Starves {
                    name,
                    preemption,
                    gap,
                    ..STARVES
                };
                let set = [flag("flat", true), smp.clone(), places_again.clone()];
                let share = starves.share(&set);
                assert!(
                    (550..=850).contains(&share),
                    "{name}, {preemption:?}, {gap} us: {share}"
                );
            }
        }
    }
}

/// A group of two tasks on each of two CPUs, beside one with a task on CPU 1. By `smp` half of its
/// shares are there, by `concur` all of them, as two CPUs may be used. By `max` it has all of them,
/// and the other twice its own. By `tasks` it has one and a half times, not twice: averages of four
/// tasks come to a little less than four, and that is rounded down.
#[test]
fn the_cgroup_mode_says_what_a_group_on_two_cpus_weighs_on_each() {
    let share = |mode: &str, flat: bool| {
        let set = [
            flag("flat", flat),
            ("cgroup_mode", Value::Text(mode.into())),
        ];
        let workload = |boot: &mut Boot<'_>| -> Started {
            let (one, both) = (boot.autogroup("one", 0), boot.autogroup("both", 0));
            hog(boot, called("A").group(one).bound([cpu(1)]))?;
            for on in [0, 0, 1, 1] {
                hog(boot, called("b").group(both).bound([cpu(on)]))?;
            }
            Ok(())
        };
        let [share] = shares(machine(2, Preemption::Full), "eevdf-7.3", &set, workload);
        share
    };
    for flat in [false, true] {
        for (mode, expected) in [
            ("smp", 667),
            ("concur", 500),
            ("max", 667),
            ("tasks", 400),
            ("up", 500),
        ] {
            let found = share(mode, flat);
            assert!(
                found.abs_diff(expected) <= 8,
                "{mode}, flat {flat}: {found}"
            );
        }
    }
}

/// Measured on 6.18.15: 59.5 % at 250 wakeups a second, 57.7 at 400, 3.2 at 667, 1.0 at 800; at 500
/// it begins during a run. A group that runs on one CPU only has a constant weight there.
#[test]
fn it_begins_at_500_wakeups_a_second_and_needs_a_group_on_two_cpus() {
    for (gap, expected) in [
        (4_003, 595),
        (2_497, 577),
        (1_499, 32),
        (1_249, 10),
        (499, 0),
    ] {
        let share = Starves { gap, ..STARVES }.share(&[]);
        assert!(share.abs_diff(expected) <= 32, "every {gap} us: {share}");
    }
    for name in EEVDF {
        let share = Starves {
            name,
            together: false,
            ..STARVES
        }
        .share(&[]);
        // In 7.3 a task that waits weighs what it did when it ran last.
        let slack = if name == "eevdf-7.3" { 20 } else { 10 };
        assert!(
            share.abs_diff(500) <= slack,
            "{name}, the sender of a third group: {share}"
        );
    }
}

proptest! {
    #![proptest_config(config(24))]

    /// Hogs on one CPU get their part of it by weight, within two slices and a tick each.
    #[test]
    fn hogs_are_given_their_parts_by_weight(
        nices in prop::collection::vec(-5i8..=5, 2..6),
        version in 0..EEVDF.len(),
    ) {
        let all = nices.clone();
        let workload = move |boot: &mut Boot<'_>| -> Started {
            for (number, nice) in all.iter().enumerate() {
                hog(boot, called(&format!("hog {number}")).nice(*nice))?;
            }
            Ok(())
        };
        let name = EEVDF[version];
        let stage = machine(1, Preemption::Full);
        let (_, kernel) = stage.plays(scheduler(name, &[]), 4_000, workload);
        let weights: Vec<u64> = nices.iter().map(|nice| weight_of_nice(*nice)).collect();
        let total: u64 = weights.iter().sum();
        for (task, weight) in weights.iter().enumerate() {
            let ran = task_figures(&kernel, task as u32).ran.as_us();
            let fair = 4_000_000 * weight / total;
            // Lag is at most two ticks of virtual time, which is longer for the light.
            let bound = 9_000 + 9_000 * weight / 1_024;
            prop_assert!(ran.abs_diff(fair) <= bound, "{name} {nices:?}: {task} ran {ran}, fair {fair}");
        }
    }
}
