//! Laws of changes at random times, under every scheduler.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use warmq_kernel::{Boot, Change, Ending, Fragment, GroupId, Limits, Policy, Task, Throttling};
use warmq_random::configurations;
use warmq_sched::{Entry, SCHEDULERS};
use warmq_trace::Record;
use warmq_units::{CpuId, CpuSet, Duration, Instant, TaskId};

use crate::compiled::{WARMQ, schedulers, under};
use crate::laws::may_stop_ticks;
use crate::stage::*;
use crate::told::Kept;

/// Tasks of every case, and the groups that they can be in: the root, one, and one in that one.
const TASKS: u32 = 6;
const GROUPS: usize = 3;
/// When nothing holds anybody any more.
const FREE: u64 = 1_000;

/// A change of one of the tasks, groups or CPUs, by number.
#[derive(Clone, Debug)]
enum Act {
    Stop(u32, bool),
    Freeze(usize, bool),
    Quota(usize, u64),
    Group(u32, usize),
    Weight(usize, u32),
    Nice(u32, i8),
    Policy(u32, bool),
    Affinity(u32, u16),
    Fragment(u32, Option<u32>),
    Online(u16, bool),
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let task = || 0..TASKS;
    // Nobody freezes the root.
    let group = || 1..GROUPS;
    let act = prop_oneof![
        (task(), any::<bool>()).prop_map(|(task, stops)| Act::Stop(task, stops)),
        (group(), any::<bool>()).prop_map(|(group, freezes)| Act::Freeze(group, freezes)),
        (group(), 1u64..40).prop_map(|(group, quota)| Act::Quota(group, quota)),
        (task(), 0..GROUPS).prop_map(|(task, group)| Act::Group(task, group)),
        (group(), 1u32..1_000).prop_map(|(group, weight)| Act::Weight(group, weight)),
        // A long wait of the nicest behind the least nice one is lawful.
        (task(), -3i8..4).prop_map(|(task, nice)| Act::Nice(task, nice)),
        (task(), any::<bool>()).prop_map(|(task, batch)| Act::Policy(task, batch)),
        (task(), 0u16..3).prop_map(|(task, cpu)| Act::Affinity(task, cpu)),
        (task(), prop::option::of(0u32..3)).prop_map(|(task, data)| Act::Fragment(task, data)),
        (0u16..3, any::<bool>()).prop_map(|(cpu, online)| Act::Online(cpu, online)),
    ];
    prop::collection::vec((0..FREE, act), 0..40).prop_map(|mut acts| {
        acts.sort_by_key(|(at, _)| *at);
        acts
    })
}

impl Act {
    fn change(&self, tasks: &[TaskId], groups: &[GroupId]) -> Change {
        let task = |number: u32| tasks[number as usize];
        let (app, quota) = (1, Duration::from_ms);
        match *self {
            Act::Stop(of, true) => Change::Stop(task(of)),
            Act::Stop(of, false) => Change::Continue(task(of)),
            Act::Freeze(of, true) => Change::Freeze(groups[of]),
            Act::Freeze(of, false) => Change::Thaw(groups[of]),
            Act::Quota(of, ms) => Change::Quota(groups[of], quota(ms)),
            Act::Group(of, to) => Change::Group(task(of), groups[to]),
            Act::Weight(of, weight) => Change::Weight(groups[of], weight),
            Act::Nice(of, nice) => Change::Nice(task(of), nice),
            Act::Policy(of, true) => Change::Policy(task(of), Policy::Batch),
            Act::Policy(of, false) => Change::Policy(task(of), Policy::Other),
            Act::Affinity(of, cpu) => {
                Change::Affinity(task(of), [CpuId(cpu)].into_iter().collect())
            }
            Act::Fragment(of, number) => {
                Change::Fragment(task(of), number.map(|number| Fragment { app, number }))
            }
            Act::Online(cpu, online) => Change::Online(CpuId(cpu), online),
        }
    }
}

/// What undoes every act.
fn frees(tasks: &[TaskId], groups: &[GroupId], cpus: u16) -> Vec<Change> {
    let online = (0..cpus).map(|cpu| Change::Online(CpuId(cpu), true));
    let all = CpuSet::first_cpus(cpus);
    let of_task = |task: &TaskId| {
        let everywhere = Change::Affinity(*task, all.clone());
        [
            Change::Continue(*task),
            Change::Fragment(*task, None),
            Change::Nice(*task, 0),
            everywhere,
        ]
    };
    let of_group = |group: &GroupId| {
        let plenty = Duration::from_s(1_000);
        [
            Change::Thaw(*group),
            Change::Quota(*group, plenty),
            // A fair share of the least weights would be less than a turn.
            Change::Weight(*group, 100),
        ]
    };
    let of_tasks = tasks.iter().flat_map(of_task);
    let of_groups = groups[1..].iter().flat_map(of_group);
    online.chain(of_tasks).chain(of_groups).collect()
}

/// What each task has done.
type Done = Rc<RefCell<Vec<u64>>>;

/// Two that compute, two that sleep, and two that wake each other. They end when all of them have
/// run since everybody is free, which says what they had done `before`.
fn start(
    boot: &mut Boot<'_>,
    done: &Done,
    before: &Done,
) -> Result<Vec<TaskId>, warmq_machine::OutOfMemory> {
    let semaphores = boot.semaphores(2, 0)?;
    let mut tasks = Vec::new();
    for number in 0..TASKS as usize {
        let (done, before) = (done.clone(), before.clone());
        let semaphores = semaphores.clone();
        let spec = called(&format!("t{number}"));
        let task = boot.task(spec, move |task: Task| async move {
            loop {
                task.compute_for(Duration::from_us(300 * (1 + number as u64)))
                    .await;
                match number {
                    0 | 1 => {}
                    2 | 3 => task.sleep(Duration::from_ms(number as u64)).await,
                    _ => {
                        task.raise(semaphores[number % 2]).await;
                        task.lower(semaphores[(number + 1) % 2]).await;
                    }
                }
                done.borrow_mut()[number] += 1;
                if all_ran(&before.borrow(), &done.borrow()) {
                    break;
                }
            }
            // Whoever is a turn ahead waits for one more.
            task.raise(semaphores[number % 2]).await;
        })?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// Whether all have done something since `before`, which is empty until they are free.
fn all_ran(before: &[u64], done: &[u64]) -> bool {
    !before.is_empty() && before.iter().zip(done).all(|(before, done)| done > before)
}

/// Within how many ms everybody runs who can. Under o1, who has expired waits for a second for each
/// runnable task and for the slices of the interactive ones. In the active array nothing bounds the
/// wait behind better priorities; with these tasks it stays below five seconds for each.
fn longest_wait(entry: &Entry) -> u64 {
    match entry.name {
        "o1" | "affinity-o1" | "o1-2.6.4" | "affinity-o1-2.6.4" => 5_000 * u64::from(TASKS),
        _ => 2_000,
    }
}

/// The acts that the scheduler goes on after. scx_warmq ends when a CPU goes or comes, for its
/// loader to start it again, and the lab has no loader.
fn survived_by(entry: &Entry, acts: &[(u64, Act)]) -> Vec<(u64, Act)> {
    let survived = |act: &Act| entry.name != WARMQ || !matches!(act, Act::Online(..));
    let kept = acts.iter().filter(|(_, act)| survived(act));
    kept.cloned().collect()
}

/// Plays `acts`, then frees everybody, until all have run and ended; returns what each task had
/// done when it was freed, and at the end.
fn play(entry: &Entry, stage: Stage, acts: &[(u64, Act)]) -> (Ending, Vec<u64>, Vec<u64>) {
    let cpus = stage.cpus;
    let done: Done = Rc::new(RefCell::new(vec![0; TASKS as usize]));
    let before: Done = Rc::default();
    let workload = |boot: &mut Boot<'_>| -> Started {
        let tasks = start(boot, &done, &before)?;
        let outer = boot.group(GroupId::ROOT, "outer", 100);
        let groups = [GroupId::ROOT, outer, boot.group(outer, "inner", 100)];
        for (at, act) in acts {
            let change = act.change(&tasks, &groups);
            boot.operator(Instant::START + ms(*at), |operator| async move {
                operator.change(change).await;
            });
        }
        let frees = frees(&tasks, &groups, cpus);
        let (done, before) = (done.clone(), before.clone());
        boot.operator(Instant::START + ms(FREE), |operator| async move {
            *before.borrow_mut() = done.borrow().clone();
            for change in frees {
                operator.change(change).await;
            }
        });
        Ok(())
    };
    // A held task is not a waiting one, but scx_warmq promises nothing where groups are named.
    let mut stage = match entry.name {
        WARMQ => stage.promised_nothing(),
        _ => stage.promised_by(entry),
    };
    stage.settings = under(entry.name, stage.settings);
    // The last one may wait as long again until it ends.
    let end = FREE + 2 * longest_wait(entry);
    let (ending, _) = stage.plays(scheduler(entry.name, &[]), end, workload);
    let (before, after) = (before.borrow().clone(), done.borrow().clone());
    (ending, before, after)
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn nobody_is_lost_whatever_changes(
        acts in acts(), cpus in 1u16..4, real: bool, configuration in configurations()
    ) {
        for entry in schedulers() {
            let stage = stage(cpus);
            let mut stage = if real { stage.real() } else { stage };
            configuration.apply(&mut stage.settings);
            // Linux 2.4 tells nobody of a sync wakeup.
            stage.settings.sync_socket_wakeups = false;
            stage.settings.nohz &= may_stop_ticks(entry);
            let (ending, before, after) = play(entry, stage, &survived_by(entry, &acts));
            prop_assert_eq!(ending, Ending::WorkDone, "{}", entry.name);
            for task in 0..TASKS as usize {
                prop_assert!(
                    after[task] > before[task],
                    "{}: task {task} does not run: {before:?} {after:?}", entry.name
                );
            }
        }
    }
}

/// A task is alone in its fragment, in a group whose weight falls to 1 and rises again while it
/// waits.
#[test]
fn who_is_alone_in_a_fragment_of_a_light_group_runs() {
    let group = [
        Act::Group(1, 1),
        Act::Fragment(1, Some(0)),
        Act::Weight(1, 1),
    ];
    let Some(entry) = schedulers().find(|entry| entry.name == WARMQ) else {
        return;
    };
    let (_, before, after) = play(entry, stage(1), &group.map(|act| (0, act)));
    assert!(after[1] > before[1], "{before:?} {after:?}");
}

/// A task is bound to a CPU that goes offline, and is then moved to another group.
#[test]
fn nobody_is_bound_to_a_cpu_that_is_offline() {
    let acts = [
        (0, Act::Affinity(5, 0)),
        (0, Act::Online(0, false)),
        (811, Act::Group(5, 1)),
    ];
    for entry in schedulers() {
        let (ending, before, after) = play(entry, stage(2), &acts);
        assert_eq!(ending, Ending::WorkDone, "{}", entry.name);
        assert!(after[5] > before[5], "{}: {before:?} {after:?}", entry.name);
    }
}

/// The wakeup of a task finds an idle CPU for it, on which its group is out of quota: nobody comes
/// to that CPU, which must be found again all the same.
#[test]
fn a_cpu_whose_task_is_throttled_on_arrival_is_found_again() {
    let acts = [
        (0, Act::Quota(1, 4)),
        (0, Act::Stop(0, true)),
        (45, Act::Group(4, 2)),
        (208, Act::Freeze(1, true)),
    ];
    for entry in schedulers() {
        for mut stage in [stage(3), stage(3).real()] {
            stage.settings.throttling = Throttling::Groups;
            stage.settings.staggered_periods = true;
            stage.settings.nohz = may_stop_ticks(entry);
            let (ending, before, after) = play(entry, stage, &acts);
            assert_eq!(ending, Ending::WorkDone, "{}", entry.name);
            let runs = (0..TASKS as usize).all(|task| after[task] > before[task]);
            assert!(runs, "{}: {before:?} {after:?}", entry.name);
        }
    }
}

/// How much CPU time the tasks had in each `period`, by the switches.
fn ran_in_periods(records: &[(Instant, Record)], period: Duration, end: Instant) -> Vec<Duration> {
    let mut ran = vec![Duration::ZERO; end.0.div_ceil(period.0) as usize];
    let mut add = |from: Instant, to: Instant| {
        let mut from = from;
        while from < to {
            let number = from.0 / period.0;
            let until = Instant((number + 1) * period.0).min(to);
            ran[number as usize] += until - from;
            from = until;
        }
    };
    let mut since = [None; 8];
    for (at, record) in records {
        if let Record::Switch { cpu, next, .. } = record {
            let here = &mut since[cpu.index()];
            here.take().into_iter().for_each(|from| add(from, *at));
            *here = next.map(|_| *at);
        }
    }
    since.into_iter().flatten().for_each(|from| add(from, end));
    ran
}

proptest! {
    #![proptest_config(config(60))]

    /// Each CPU may overrun by the tick at which it notices, which the next period pays back. A
    /// compiled scheduler keeps quotas by itself: reach.rs has those.
    #[test]
    fn a_group_has_its_quota_and_a_tick_of_each_cpu(
        cpus in 1u16..4, tasks in 1u16..6, quota in 5u64..150, period in 20u64..200, asleep in 0u64..30
    ) {
        let (quota, period, end) = (ms(quota), ms(period), Instant::START + ms(2_000));
        for entry in SCHEDULERS {
            let workload = |boot: &mut Boot<'_>| -> Started {
                let group = boot.group(GroupId::ROOT, "g", 100);
                let burst = Duration::ZERO;
                boot.bandwidth(group, Limits { quota, period, burst });
                for number in 0..tasks {
                    let spec = called("t").group(group);
                    match number % 2 {
                        0 => hog(boot, spec)?,
                        _ => sleeper(boot, spec, asleep, 2)?,
                    };
                }
                Ok(())
            };
            let stage = stage(cpus).promised_by(entry);
            let made = stage.plays_before(Kept::default(), scheduler(entry.name, &[]), 2_000, workload);
            let ran = ran_in_periods(&made.1.into_observer().0, period, end);
            // Beside the ticks, what a scheduler takes to pick tasks that are held at once.
            let slack = ms(10) * u64::from(cpus) + Duration::from_us(100);
            let mut all = Duration::ZERO;
            for (number, ran) in (1..).zip(&ran) {
                prop_assert!(*ran <= quota + slack, "{}: {ran} of {quota} in {number}", entry.name);
                all += *ran;
                prop_assert!(all <= quota * number + slack, "{}: {all:?} by {number}, {ran:?}", entry.name);
            }
            // One hog uses what it may: all but what a last period, cut short, keeps.
            let whole = end.0 / period.0;
            let least = (quota * whole).min(ms(2_000) - ms(10));
            prop_assert!(all + slack >= least, "{}: {all} of {least}", entry.name);
        }
    }
}
