//! What many groups cost, and that what they cost goes when they go.

use super::*;

const MS: u64 = 1_000_000;

/// One CPU, on which `groups` tasks wait, each in a group of its own, and how late it is then.
fn crowded(groups: u32) -> (Program, u64) {
    let machine = Machine {
        domain_of: vec![0],
        core_of: vec![0],
        place_is_cpu: false,
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
