//! One CPU: shares, speed, the balance timer, cgroups.

use warmq_kernel::{GroupId, Mode, TaskSpec};
use warmq_sched_ext::interleaved::Event;
use warmq_units::Duration;

use crate::warmq::object::CGROUPS;
use crate::warmq::play::{Play, Site, is_missing};

fn one_cpu() -> Play {
    Play::on(&Site::nodes(1, 1, 1))
}

fn woken(play: &mut Play, task: u32, spec: TaskSpec) {
    play.born_as(task, 0, spec);
    play.woken(task, 0);
}

/// A new task of a cgroup wakes.
fn starts_in(play: &mut Play, task: u32, group: GroupId) {
    woken(play, task, TaskSpec::new("task", None).group(group));
}

#[test]
fn a_cpu_runs_fast_while_it_has_work_and_slowly_when_it_sleeps() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&Site::nodes(1, 1, 1).set("sets_speed", 1));
    play.starts(0, 0);
    play.passes(40);
    assert_eq!(speed(&mut play), 1_024);
    // From now on it has a tenth of the CPU.
    for _ in 0..40 {
        play.sleeps(0);
        play.later(9);
        play.woken(0, 0);
        play.later(1);
    }
    let slow = speed(&mut play);
    assert!((100..160).contains(&slow), "{slow}");
}

/// The speed that CPU 0 was asked for last, of 1024.
fn speed(play: &mut Play) -> u64 {
    let calls = play.calls("scx_bpf_cpuperf_set");
    calls.last().expect("it was asked for")[1]
}

/// Whether a timer goes on that has expired.
fn goes_on(play: &mut Play) -> bool {
    play.later(10);
    let expired = play.expired();
    assert!(expired.len() < 2, "there is one timer");
    for (cpu, timer) in &expired {
        play.happens(cpu.0, Event::Timer(*timer));
    }
    !expired.is_empty()
}

#[test]
fn the_balance_timer_stops_where_nothing_runs() {
    if is_missing() {
        return;
    }
    let mut play = one_cpu();
    play.born(0, 0, 1);
    assert!(goes_on(&mut play), "it began with the scheduler");
    assert!(!goes_on(&mut play), "nothing runs");
    let wakes = Event::Wake(play.id(0));
    play.happens(0, wakes);
    assert!(goes_on(&mut play), "a task waits");
    play.settle();
    assert!(goes_on(&mut play), "a task runs");
    assert!(goes_on(&mut play), "a task runs still");
    play.sleeps(0);
    assert!(goes_on(&mut play), "a task ran");
    assert!(!goes_on(&mut play), "nothing runs again");
}

/// How many of 4,000 ms two tasks get that take turns.
fn shares(play: &mut Play) -> [u64; 2] {
    let mut ran = [0, 0];
    for _ in 0..4_000 {
        let running = play.runs(0).expect("two are runnable");
        ran[running as usize] += 1;
        play.later(1);
        play.tick(0, Mode::User);
        play.timers();
        play.settle();
    }
    ran
}

/// Nice -5 weighs three times as much as nice 0.
#[test]
fn two_tasks_take_turns_by_weight() {
    if is_missing() {
        return;
    }
    let mut play = one_cpu();
    for (task, nice) in [(0, 0), (1, -5)] {
        woken(&mut play, task, TaskSpec::new("task", None).nice(nice));
    }
    let ran = shares(&mut play);
    assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
}

#[test]
fn of_two_tasks_that_share_no_core_the_one_with_the_earlier_deadline_comes_first() {
    if is_missing() {
        return;
    }
    let mut play = one_cpu();
    for (task, nice) in [(0, 0), (1, -20), (2, 0)] {
        let spec = TaskSpec::new("task", None).nice(nice);
        play.born_as(task, 0, spec);
        let wakes = Event::Wake(play.id(task));
        play.happens(0, wakes);
    }
    let mut before = |one, other| {
        let tasks = [one, other].map(|task| play.pid(task));
        play.ask("race_core_sched_before", tasks) == 1
    };
    assert!(before(1, 0) && !before(0, 1));
    assert!(!before(0, 2) && !before(2, 0));
}

fn set_idle(play: &mut Play, group: GroupId, idle: bool) {
    play.happens(0, Event::Idle(group, idle));
}

/// Two tasks, each in a cgroup, the first of which is idle. Both sleep.
fn beside_an_idle_cgroup() -> (Play, GroupId) {
    let mut play = one_cpu();
    let groups = ["a", "b"].map(|name| play.kernel.group(name, GroupId::ROOT));
    for (task, group) in (0..).zip(groups) {
        play.born_as(task, 0, TaskSpec::new("task", None).group(group));
    }
    set_idle(&mut play, groups[0], true);
    (play, groups[0])
}

#[test]
fn an_idle_cgroup_gets_what_others_leave_and_gives_way_to_whatever_wakes() {
    if is_missing() {
        return;
    }
    let (mut play, _) = beside_an_idle_cgroup();
    assert_eq!(play.woken(0, 0), Some(0));
    // Sooner after another wakeup than any other task preempts.
    for _ in 0..2 {
        play.kernel.pass(Duration::from_us(100));
        assert_eq!(play.woken(1, 0), Some(0), "it preempts");
        play.kernel.pass(Duration::from_us(100));
        assert_eq!(play.sleeps(0), Some(0));
    }
    play.woken(1, 0);
    let ran = shares(&mut play);
    assert!(ran[0] < 100, "{ran:?}");
}

#[test]
fn a_cgroup_that_is_no_longer_idle_gets_its_share() {
    if is_missing() {
        return;
    }
    let (mut play, group) = beside_an_idle_cgroup();
    assert_eq!(play.woken(0, 0), Some(0));
    set_idle(&mut play, group, false);
    play.woken(1, 0);
    let ran = shares(&mut play);
    assert!((1_950..2_050).contains(&ran[0]), "{ran:?}");
}

/// All numbers of cgroups but one are taken.
fn leave_one_cgroup(play: &mut Play) {
    for number in 2..CGROUPS {
        play.kernel.group(&format!("{number}"), GroupId::ROOT);
    }
}

#[test]
fn a_cgroup_beyond_all_room_counts_as_the_one_it_is_in() {
    if is_missing() {
        return;
    }
    let mut play = one_cpu();
    leave_one_cgroup(&mut play);
    let outer = play.kernel.group("outer", GroupId::ROOT);
    play.happens(0, Event::Weigh(outer, 300));
    let inner = play.kernel.group("inner", outer);
    play.happens(0, Event::Limit(inner, [100_000, 1_000, 0]));
    assert_eq!(play.kernel.ask("race_quotas_refused", &[]), Some(1));
    for (task, group) in [(0, GroupId::ROOT), (1, inner)] {
        starts_in(&mut play, task, group);
    }
    let ran = shares(&mut play);
    assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
    play.remove(inner);
    play.check();
}

#[test]
fn a_cgroup_shares_by_its_weight_also_in_the_place_of_one_that_was_removed() {
    if is_missing() {
        return;
    }
    let mut play = one_cpu();
    let removed = play.kernel.group("removed", GroupId::ROOT);
    play.happens(0, Event::Weigh(removed, 500));
    play.remove(removed);
    let group = play.kernel.group("group", GroupId::ROOT);
    for (task, group) in [(0, GroupId::ROOT), (1, group)] {
        starts_in(&mut play, task, group);
    }
    let ran = shares(&mut play);
    assert!((1_950..2_050).contains(&ran[1]), "{ran:?}");
    play.happens(0, Event::Weigh(group, 300));
    let ran = shares(&mut play);
    assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
    play.check();
}
