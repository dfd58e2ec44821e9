//! Two CPUs at the same time: whatever moment the second comes in, nobody is forgotten and all
//! counts are right.

use super::*;

const MS: u64 = 1_000_000;

/// What the other CPU does, and when.
#[derive(Clone, Copy)]
pub struct Other {
    what: Meanwhile,
    pub moment: u32,
}

impl Other {
    /// Calls, and lets the other CPU come in. Returns whether it did.
    pub fn during(self, program: &mut Program, call: impl FnOnce(&mut Program)) -> bool {
        program.meanwhile(self.what, self.moment);
        call(program);
        program.came_in()
    }
}

/// Plays a story with `what` at the first moment of its call, then at its second, and so on. The
/// story returns whether there was such a moment.
pub fn at_each_moment(what: Meanwhile, story: impl Fn(Other) -> bool) {
    let moments = (0..).take_while(|moment| {
        story(Other {
            what,
            moment: *moment,
        })
    });
    assert_ne!(moments.count(), 0, "the other CPU never came in");
}

/// Two CPUs of one cache.
fn two_cpus() -> Program {
    let machine = Machine {
        domain_of: vec![0, 0],
        core_of: vec![0, 1],
        ..Machine::default()
    };
    Program::load(&machine, Policy::default())
}

/// A task that may run on both CPUs is made in a cgroup.
fn born(program: &mut Program, task: u32, cgroup: u32) {
    let birth = Birth {
        parent: None,
        weight: 100,
        allowed: 3,
        cgroup,
    };
    program.fork(task, birth, 0, 0);
}

/// A task is woken by an interrupt on CPU 0, and was there last.
fn wake(program: &mut Program, task: u32, now: u64) -> Kicks {
    let cpu = program.select(task, (0, 0), (Waker::Interrupt, false), now);
    program.enqueue(task, (0, cpu), Waker::Interrupt, now)
}

/// Makes two tasks run, one on each CPU, and a third, which sleeps.
fn two_run(program: &mut Program) {
    for task in 0..3 {
        born(program, task, 0);
    }
    for cpu in 0..2 {
        wake(program, cpu, 0);
        assert_eq!(program.pick(cpu, 0), Some(cpu));
    }
}

/// CPU 1, which idles, looks for a task as long as it is kicked. Returns what it runs.
fn answer_kicks(program: &mut Program, mut kicked: Cpus, now: u64) -> Option<u32> {
    for _ in 0..4 {
        if (kicked & Cpus::from(2)) == 0 {
            return None;
        }
        if let Some(task) = program.pick(1, now) {
            return Some(task);
        }
        kicked = program.kicks().idle;
    }
    None
}

/// Task 2 wakes, and meanwhile CPU 1 does something else.
fn runs_on_the_cpu_that_is_kicked(program: &mut Program, other: Other) -> bool {
    let mut kicked = Cpus::default();
    let came_in = other.during(program, |program| kicked = wake(program, 2, MS).idle);
    let runs = answer_kicks(program, kicked, MS);
    assert!(!came_in || runs == Some(2), "moment {}", other.moment);
    came_in
}

#[test]
fn a_task_that_is_queued_while_a_cpu_goes_idle_runs_there() {
    at_each_moment(Meanwhile::GoIdle(1), |other| {
        let mut program = two_cpus();
        two_run(&mut program);
        runs_on_the_cpu_that_is_kicked(&mut program, other)
    });
}

#[test]
fn a_cpu_that_goes_idle_while_a_task_is_queued_runs_it() {
    at_each_moment(Meanwhile::Wake(2), |other| {
        let mut program = two_cpus();
        two_run(&mut program);
        program.sleep(1, 1, false, MS);
        runs_what_woke(&mut program, other)
    });
}

/// Two tasks run, CPU 1 idles, and it is kicked for a task that may run on CPU 0 only by now.
fn kicked_in_vain() -> Program {
    let mut program = two_cpus();
    two_run(&mut program);
    born(&mut program, 3, 0);
    program.sleep(1, 1, false, MS / 2);
    assert_eq!(program.pick(1, MS / 2), None);
    assert_eq!(wake(&mut program, 3, MS).idle, 2);
    program.set_cpumask(3, 0, 1, MS);
    program.kicks();
    program
}

/// CPU 1 looks for a task, and meanwhile another wakes.
fn runs_what_woke(program: &mut Program, other: Other) -> bool {
    let mut runs = None;
    let came_in = other.during(program, |program| runs = program.pick(1, MS));
    let kicked = program.kicks().idle;
    let runs = runs.or_else(|| answer_kicks(program, kicked, MS));
    assert!(!came_in || runs == Some(2), "moment {}", other.moment);
    came_in
}

#[test]
fn a_task_that_is_queued_while_a_cpu_looks_for_another_in_vain_runs_there() {
    at_each_moment(Meanwhile::Look(1), |other| {
        runs_on_the_cpu_that_is_kicked(&mut kicked_in_vain(), other)
    });
}

#[test]
fn a_cpu_that_looks_for_another_task_in_vain_while_one_is_queued_runs_it() {
    at_each_moment(Meanwhile::Wake(2), |other| {
        runs_what_woke(&mut kicked_in_vain(), other)
    });
}

#[test]
fn a_cgroup_whose_weight_changes_while_a_task_of_it_wakes_or_sleeps_is_counted_once() {
    let began = |program: &mut Program| {
        program.make_cgroup(1, 0, 100);
        program.make_cgroup(2, 1, 100);
        born(program, 0, 2);
    };
    at_each_moment(Meanwhile::Weigh(2, 300), |other| {
        let mut program = two_cpus();
        began(&mut program);
        let came_in = other.during(&mut program, |program| {
            wake(program, 0, 0);
        });
        assert!(program.counts_are_right(), "moment {}", other.moment);
        came_in
    });
    at_each_moment(Meanwhile::Weigh(2, 300), |other| {
        let mut program = two_cpus();
        began(&mut program);
        wake(&mut program, 0, 0);
        assert_eq!(program.pick(0, 0), Some(0));
        let came_in = other.during(&mut program, |program| program.sleep(0, 0, false, MS));
        assert!(program.counts_are_right(), "moment {}", other.moment);
        came_in
    });
}

#[test]
fn a_task_whose_slot_is_read_while_it_hints_ends_in_the_group_of_its_slot() {
    at_each_moment(Meanwhile::Tick, |other| {
        let mut program = two_cpus();
        two_run(&mut program);
        // The table of groups is empty, and has been for long.
        program.hint(0, 3, 200 * MS);
        program.write_slot(0, 7);
        let came_in = other.during(&mut program, |program| {
            program.hint(0, 5, 200 * MS);
        });
        assert!(program.counts_are_right(), "moment {}", other.moment);
        program.tick(0, 204 * MS);
        assert_eq!(program.hint_of(0), 7, "moment {}", other.moment);
        assert!(program.counts_are_right());
        came_in
    });
}

#[test]
fn a_cpu_counts_no_task_that_was_queued_elsewhere_before_it_ran() {
    let mut program = two_cpus();
    born(&mut program, 0, 0);
    assert_eq!(wake(&mut program, 0, 0).idle, 1);
    program.set_weight(0, 1, 300, 0);
    assert!(program.counts_are_right());
    assert_eq!(program.pick(0, 0), Some(0));
    assert!(program.counts_are_right());
}

#[test]
fn a_task_that_was_to_run_on_a_cpu_which_a_real_time_task_takes_runs_elsewhere() {
    let mut program = two_cpus();
    for task in 0..3 {
        born(&mut program, task, 0);
    }
    wake(&mut program, 0, 0);
    assert_eq!(program.pick(0, 0), Some(0));
    // It goes on as a real-time task, and sleeps.
    program.leave_class(0, 0, MS);
    assert_eq!(program.pick(0, MS), None);
    let cpu = program.select(1, (1, 1), (Waker::Interrupt, false), MS);
    program.enqueue(1, (1, cpu), Waker::Interrupt, MS);
    assert_eq!(program.pick(1, MS), Some(1));
    wake(&mut program, 2, 2 * MS);
    program.taken_by_realtime(0, 2 * MS);
    let rounds = (1..=4).map(|round| round * 10 * MS);
    let mut runs = rounds.map(|now| {
        program.timer(1, now);
        program.tick(1, now);
        program.pick(1, now)
    });
    assert!(runs.any(|task| task == Some(2)));
}
