//! The table of groups: who gets one, and who loses it.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// One CPU, and tasks that sleep.
fn with_tasks(count: u32) -> Program {
    let machine = Machine {
        domain_of: vec![0],
        core_of: vec![0],
        ..Machine::default()
    };
    let mut program = Program::load(&machine, Policy::default());
    for task in 0..count {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed: 1,
            cgroup: 0,
        };
        program.fork(task, birth, 0, 0);
    }
    program
}

/// A task wakes, hints, and goes on.
fn hints(program: &mut Program, task: u32, hint: u64, now: u64) {
    wakes(program, task, now);
    program.hint(0, hint, now);
}

/// A task wakes and runs.
fn wakes(program: &mut Program, task: u32, now: u64) {
    program.select(task, (0, 0), (Waker::Interrupt, false), now);
    program.enqueue(task, (0, 0), Waker::Interrupt, now);
    assert_eq!(program.pick(0, now), Some(task));
}

/// It sleeps.
fn sleeps(program: &mut Program, task: u32, now: u64) {
    program.sleep(task, 0, false, now);
    assert_eq!(program.pick(0, now), None);
}

#[test]
fn a_group_whose_members_have_slept_for_long_is_given_to_others_until_they_wake() {
    let mut program = with_tasks(2);
    program.limit_groups(1, 9);
    hints(&mut program, 0, 5, SECOND);
    sleeps(&mut program, 0, SECOND);
    hints(&mut program, 1, 6, 3 * SECOND);
    assert_eq!((program.hint_of(0), program.hint_of(1)), (0, 6));
    assert!(program.counts_are_right());
    sleeps(&mut program, 1, 3 * SECOND);
    // The first wakes, and has its group again.
    wakes(&mut program, 0, 5 * SECOND);
    assert_eq!((program.hint_of(0), program.hint_of(1)), (5, 0));
    assert!(program.counts_are_right());
    program.exit(1, 0, 5 * SECOND);
    assert!(program.counts_are_right());
}

#[test]
fn a_group_that_was_without_members_for_long_is_served_again() {
    let mut program = with_tasks(1);
    hints(&mut program, 0, 5, SECOND);
    program.hint(0, 0, SECOND);
    program.timer(0, 2 * SECOND);
    assert_eq!(program.groups_used(), 1);
    program.hint(0, 5, 2 * SECOND);
    sleeps(&mut program, 0, 2 * SECOND);
    program.enqueue(0, (0, 0), Waker::Interrupt, 3 * SECOND);
    assert_eq!(program.pick(0, 3 * SECOND), Some(0));
}

#[test]
fn a_group_with_a_member_that_runs_or_has_just_run_is_kept() {
    let mut program = with_tasks(2);
    program.limit_groups(1, 9);
    hints(&mut program, 0, 5, SECOND);
    for at in [2 * SECOND, 3 * SECOND] {
        program.tick(0, at);
        assert_eq!(program.pick(0, at), Some(0));
    }
    sleeps(&mut program, 0, 3 * SECOND);
    hints(&mut program, 1, 6, 3 * SECOND + SECOND / 2);
    assert_eq!((program.hint_of(0), program.hint_of(1)), (5, 0));
}

#[test]
fn users_of_a_namespace_count_as_the_one_who_made_it() {
    let mut program = with_tasks(3);
    program.limit_groups(9, 1);
    for (task, owner) in [(0, 1_000), (1, 1_000), (2, 1_001)] {
        program.set_user(task, 100_000 + task, owner);
        hints(&mut program, task, 5, SECOND);
        sleeps(&mut program, task, SECOND);
    }
    let groups = [0, 1, 2].map(|task| program.hint_of(task));
    assert_eq!(groups, [5, 0, 5]);
}

#[test]
fn a_hint_cannot_name_what_only_the_scheduler_names() {
    let mut program = with_tasks(1);
    hints(&mut program, 0, 5 | 3 << 62, SECOND);
    assert_eq!(program.hint_of(0), 5);
    program.write_slot(0, 6 | 1 << 63);
    program.tick(0, SECOND);
    assert_eq!(program.hint_of(0), 6);
}
