//! What many groups cost, and that what they cost goes when they go.

use super::*;

const MS: u64 = 1_000_000;

/// One CPU, on which `groups` tasks wait, each in a group of its own, and how late it is then.
fn crowded(groups: u32) -> (Program, u64) {
    let machine = Machine {
        domain_of: vec![0],
        core_of: vec![0],
        ..Machine::default()
    };
    let mut program = Program::load(&machine, Policy::default());
    let mut now = 1_000 * MS;
    for task in 0..groups {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed: 1,
            cgroup: 0,
        };
        program.fork(task, birth, 0, now);
        wake(&mut program, task, now);
        // Each names its data when it runs for the first time.
        let mut named = None;
        while named != Some(task) {
            now += MS;
            named = program.pick(0, now);
            program.yield_task(0, now);
        }
        program.hint(0, u64::from(task) + 1, now);
    }
    (program, now)
}

fn wake(program: &mut Program, task: u32, now: u64) {
    program.select(task, (0, 0), (Waker::Interrupt, false), now);
    program.enqueue(task, (0, 0), Waker::Interrupt, now);
}

/// How many queues a CPU looks into in 200 picks among so many groups.
fn looks(groups: u32) -> u64 {
    let (mut program, mut now) = crowded(groups);
    let before = program.looks();
    for _ in 0..200 {
        now += 20 * MS;
        program.tick(0, now);
        program.pick(0, now);
    }
    program.looks() - before
}

/// It was one for each group.
#[test]
fn a_pick_among_many_groups_looks_into_few_queues() {
    let (few, many) = (looks(3), looks(53));
    println!("queues looked into in 200 picks: {few} with 3 groups, {many} with 53");
    assert!(many <= 200 * 6, "{few} with 3 groups, {many} with 53");
}

/// Two caches of four CPUs, and how many tasks CPU `looks` passes, if 20 wait in the first cache
/// that may run on CPUs 0 and 1 only: while it runs a task whose slice ends, and then when it goes
/// idle.
fn passed_by(looks: u32) -> (u64, u64) {
    let machine = Machine {
        domain_of: (0..8).map(|cpu| cpu / 4).collect(),
        core_of: (0..8).collect(),
        ..Machine::default()
    };
    let mut program = Program::load(&machine, Policy::default());
    let born = |program: &mut Program, task, cpu, allowed| {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed,
            cgroup: 0,
        };
        program.fork(task, birth, cpu, MS);
        let cpu = program.select(task, (cpu, cpu), (Waker::Interrupt, false), MS);
        program.enqueue(task, (cpu, cpu), Waker::Interrupt, MS);
        cpu
    };
    for task in 0..8 {
        assert_eq!(born(&mut program, task, task, u64::MAX), task);
        program.pick(task, MS);
    }
    (8..28).for_each(|task| assert!(born(&mut program, task, 0, 0b11) < 2));
    let since = |program: &Program, before| program.passed() - before;
    let mut before = program.passed();
    for at in [11 * MS, 21 * MS] {
        program.tick(looks, at);
    }
    assert_eq!(program.pick(looks, 21 * MS), Some(looks));
    let runs = since(&program, before);
    before = program.passed();
    program.sleep(looks, looks, false, 22 * MS);
    assert_eq!(program.pick(looks, 22 * MS), None);
    (runs, since(&program, before))
}

/// docs/scheduler.md says so, and what that costs.
#[test]
fn tasks_that_may_not_run_on_a_cpu_are_passed_four_times_at_most() {
    assert_eq!(passed_by(2), (2 * 20, 4 * 20));
    let (runs, idle) = passed_by(4);
    assert!(runs <= 20 && idle <= 2 * 20, "{runs}, {idle}");
}

#[test]
fn what_groups_cost_goes_when_they_go() {
    let (mut program, mut now) = crowded(40);
    assert!(program.groups_used() > 40);
    for _ in 0..40 {
        now += 20 * MS;
        let running = program.pick(0, now).expect("they wait");
        program.sleep(running, 0, true, now);
        program.exit(running, 0, now);
    }
    assert_eq!(program.pick(0, now), None);
    for _ in 0..20 {
        now += 10 * MS;
        program.timer(0, now);
    }
    assert_eq!(program.groups_used(), 1);
}

/// A light task waits beside a heavy one for a CPU that is not asked for another task.
#[test]
fn who_has_waited_for_too_long_comes_next() {
    let machine = Machine {
        domain_of: vec![0],
        core_of: vec![0],
        ..Machine::default()
    };
    let mut program = Program::load(&machine, Policy::default());
    for (task, weight) in [(0, 100), (1, 100), (2, 1)] {
        let birth = Birth {
            parent: None,
            weight,
            allowed: u64::MAX,
            cgroup: 0,
        };
        program.fork(task, birth, 0, MS);
        program.enqueue(task, (0, 0), Waker::Interrupt, MS);
    }
    assert_eq!(program.pick(0, MS), Some(0));
    let after = |program: &mut Program, ms: u64| {
        for round in 0..16 {
            program.timer(0, (ms + round) * MS);
        }
        program.tick(0, (ms + 20) * MS);
        program.pick(0, (ms + 20) * MS)
    };
    assert_eq!(after(&mut program, 50), Some(1), "nobody is late yet");
    assert_eq!(after(&mut program, 4_200), Some(2));
}
