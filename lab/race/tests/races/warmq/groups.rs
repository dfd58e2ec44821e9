//! The table of groups: who gets one, and who loses it. Each task is a process of its own.

use crate::warmq::play::{Play, Site, is_missing};

const SECOND: u64 = 1_000;

/// One CPU, tasks that sleep, and room for so many groups, and for so many of a user.
fn with_tasks(count: u32, most: i128, of_user: i128) -> Play {
    let site = Site::nodes(1, 1, 1)
        .set("nr_groups", most + 1)
        .set("groups_per_user", of_user);
    let mut play = Play::in_scope(&site, "process");
    (0..count).for_each(|task| play.born(task, 0, 1));
    play
}

/// A task wakes, hints, and goes on.
fn hints(play: &mut Play, task: u32, hint: u64) {
    assert_eq!(play.woken(task, 0), Some(0));
    play.names(0, hint);
}

fn sleeps(play: &mut Play) {
    assert_eq!(play.sleeps(0), None);
}

/// A task is of a user in a namespace that another has made.
fn enter_namespace(play: &mut Play, task: u32, owner: u64) {
    let numbers = [play.pid(task), owner];
    assert_eq!(play.ask("race_enter_namespace", numbers), 0);
}

fn hints_of(play: &mut Play) -> [i32; 2] {
    [play.hint_of(0), play.hint_of(1)]
}

#[test]
fn a_group_whose_members_have_slept_for_long_is_given_to_others_until_they_wake() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(2, 1, 9);
    play.passes(SECOND);
    hints(&mut play, 0, 5);
    sleeps(&mut play);
    play.passes(2 * SECOND);
    hints(&mut play, 1, 6);
    assert_eq!(hints_of(&mut play), [0, 6]);
    play.check();
    sleeps(&mut play);
    // The first wakes, and has its group again.
    play.passes(2 * SECOND);
    assert_eq!(play.woken(0, 0), Some(0));
    assert_eq!(hints_of(&mut play), [5, 0]);
    play.check();
}

#[test]
fn a_task_that_exits_leaves_its_group_which_others_get() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(2, 1, 9);
    hints(&mut play, 0, 5);
    play.all_of(0, warmq_sched_ext::interleaved::Event::Exit);
    play.check();
    // As long as a group without members keeps its home.
    play.passes(101);
    hints(&mut play, 1, 6);
    assert_eq!(play.hint_of(1), 6);
}

#[test]
fn a_group_that_was_without_members_for_long_is_served_again() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(1, 9, 9);
    hints(&mut play, 0, 5);
    play.names(0, 0);
    play.passes(SECOND);
    assert_eq!(play.kernel.ask("race_groups_used", &[]), Some(1));
    play.names(0, 5);
    sleeps(&mut play);
    play.passes(SECOND);
    assert_eq!(play.woken(0, 0), Some(0));
}

#[test]
fn a_group_with_a_member_that_runs_or_has_just_run_is_kept() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(2, 1, 9);
    hints(&mut play, 0, 5);
    play.passes(2 * SECOND);
    sleeps(&mut play);
    play.passes(SECOND / 2);
    hints(&mut play, 1, 6);
    assert_eq!(hints_of(&mut play), [5, 0]);
}

#[test]
fn users_of_a_namespace_count_as_the_one_who_made_it() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(3, 9, 1);
    for (task, owner) in [(0, 1_000), (1, 1_000), (2, 1_001)] {
        enter_namespace(&mut play, task, owner);
        hints(&mut play, task, 5);
        sleeps(&mut play);
    }
    let groups = [0, 1, 2].map(|task| play.hint_of(task));
    assert_eq!(groups, [5, 0, 5]);
}

#[test]
fn a_hint_cannot_name_what_only_the_scheduler_names() {
    if is_missing() {
        return;
    }
    let mut play = with_tasks(1, 9, 9);
    hints(&mut play, 0, 5 | 3 << 62);
    assert_eq!(play.hint_of(0), 5);
    play.write_slot(0, 6 | 1 << 63);
    play.passes(4);
    assert_eq!(play.hint_of(0), 6);
}
