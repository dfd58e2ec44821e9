//! Two CPUs at the same time: wherever the first is interrupted by what the second does, nobody is
//! forgotten and all counts are right.

use warmq_kernel::{GroupId, Mode, TaskSpec};
use warmq_sched_ext::interleaved::Event;

use crate::warmq::play::{ALL, Play, Site, affinity, is_missing};

/// Plays a story in which something is interrupted at its first place, then at its second, and so
/// on. The story returns whether there was such a place.
pub fn at_each_place(story: impl Fn(u64) -> bool) {
    let places = (0..).take_while(|place| story(*place));
    assert_ne!(places.count(), 0, "nothing was interrupted");
}

/// Two CPUs of one cache.
fn two_cpus() -> Play {
    Play::on(&Site::nodes(1, 1, 2))
}

/// Two tasks run, one on each CPU, and a third sleeps, which was last on CPU 0.
fn two_run() -> Play {
    let mut play = two_cpus();
    assert_eq!([0, 1].map(|task| play.starts(task, 0)), [Some(0), Some(1)]);
    play.born(2, 0, ALL);
    play.later(1);
    play
}

/// Two tasks run, CPU 1 idles, and it is kicked for a task that may run on CPU 0 only by now.
fn kicked_in_vain() -> Play {
    let mut play = two_run();
    play.born(3, 0, ALL);
    assert_eq!(play.sleeps(1), None);
    play.later(1);
    let [wakes, stays] = [Event::Wake(play.id(3)), affinity(play.id(3), 1)];
    play.happens(0, wakes);
    assert_eq!(play.kicked(), [1]);
    play.happens(0, stays);
    play
}

/// Something is interrupted by something else, after which CPUs look that are asked to, twice. Task
/// 2, which woke in one of them, runs on CPU 1.
fn third_runs(
    mut play: Play,
    one: (u16, fn(&Play) -> Event),
    other: (u16, fn(&Play) -> Event),
    place: u64,
) -> bool {
    let (first, second) = (one.1(&play), other.1(&play));
    let held = play.held((one.0, first), place, |play| {
        play.happens(other.0, second);
        let _ = play.look() && play.look();
    });
    play.settle();
    assert!(!held || play.runs(1) == Some(2), "place {place}");
    play.check();
    held
}

fn wakes(play: &Play) -> Event {
    Event::Wake(play.id(2))
}

#[test]
fn a_task_that_is_queued_while_a_cpu_goes_idle_runs_there() {
    if is_missing() {
        return;
    }
    at_each_place(|place| third_runs(two_run(), (0, wakes), (1, |_| Event::Sleep), place));
}

#[test]
fn a_cpu_that_goes_idle_while_a_task_is_queued_runs_it() {
    if is_missing() {
        return;
    }
    at_each_place(|place| third_runs(two_run(), (1, |_| Event::Sleep), (0, wakes), place));
}

#[test]
fn a_task_that_is_queued_while_a_cpu_looks_for_another_in_vain_runs_there() {
    if is_missing() {
        return;
    }
    at_each_place(|place| third_runs(kicked_in_vain(), (0, wakes), (1, |_| Event::Pick), place));
}

#[test]
fn a_cpu_that_looks_for_another_task_in_vain_while_one_is_queued_runs_it() {
    if is_missing() {
        return;
    }
    at_each_place(|place| third_runs(kicked_in_vain(), (1, |_| Event::Pick), (0, wakes), place));
}

/// A cgroup in a cgroup, and one of its tasks, which sleeps beside CPUs that are `busy`, or wakes
/// and runs on CPU 0.
fn in_a_cgroup(busy: bool) -> (Play, GroupId) {
    let mut play = if busy { two_run() } else { two_cpus() };
    let outer = play.kernel.group("outer", GroupId::ROOT);
    let inner = play.kernel.group("inner", outer);
    play.born_as(3, 0, TaskSpec::new("task", None).group(inner));
    if !busy {
        assert_eq!(play.woken(3, 0), Some(0));
    }
    (play, inner)
}

/// Something is interrupted, or interrupts, while the weight of a cgroup changes.
fn weighs(
    (mut play, inner): (Play, GroupId),
    event: fn(&Play) -> Event,
    place: u64,
    first: bool,
) -> bool {
    let (event, weighs) = ((0, event(&play)), (1, Event::Weigh(inner, 300)));
    let (one, other) = match first {
        true => (event, weighs),
        false => (weighs, event),
    };
    let held = play.held(one, place, |play| play.happens(other.0, other.1));
    play.check();
    held
}

/// A task that wakes for an idle CPU is counted at its first tick.
#[test]
fn a_cgroup_whose_weight_changes_while_a_task_of_it_wakes_or_sleeps_is_counted_once() {
    if is_missing() {
        return;
    }
    let counted = || {
        let (mut play, inner) = in_a_cgroup(false);
        play.passes(4);
        (play, inner)
    };
    for first in [true, false] {
        let wakes = |play: &Play| Event::Wake(play.id(3));
        at_each_place(|place| weighs(in_a_cgroup(true), wakes, place, first));
        let ticks = |_: &Play| Event::Tick(Mode::User);
        at_each_place(|place| weighs(in_a_cgroup(false), ticks, place, first));
        at_each_place(|place| weighs(counted(), |_| Event::Sleep, place, first));
    }
}

#[test]
fn a_task_whose_slot_is_read_while_it_hints_ends_in_the_group_of_its_slot() {
    if is_missing() {
        return;
    }
    at_each_place(|place| {
        let mut play = two_run();
        // The table of groups is empty, and has been for long.
        play.later(200);
        play.names(0, 3);
        play.write_slot(0, 7);
        let held = play.held((0, Event::Hint(5)), place, |play| {
            play.happens(0, Event::Tick(Mode::System));
        });
        play.settle();
        play.check();
        play.later(4);
        let cpu = play.cpu_of(0).expect("it runs");
        play.tick(cpu, Mode::User);
        assert_eq!(play.hint_of(0), 7, "place {place}");
        play.check();
        held
    });
}

#[test]
fn a_cpu_counts_no_task_that_was_queued_elsewhere_before_it_ran() {
    if is_missing() {
        return;
    }
    let mut play = two_cpus();
    play.born(0, 0, ALL);
    let [wakes, changes] = [Event::Wake(play.id(0)), Event::Nice(play.id(0), -5)];
    play.happens(0, wakes);
    assert_eq!(play.kicked(), [0]);
    play.happens(1, changes);
    play.check();
    play.settle();
    assert!(play.cpu_of(0).is_some());
    play.check();
}

#[test]
fn a_task_that_was_to_run_on_a_cpu_which_a_real_time_task_takes_runs_elsewhere() {
    if is_missing() {
        return;
    }
    let mut play = two_cpus();
    assert_eq!(play.starts(0, 0), Some(0));
    // It goes on as a real-time task, and sleeps.
    play.happens(0, Event::Leave);
    play.later(1);
    assert_eq!(play.pick(0), None);
    assert_eq!(play.starts(1, 1), Some(1));
    play.later(1);
    play.born(2, 0, ALL);
    let wakes = Event::Wake(play.id(2));
    play.happens(0, wakes);
    assert_eq!(play.kicked(), [0]);
    // It does not come to that: a real-time task takes it.
    play.happens(0, Event::Taken);
    let mut rounds = (0..4).map(|_| {
        play.later(10);
        play.timers();
        play.happens(1, Event::Tick(Mode::User));
        play.happens(1, Event::Pick);
        play.runs(1)
    });
    assert!(rounds.any(|task| task == Some(2)));
}
