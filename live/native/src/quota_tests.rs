//! Tasks of cgroups that are out of quota wait, and none is forgotten.

use super::race_tests::at_each_moment;
use super::*;

const MS: u64 = 1_000_000;

/// Two CPUs of one cache, a cgroup of 10 ms in 100 ms and one in it, where there are tasks that may
/// run on the CPUs of a mask each.
fn limited(allowed: &[u64]) -> Program {
    let machine = Machine {
        domain_of: vec![0, 0],
        core_of: vec![0, 1],
        ..Machine::default()
    };
    let mut program = Program::load(&machine, Policy::default());
    program.make_cgroup(1, 0, 100);
    program.set_quota(1, Some(10_000), 0);
    program.make_cgroup(2, 1, 100);
    for (task, allowed) in (0..).zip(allowed) {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed: *allowed,
            cgroup: 2,
        };
        let cpu = allowed.trailing_zeros();
        program.fork(task, birth, cpu, 0);
        program.select(task, (cpu, cpu), (Waker::Interrupt, false), 0);
        program.enqueue(task, (cpu, cpu), Waker::Interrupt, 0);
    }
    program
}

/// Lets CPU 0 run, with a tick each 4 ms, until all that it could run is out of quota. Returns
/// when.
fn until_throttled(program: &mut Program) -> u64 {
    let mut running = program.pick(0, 0);
    for at in (4..).step_by(4).map(|ms| ms * MS) {
        assert!(at < 1_000 * MS, "they are never out of quota");
        if running.is_none() {
            return at;
        }
        if program.tick(0, at) {
            running = program.pick(0, at);
        }
    }
    unreachable!()
}

#[test]
fn a_task_out_of_quota_waits_for_the_next_period() {
    let mut program = limited(&[1, 1]);
    let at = until_throttled(&mut program);
    assert!(at <= 24 * MS, "{at}");
    program.quota_timer(0, 99 * MS);
    assert_eq!(program.pick(0, 99 * MS), None);
    assert_ne!(program.quota_timer(0, 101 * MS).idle, 0);
    assert!(program.pick(0, 101 * MS).is_some());
    assert!(program.counts_are_right());
}

/// How long a task runs until it is out of quota, where its cgroup may keep `burst` us and used
/// nothing for a second.
fn ran_after_a_rest(burst: u64) -> u64 {
    let mut program = limited(&[1]);
    program.set_quota_with_burst(1, 10_000, burst, 0);
    let began = 1_000 * MS;
    program.quota_timer(0, began);
    assert_eq!(program.pick(0, began), Some(0));
    let ticks = (4..).step_by(4).map(|ms| ms * MS);
    let mut ends =
        ticks.filter(|ran| program.tick(0, began + ran) && program.pick(0, began + ran).is_none());
    ends.next().expect("its quota ends")
}

#[test]
fn a_cgroup_keeps_of_earlier_quotas_what_its_burst_allows() {
    assert_eq!(ran_after_a_rest(0), 12 * MS);
    assert_eq!(ran_after_a_rest(20_000), 32 * MS);
}

#[test]
fn a_task_inside_the_kernel_is_not_stopped() {
    let mut program = limited(&[1]);
    assert_eq!(program.pick(0, 0), Some(0));
    for at in (4..80).step_by(4).map(|ms| ms * MS) {
        if program.tick_inside(0, at) {
            assert_eq!(program.pick(0, at), Some(0), "at {at}");
        }
    }
    assert!(program.tick(0, 80 * MS));
    assert_eq!(program.pick(0, 80 * MS), None);
}

/// Two tasks, one of which runs until both are out of quota, while the other sleeps, `deeply` or
/// not. Returns which task runs when that has been woken.
fn woken_out_of_quota(deeply: bool) -> Option<u32> {
    let mut program = limited(&[1, 1]);
    let sleeper = program.pick(0, 0).expect("two are runnable");
    if deeply {
        program.sleep_deeply(sleeper, 0, MS);
    } else {
        program.sleep(sleeper, 0, false, MS);
    }
    let at = until_throttled(&mut program);
    program.select(sleeper, (0, 0), (Waker::Interrupt, false), at);
    program.enqueue(sleeper, (0, 0), Waker::Interrupt, at);
    program.pick(0, at)
}

#[test]
fn a_task_that_wakes_from_an_interruptible_sleep_waits_and_one_that_may_hold_locks_does_not() {
    assert_eq!(woken_out_of_quota(false), None);
    assert!(woken_out_of_quota(true).is_some());
}

#[test]
fn a_task_that_has_waited_runs_for_a_slice_even_if_a_tick_comes_at_once() {
    let mut program = limited(&[1, 1]);
    let began = until_throttled(&mut program);
    // No period begins, but they have waited enough.
    let at = began + 3_100 * MS;
    program.timer(0, at);
    let first = program.pick(0, at);
    assert!(first.is_some());
    program.tick(0, at + MS / 100);
    assert_eq!(program.pick(0, at + MS / 100), first);
    program.tick(0, at + 4 * MS);
    assert_ne!(program.pick(0, at + 4 * MS), first);
}

#[test]
fn no_task_waits_for_ever_whatever_its_cgroup_has_had() {
    let mut program = limited(&[1]);
    assert_eq!(program.pick(0, 0), Some(0));
    // Debts of 400 periods, from inside the kernel.
    assert!(program.tick_inside(0, 4_000 * MS));
    assert_eq!(program.pick(0, 4_000 * MS), Some(0));
    assert!(program.tick(0, 4_004 * MS));
    assert_eq!(program.pick(0, 4_004 * MS), None);
    for at in (4_100..9_000).step_by(10).map(|ms| ms * MS) {
        program.timer(0, at);
        if program.pick(0, at).is_some() {
            return;
        }
    }
    panic!("it waits for more than five seconds");
}

#[test]
fn a_task_that_is_bound_to_another_cpu_meanwhile_runs_there() {
    let mut program = limited(&[1]);
    until_throttled(&mut program);
    program.set_cpumask(0, 0, 2, 50 * MS);
    program.quota_timer(0, 101 * MS);
    assert_eq!(program.pick(1, 101 * MS), Some(0));
    assert!(program.counts_are_right());
}

#[test]
fn a_cgroup_that_is_removed_keeps_no_task() {
    let mut program = limited(&[1]);
    until_throttled(&mut program);
    program.remove_cgroup(2);
    program.timer(0, 50 * MS);
    assert_eq!(program.pick(0, 50 * MS), Some(0));
}

#[test]
fn a_task_that_is_queued_again_while_it_is_released_is_counted() {
    at_each_moment(Meanwhile::Requeue(0), |other| {
        let mut program = limited(&[1, 1]);
        until_throttled(&mut program);
        let came_in = other.during(&mut program, |program| {
            program.quota_timer(0, 101 * MS);
        });
        assert!(program.counts_are_right(), "moment {}", other.moment);
        let first = program.pick(0, 102 * MS).expect("two are runnable");
        program.sleep(first, 0, false, 103 * MS);
        assert_eq!(program.pick(0, 103 * MS), Some(1 - first));
        assert!(program.counts_are_right(), "moment {}", other.moment);
        came_in
    });
}

#[test]
fn tasks_that_two_timers_release_at_the_same_time_are_counted() {
    at_each_moment(Meanwhile::Release, |other| {
        let mut program = limited(&[1, 1]);
        until_throttled(&mut program);
        let came_in = other.during(&mut program, |program| {
            program.quota_timer(0, 101 * MS);
        });
        assert!(program.counts_are_right(), "moment {}", other.moment);
        came_in
    });
}

#[test]
fn a_task_that_is_throttled_while_the_last_quota_is_lifted_is_not_forgotten() {
    at_each_moment(Meanwhile::Lift(1), |other| {
        let mut program = limited(&[1]);
        assert_eq!(program.pick(0, 0), Some(0));
        assert!(program.tick(0, 20 * MS));
        let came_in = other.during(&mut program, |program| {
            program.pick(0, 20 * MS);
        });
        if came_in {
            program.timer(0, 30 * MS);
            assert_eq!(program.pick(0, 30 * MS), Some(0), "moment {}", other.moment);
        }
        came_in
    });
}
