//! Tasks of cgroups that are out of quota wait, and none is forgotten.

use warmq_kernel::{GroupId, Mode, TaskSpec};
use warmq_sched_ext::interleaved::Event;
use warmq_units::Duration;

use crate::warmq::moments::at_each_place;
use crate::warmq::play::{Play, Site, affinity, bound, is_missing};

/// us
const PERIOD: u64 = 100_000;
const QUOTA: u64 = 10_000;

/// Two CPUs of one cache, a cgroup with a quota, and one in it, whose tasks wait for CPU 0, to
/// which they are bound, and which has not looked yet.
struct Limited {
    play: Play,
    outer: GroupId,
    inner: GroupId,
}

fn limited(tasks: u32) -> Limited {
    let mut play = Play::on(&Site::nodes(1, 1, 2));
    let outer = play.kernel.group("outer", GroupId::ROOT);
    let inner = play.kernel.group("inner", outer);
    let mut limited = Limited { play, outer, inner };
    limited.allow(PERIOD, QUOTA, 0);
    for task in 0..tasks {
        let spec = bound(TaskSpec::new("task", None), 1);
        limited.play.born_as(task, 0, spec.group(inner));
        let wakes = Event::Wake(limited.play.id(task));
        limited.play.happens(0, wakes);
    }
    limited
}

impl Limited {
    /// The outer cgroup has so much in each period, and keeps so much of earlier ones; all in us.
    fn allow(&mut self, period: u64, quota: u64, burst: u64) {
        let limit = Event::Limit(self.outer, [period, quota, burst]);
        self.play.happens(1, limit);
    }

    /// CPU 0 runs until all that it could run is out of quota.
    fn until_throttled(&mut self) -> u64 {
        self.play.settle();
        while self.play.runs(0).is_some() {
            assert!(self.play.now < 90, "they are never out of quota");
            self.play.passes(4);
        }
        self.play.now
    }

    /// Until a time in ms, timers alone do something.
    fn waits_until(&mut self, now: u64) {
        while self.play.now < now {
            self.play.later(1);
            self.play.timers();
        }
    }
}

#[test]
fn a_task_out_of_quota_waits_for_the_next_period() {
    if is_missing() {
        return;
    }
    let mut limited = limited(2);
    let at = limited.until_throttled();
    assert!(at <= 24, "{at}");
    limited.play.passes(99 - at);
    assert_eq!(limited.play.runs(0), None);
    limited.play.passes(2);
    assert!(limited.play.runs(0).is_some());
    limited.play.check();
}

/// How long a task runs until it is out of quota, in ms, where its cgroup may keep `burst` us and
/// used nothing for a second.
fn ran_after_a_rest(burst: u64) -> u64 {
    let mut limited = limited(1);
    limited.allow(PERIOD, QUOTA, burst);
    limited.waits_until(1_000);
    limited.play.settle();
    assert_eq!(limited.play.runs(0), Some(0));
    while limited.play.runs(0).is_some() {
        limited.play.passes(4);
        assert!(limited.play.now < 1_100, "its quota does not end");
    }
    limited.play.now - 1_000
}

#[test]
fn a_cgroup_keeps_of_earlier_quotas_what_its_burst_allows() {
    if is_missing() {
        return;
    }
    assert_eq!(ran_after_a_rest(0), 12);
    assert_eq!(ran_after_a_rest(20_000), 32);
}

#[test]
fn a_task_inside_the_kernel_is_not_stopped() {
    if is_missing() {
        return;
    }
    let mut limited = limited(1);
    limited.play.settle();
    for at in (4..80).step_by(4) {
        limited.waits_until(at);
        assert_eq!(limited.play.tick(0, Mode::System), Some(0), "at {at}");
    }
    assert_eq!(limited.play.tick(0, Mode::User), None);
}

/// Two tasks, one of which runs until both are out of quota, while the other sleeps. Returns which
/// task runs when that has been woken.
fn woken_out_of_quota(sleep: Event) -> Option<u32> {
    let mut limited = limited(2);
    limited.play.settle();
    let sleeper = limited.play.runs(0).expect("two are runnable");
    limited.play.later(1);
    limited.play.all_of(0, sleep);
    limited.until_throttled();
    limited.play.woken(sleeper, 0);
    limited.play.runs(0)
}

#[test]
fn a_task_that_wakes_from_an_interruptible_sleep_waits_and_one_that_may_hold_locks_does_not() {
    if is_missing() {
        return;
    }
    assert_eq!(woken_out_of_quota(Event::Sleep), None);
    assert!(woken_out_of_quota(Event::Block).is_some());
}

#[test]
fn a_task_that_has_waited_runs_for_a_slice_even_if_a_tick_comes_at_once() {
    if is_missing() {
        return;
    }
    let mut limited = limited(2);
    // No period begins, but they have waited enough.
    limited.allow(100 * PERIOD, QUOTA, 0);
    let began = limited.until_throttled();
    let play = &mut limited.play;
    while play.runs(0).is_none() {
        play.passes(1);
        assert!(play.now < began + 3_100, "they wait for ever");
    }
    assert!(play.now > began + 2_900, "{}", play.now);
    let first = play.runs(0);
    play.kernel.pass(Duration::from_us(10));
    assert_eq!(play.tick(0, Mode::User), first);
    play.later(4);
    assert_ne!(play.tick(0, Mode::User), first);
}

#[test]
fn no_task_waits_for_ever_whatever_its_cgroup_has_had() {
    if is_missing() {
        return;
    }
    let mut limited = limited(1);
    limited.play.settle();
    // Debts of 400 periods, from inside the kernel.
    limited.waits_until(4_000);
    assert_eq!(limited.play.tick(0, Mode::System), Some(0));
    limited.waits_until(4_004);
    assert_eq!(limited.play.tick(0, Mode::User), None);
    while limited.play.runs(0).is_none() {
        limited.play.passes(1);
        assert!(
            limited.play.now < 9_000,
            "it waits for more than five seconds"
        );
    }
}

#[test]
fn a_task_that_is_bound_to_another_cpu_meanwhile_runs_there() {
    if is_missing() {
        return;
    }
    let mut limited = limited(1);
    limited.until_throttled();
    let elsewhere = affinity(limited.play.id(0), 2);
    limited.play.all_of(0, elsewhere);
    assert_eq!(limited.play.cpu_of(0), None);
    limited.play.passes(101 - limited.play.now);
    assert_eq!(limited.play.runs(1), Some(0));
    limited.play.check();
}

#[test]
fn a_cgroup_that_is_removed_keeps_no_task() {
    if is_missing() {
        return;
    }
    let mut limited = limited(1);
    limited.until_throttled();
    limited.play.remove(limited.inner);
    // It comes out of the queue of a cgroup that is gone, though the one around is out of quota.
    while limited.play.kicked().is_empty() {
        limited.play.later(1);
        limited.play.timers();
        assert!(limited.play.now < 50, "nobody releases it");
    }
    limited.play.happens(0, Event::Pick);
    assert_eq!(limited.play.runs(0), Some(0));
}

/// Two tasks are out of quota, and a period begins: two timers have expired, each of which may
/// release them.
fn about_to_be_released() -> (Play, [u64; 2]) {
    let mut limited = limited(2);
    let at = limited.until_throttled();
    limited.play.passes(99 - at);
    limited.play.later(1);
    let timers: Vec<u64> = limited
        .play
        .expired()
        .iter()
        .map(|(_, timer)| *timer)
        .collect();
    (limited.play, timers.try_into().expect("two timers"))
}

/// Both tasks run, one after the other. Where one timer was on its way, the next one releases them.
fn both_run(play: &mut Play) {
    play.check();
    play.settle();
    if play.runs(0).is_none() {
        play.passes(10);
    }
    let first = play.runs(0).expect("two are runnable");
    play.later(1);
    assert_eq!(play.sleeps(0), Some(1 - first));
    play.check();
}

#[test]
fn a_task_that_is_queued_again_while_it_is_released_is_counted() {
    if is_missing() {
        return;
    }
    for (which, released_first) in [(0, true), (1, true), (0, false), (1, false)] {
        at_each_place(|place| {
            let (mut play, timers) = about_to_be_released();
            let [releases, also] = [timers[which], timers[1 - which]].map(Event::Timer);
            let changes = Event::Nice(play.id(0), 1);
            let (first, second) = match released_first {
                true => (releases, changes),
                false => (changes, releases),
            };
            let held = play.held((0, first), place, |play| play.happens(1, second));
            if held {
                play.happens(1, also);
                both_run(&mut play);
            }
            held
        });
    }
}

#[test]
fn tasks_that_two_timers_release_at_the_same_time_are_counted() {
    if is_missing() {
        return;
    }
    for which in 0..2 {
        at_each_place(|place| {
            let (mut play, timers) = about_to_be_released();
            let [one, other] = [timers[which], timers[1 - which]].map(Event::Timer);
            let held = play.held((0, one), place, |play| play.happens(1, other));
            if held {
                both_run(&mut play);
            }
            held
        });
    }
}

/// A timer that expires every 10 ms, 1 ms after the quota was set for the first time, begins
/// periods.
#[test]
fn a_task_that_is_throttled_while_the_last_quota_is_lifted_is_not_forgotten() {
    if is_missing() {
        return;
    }
    at_each_place(|place| {
        let mut limited = limited(1);
        limited.play.settle();
        limited.waits_until(20);
        limited.play.happens(0, Event::Tick(Mode::User));
        limited.play.later(1);
        let timers = limited.play.expired();
        let [(_, timer)] = timers[..] else {
            panic!("one timer: {timers:?}");
        };
        let outer = limited.outer;
        let held = limited.play.held((0, Event::Pick), place, |play| {
            play.happens(1, Event::Limit(outer, [PERIOD, u64::MAX, 0]));
            play.happens(1, Event::Timer(timer));
        });
        if held {
            limited.play.passes(10);
            assert_eq!(limited.play.runs(0), Some(0), "place {place}");
        }
        held
    });
}
