//! What many groups cost, and that what they cost goes when they go.

use warmq_kernel::{Mode, TaskSpec};
use warmq_sched_ext::interleaved::Event;

use crate::warmq::play::{Play, Site, is_missing};

/// One CPU, on which `groups` tasks wait, each in a group of its own.
fn crowded(groups: u32) -> Play {
    let mut play = Play::on(&Site::nodes(1, 1, 1));
    for task in 0..groups {
        play.starts(task, 0);
        // Each names its data when it runs for the first time.
        while play.runs(0) != Some(task) {
            play.passes(1);
            play.all_of(0, Event::Yield);
        }
        play.names(0, u64::from(task) + 1);
    }
    play
}

/// How many queues a CPU looks into in 200 picks among so many groups.
fn looks(groups: u32) -> usize {
    let mut play = crowded(groups);
    play.calls("scx_bpf_dsq_peek");
    for _ in 0..200 {
        play.later(20);
        play.tick(0, Mode::User);
    }
    play.calls("scx_bpf_dsq_peek").len()
}

/// It was one for each group.
#[test]
fn a_pick_among_many_groups_looks_into_few_queues() {
    if is_missing() {
        return;
    }
    let (few, many) = (looks(3), looks(53));
    println!("queues looked into in 200 picks: {few} with 3 groups, {many} with 53");
    assert!(
        (200..=200 * 6).contains(&many),
        "{few} with 3 groups, {many} with 53"
    );
}

/// Tasks that wait in the first cache and may run on CPUs 0 and 1 only.
const WAITING: usize = 20;

/// Two caches of four CPUs, and how often CPU `looks` passes [`WAITING`] tasks: while it runs a
/// task whose slice ends, and then when it goes idle.
fn passed_by(looks: u16) -> (usize, usize) {
    let mut play = Play::on(&Site::nodes(1, 2, 4));
    for task in 0..8 {
        assert_eq!(play.starts(task, task as u16), Some(task as u16));
    }
    for task in 8..8 + WAITING as u32 {
        play.born(task, 0, 0b11);
        assert_eq!(play.woken(task, 0), None);
    }
    play.calls("");
    for _ in 0..2 {
        play.later(10);
        play.expired();
        play.happens(looks, Event::Tick(Mode::User));
    }
    play.settle();
    assert_eq!(play.runs(looks), Some(looks.into()));
    let runs = passes(&mut play);
    play.later(1);
    assert_eq!(play.sleeps(looks), None);
    (runs, passes(&mut play))
}

/// How often a CPU tried to take one from the queue of the first cache.
fn passes(play: &mut Play) -> usize {
    /// `DSQ_BASE`, and the entity of the first cache.
    const QUEUE: u64 = 0x1000;
    let tried = play.calls("scx_bpf_dsq_move_to_local");
    tried.iter().filter(|args| args[0] == QUEUE).count()
}

/// docs/scheduler/limits.md says so, and what that costs.
#[test]
fn tasks_that_may_not_run_on_a_cpu_are_passed_four_times_at_most() {
    if is_missing() {
        return;
    }
    assert_eq!(passed_by(2), (2, 4));
    let (runs, idle) = passed_by(4);
    assert!(runs <= 1 && idle <= 2, "{runs}, {idle}");
}

#[test]
fn what_groups_cost_goes_when_they_go() {
    if is_missing() {
        return;
    }
    let mut play = crowded(40);
    assert!(play.kernel.ask("race_groups_used", &[]) > Some(40));
    for _ in 0..40 {
        play.later(20);
        assert!(play.runs(0).is_some(), "they wait");
        play.all_of(0, Event::Exit);
    }
    // The timer stops where nothing runs.
    assert_eq!(play.starts(40, 0), Some(0));
    play.passes(200);
    assert_eq!(play.kernel.ask("race_groups_used", &[]), Some(1));
}

/// A light task has waited beside one that runs, on a CPU that is not asked for another task, and
/// now a third one wakes. Who comes next, where the timer looks at who is late in one round of 16.
fn next_after(looks: u64) -> Option<u32> {
    let mut play = Play::on(&Site::nodes(1, 1, 1));
    for (task, nice) in [(0, 0), (1, 19)] {
        play.born_as(task, 0, TaskSpec::new("task", None).nice(nice));
        play.woken(task, 0);
    }
    assert_eq!(play.runs(0), Some(0));
    for round in 1..=16 * looks {
        if round == 16 * looks {
            assert_eq!(play.starts(2, 0), None);
        }
        play.later(10);
        play.timers();
    }
    play.tick(0, Mode::User)
}

#[test]
fn who_has_waited_for_too_long_comes_next() {
    if is_missing() {
        return;
    }
    assert_eq!(next_after(1), Some(2), "nobody is late yet");
    assert_eq!(next_after(20), Some(1), "it has waited for 3.2 s");
}
