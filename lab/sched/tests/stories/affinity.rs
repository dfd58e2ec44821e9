//! The layer of data affinity, on each of its bases.

use std::collections::BTreeMap;

use warmq_config::Value;
use warmq_kernel::*;
use warmq_machine::OutOfMemory;
use warmq_trace::Record;
use warmq_units::{CpuId, CpuSet, Instant, TaskId};

use crate::stage::*;
use crate::told::Kept;

const ALL: [&str; 3] = ["affinity-o1", "affinity-cfs", "affinity-eevdf"];

/// The statistics of the layer, by their place in its list.
const HINTS: u8 = 1;
const GROUP_MIGRATIONS: u8 = 2;
const SPLITS: u8 = 4;
const CHANGE_PREEMPTIONS: u8 = 5;

/// The number of a statistic of the scheduler `name`: those of its base come first.
fn statistic(name: &str, number: u8) -> Statistic {
    let said = warmq_sched::scheduler(name)
        .expect("a scheduler")
        .statistics;
    let first = said.iter().position(|said| said.name == "groups");
    Statistic(first.expect("the layer's") as u8 + number)
}

fn text(name: &'static str, value: &str) -> (&'static str, Value) {
    (name, Value::Text(value.into()))
}

fn span(name: &'static str, of: u64) -> (&'static str, Value) {
    (name, Value::Duration(ms(of)))
}

/// A task that names `fragment` once `ms` are over, and never sleeps again.
fn member(
    boot: &mut Boot<'_>,
    spec: TaskSpec,
    begins: u64,
    fragment: u32,
) -> Result<TaskId, OutOfMemory> {
    boot.task(spec, move |task: Task| async move {
        task.sleep(ms(begins)).await;
        task.enter(1, fragment).await;
        loop {
            task.compute(ticks(1)).await;
        }
    })
}

/// The same for one that may run on both CPUs from then on, and before on the first only.
fn member_from_the_first_cpu(
    boot: &mut Boot<'_>,
    name: &str,
    begins: u64,
    fragment: u32,
) -> Started {
    boot.task(called(name).bound([cpu(0)]), move |task: Task| async move {
        task.sleep(ms(begins)).await;
        task.enter(1, fragment).await;
        task.change(Change::Affinity(
            task.id(),
            CpuSet::from_iter([cpu(0), cpu(1)]),
        ))
        .await;
        loop {
            task.compute(ticks(1)).await;
        }
    })?;
    Ok(())
}

/// A task that begins on the CPU `on` after so many ms, and works for so many ticks.
fn busy(boot: &mut Boot<'_>, on: u16, (begins, works): (u64, u64)) -> Started {
    let spec = called("x").bound([cpu(on)]);
    boot.task(spec, move |task: Task| async move {
        task.sleep(ms(begins)).await;
        task.compute(ticks(works)).await;
    })?;
    Ok(())
}

/// The run of `workload` on two CPUs with a cache each: its chart, and its kernel.
fn played(
    name: &str,
    set: &[(&'static str, Value)],
    of: u64,
    workload: impl Workload,
) -> (Vec<String>, Kernel<Watch>) {
    let entry = warmq_sched::scheduler(name).expect("a scheduler");
    let (_, kernel) = stage(2)
        .promised_by(entry)
        .plays(scheduler(name, set), of * 10, workload);
    let end = Instant::START + ms(of * 10);
    (kernel.observer().0.0.lines_until(end), kernel)
}

fn said(kernel: &Kernel<Watch>, name: &str, number: u8, tasks: u32) -> u64 {
    let statistic = statistic(name, number);
    let tasks = (0..tasks).map(TaskId);
    tasks
        .map(|task| kernel.statistic(statistic, task).times)
        .sum()
}

/// Who is on a line of a chart from the tick `from` on.
fn letters(line: &str, from: usize) -> String {
    let mut letters: Vec<char> = line.chars().skip(from).collect();
    letters.sort_unstable();
    letters.dedup();
    letters.into_iter().collect()
}

/// Where each task ran last.
fn last_cpus(kernel: Kernel<Kept>) -> BTreeMap<TaskId, CpuId> {
    let mut last = BTreeMap::new();
    for (_, record) in kernel.into_observer().0 {
        if let Record::Switch {
            cpu,
            next: Some(task),
            ..
        } = record
        {
            last.insert(task, cpu);
        }
    }
    last
}

/// Decision case 15: three tasks run on one CPU and two on the other. Who names new data goes to
/// the second; who names data that is known on the first goes there, though more run there.
#[test]
fn case_15_new_data_goes_where_least_runs_and_known_data_to_its_group() {
    for (name, full) in ALL.iter().flat_map(|name| [(name, 0), (name, 1)]) {
        let workload = |boot: &mut Boot<'_>| -> Started {
            busy(boot, 1 - full, (0, 1_000))?;
            busy(boot, 1 - full, (0, 1_000))?;
            member(boot, called("K"), 10, 1)?;
            busy(boot, full, (30, 1_000))?;
            busy(boot, full, (30, 1_000))?;
            member(boot, called("N"), 60, 2)?;
            member(boot, called("J"), 90, 1)?;
            Ok(())
        };
        let play = stage(2).plays_before(Kept::default(), scheduler(name, &[]), 4_000, workload);
        let last = last_cpus(play.1);
        // Numbered in their order: two of the empty CPU, K, two of the full one, N, J.
        let on = |number: u32| last[&TaskId(number)];
        assert_eq!(
            [on(2), on(6), on(5)],
            [cpu(full), cpu(full), cpu(1 - full)],
            "{name}: K, J and N"
        );
    }
}

/// Three light tasks run on one CPU, one of a group on the other. New data goes where fewer tasks
/// run, or where fewer groups are.
#[test]
fn new_groups_avoid_tasks_or_groups_as_set() {
    let rules = ["runnable", "groups"];
    for (name, rule) in ALL.iter().flat_map(|name| rules.map(|rule| (name, rule))) {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for _ in 0..3 {
                hog(boot, called("x").bound([cpu(0)]).nice(19))?;
            }
            member(boot, called("K"), 10, 1)?;
            member(boot, called("N"), 60, 2)?;
            Ok(())
        };
        let made = scheduler(name, &[text("new_group", rule)]);
        let play = stage(2).plays_before(Kept::default(), made, 150, workload);
        let last = last_cpus(play.1);
        let [known, new] = [3, 4].map(|number| last[&TaskId(number)]);
        let together = known == new;
        assert_eq!(together, rule == "runnable", "{name}, by {rule}");
    }
}

/// Decision case 16: a CPU that becomes idle beside one with two groups takes the whole of that of
/// which none runs.
#[test]
fn case_16_an_idle_cpu_takes_a_whole_group_that_does_not_run() {
    for name in ALL {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for _ in 0..12 {
                busy(boot, 1, (0, 10))?;
            }
            for one in ["A", "B", "C", "D", "E"] {
                member_from_the_first_cpu(boot, one, 20, 1)?;
            }
            for other in ["f", "g", "h"] {
                member_from_the_first_cpu(boot, other, 20, 2)?;
            }
            Ok(())
        };
        let (lines, kernel) = played(name, &[span("split_after", 0)], 2_000, workload);
        // Under o1, tasks that have slept keep the CPU so long that f, g and h name their group
        // late.
        let mut both = [letters(&lines[0], 1_000), letters(&lines[1], 1_000)];
        both.sort_unstable();
        assert_eq!(both, ["ABCDE", "fgh"], "{name} {lines:?}");
        assert!(said(&kernel, name, GROUP_MIGRATIONS, 20) > 0, "{name}");
        assert_eq!(said(&kernel, name, SPLITS, 20), 0, "{name}");
    }
}

/// The same with one group: unmanaged tasks move, if there are any; the group stays whole.
#[test]
fn case_16_unmanaged_tasks_move_where_a_group_cannot() {
    for name in ALL {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for one in ["A", "B", "C"] {
                member(boot, called(one), 0, 1)?;
            }
            hog(boot, called("u"))?;
            hog(boot, called("v"))?;
            Ok(())
        };
        let (lines, kernel) = played(name, &[span("split_after", 0)], 600, workload);
        let of_group = |line: &String| letters(line, 300).contains(char::is_uppercase);
        assert_eq!(
            lines.iter().filter(|line| of_group(line)).count(),
            1,
            "{name} {lines:?}"
        );
        let other = lines
            .iter()
            .find(|line| !of_group(line))
            .expect("a CPU without the group");
        assert!(!letters(other, 300).is_empty(), "{name} {lines:?}");
        assert_eq!(said(&kernel, name, SPLITS, 5), 0, "{name}");
    }
}

/// With a group alone, the other CPU idles until the imbalance has lasted.
#[test]
fn a_group_is_split_only_when_an_imbalance_lasts() {
    for name in ALL {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for one in ["A", "B", "C", "D"] {
                member(boot, called(one), 0, 1)?;
            }
            Ok(())
        };
        let never = played(name, &[span("split_after", 0)], 300, workload);
        let idle = never.0.iter().filter(|line| letters(line, 20) == ".");
        assert_eq!(idle.count(), 1, "{name} {:?}", never.0);
        let late = played(name, &[span("split_after", 800)], 300, workload);
        let idles = |line: &String| letters(&line[..60], 20) == ".";
        assert_eq!(
            late.0.iter().filter(|line| idles(line)).count(),
            1,
            "{name} {:?}",
            late.0
        );
        let works = |line: &String| !letters(line, 200).contains('.');
        assert!(late.0.iter().all(works), "{name} {:?}", late.0);
        assert_eq!(said(&late.1, name, SPLITS, 4), 1, "{name}");
    }
}

/// On one CPU, the tasks of a group run in succession: fewer changes of data than without.
#[test]
fn groups_run_in_succession() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        for (name, fragment) in [("A", 1), ("b", 2), ("C", 1), ("d", 2), ("E", 1), ("f", 2)] {
            member(boot, called(name), 0, fragment)?;
        }
        Ok(())
    };
    // Tasks are numbered in their order, so the parity of a number is its group.
    let changes = |name: &str, succession: &str| -> usize {
        let scheduler = scheduler(name, &[text("succession", succession)]);
        let kernel = stage(1)
            .plays_before(Kept::default(), scheduler, 60_000, workload)
            .1;
        let records = kernel.into_observer().0.into_iter();
        let groups: Vec<u32> = records
            .filter_map(|(_, record)| match record {
                Record::Switch {
                    next: Some(task), ..
                } => Some(task.0 % 2),
                _ => None,
            })
            .collect();
        groups.windows(2).filter(|two| two[0] != two[1]).count()
    };
    for name in ALL {
        let (with, without) = (changes(name, "equals"), changes(name, "none"));
        assert!(with < without, "{name}: {with} and {without}");
    }
}

/// A change of data takes a task to the other CPU before it goes on; where it waits for that, or
/// where the hint is a write to memory, it leaves later.
#[test]
fn a_change_preempts_if_it_should() {
    for name in ALL {
        let run = |set: &[(&'static str, Value)]| {
            let workload = |boot: &mut Boot<'_>| -> Started {
                member(boot, called("K").bound([cpu(1)]), 0, 2)?;
                busy(boot, 0, (0, 1))?;
                boot.task(
                    called("M").bound([cpu(0), cpu(1)]),
                    |task: Task| async move {
                        for fragment in [1, 2, 1, 2] {
                            task.enter(1, fragment).await;
                            task.compute(ticks(20)).await;
                        }
                    },
                )?;
                Ok(())
            };
            let (_, kernel) = played(name, set, 300, workload);
            let hints = said(&kernel, name, HINTS, 3);
            (hints, said(&kernel, name, CHANGE_PREEMPTIONS, 3))
        };
        let (hints, preemptions) = run(&[]);
        assert_eq!(hints, 5, "{name}: all are told apart");
        assert!(preemptions > 0, "{name}");
        assert_eq!(run(&[text("at_change", "wait")]), (5, 0), "{name}");
        let (hints, _) = run(&[text("hint_cost", "memory_write")]);
        assert_eq!(hints, 5, "{name}: each lasts for longer than a tick");
    }
}

/// Where places are caches, the tasks of a group use all CPUs of one.
#[test]
fn a_group_uses_all_cpus_under_its_cache() {
    for name in ALL {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for one in ["A", "B", "C", "D"] {
                member(boot, called(one), 0, 1)?;
            }
            Ok(())
        };
        let set = [text("place", "llc"), span("split_after", 0)];
        let stage = stage(4).sharing(2);
        let (_, kernel) = stage.plays(scheduler(name, &set), 3_000, workload);
        let lines = kernel
            .observer()
            .0
            .0
            .lines_until(Instant::START + ms(3_000));
        let busy: Vec<bool> = lines.iter().map(|line| letters(line, 150) != ".").collect();
        let under_one = [[true, true, false, false], [false, false, true, true]];
        assert!(under_one.iter().any(|one| busy == one), "{name} {lines:?}");
    }
}

/// Without hints nothing is different from the base.
#[test]
fn without_hints_the_layer_does_nothing() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        for number in 0..5 {
            sleeper(boot, called("s"), number, 1 + number)?;
            hog(boot, called("h").nice(number as i8))?;
        }
        Ok(())
    };
    for (name, base) in ALL.iter().zip(["o1", "cfs", "eevdf-7.1"]) {
        let records = |name: &str| {
            let played =
                stage(2).plays_before(Kept::default(), scheduler(name, &[]), 2_000, workload);
            played.1.into_observer().0
        };
        assert_eq!(records(name), records(base), "{name}");
    }
}

/// Nobody is moved who may not be.
#[test]
fn a_bound_task_of_a_group_stays_where_it_is_bound() {
    for name in ALL {
        let workload = |boot: &mut Boot<'_>| -> Started {
            for number in 0..6u16 {
                let bound = [cpu(number % 2)];
                member(boot, called("m").bound(bound), 0, u32::from(number % 3))?;
            }
            Ok(())
        };
        let kernel = stage(2)
            .plays_before(Kept::default(), scheduler(name, &[]), 20_000, workload)
            .1;
        let mut seen = 0;
        for (_, record) in kernel.into_observer().0 {
            if let Record::Switch {
                cpu,
                next: Some(task),
                ..
            } = record
            {
                assert_eq!(cpu, CpuId(task.0 as u16 % 2), "{name}");
                seen += 1;
            }
        }
        assert!(seen > 20, "{name}: {seen} switches");
    }
}
