//! The arithmetic of priorities and slices in `kernel/sched.c` of Linux 2.6.16, and where it
//! differs of 2.6.4.
//!
//! Times are in nanoseconds, or in jiffies where a name or a comment says so. Divisions truncate,
//! as C's do. Marks [S] and [T] are those of the specification: kernel source and thesis.

use warmq_units::Duration;

use super::release::Release;

/// `MAX_PRIO`: priorities 0 to 99 are real-time, 100 to 139 are those of nice -20 to 19. The idle
/// task has this one.
pub(super) const PRIORITIES: usize = 140;
/// `MAX_RT_PRIO`: the best priority of a task that is not real-time.
const BEST: i64 = 100;
/// `DEF_TIMESLICE`, in ms.
const DEFAULT_SLICE_MS: u64 = 100;
/// `MIN_TIMESLICE`, in ms.
const MIN_SLICE_MS: u64 = 5;
/// `MIN_TIMESLICE` and `MAX_TIMESLICE` of 2.6.4, in ms.
const SLICES_2_6_4_MS: (u64, u64) = (10, 200);
/// `GRANULARITY`, in ms.
const GRANULARITY_MS: u64 = 10;
/// `MAX_BONUS`.
pub(super) const MAX_BONUS: u64 = 10;
/// `INTERACTIVE_DELTA`.
const INTERACTIVE_DELTA: i64 = 2;
/// `CHILD_PENALTY`, in percent; `PARENT_PENALTY` is 100.
const CHILD_PENALTY: u64 = 95;
/// `EXIT_WEIGHT`: how many parts of a parent's `sleep_avg` stay when a child exits; the child's is
/// one part.
const EXIT_WEIGHT: u64 = 3;
/// Nanoseconds in a millisecond.
pub(super) const MS: u64 = 1_000_000;

/// Whom a rule follows where the kernel's source and the thesis disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Linux 2.6.16.
    Source,
    /// What the thesis prints.
    Thesis,
}

/// The rules for one length of the jiffy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whose kernel's they are.
    pub(super) release: Release,
    /// A jiffy, in ns.
    pub(super) jiffy: u64,
    /// Whose DELTA decides who is interactive.
    pub(super) interactive_delta: Follows,
}

/// What decides whether expired tasks starve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expired {
    /// For how many jiffies the starvation clock has run, if it runs.
    pub(super) waited: Option<u64>,
    /// Runnable tasks of the queue, the running one among them.
    pub(super) runnable: u64,
    /// The static priority of the running task.
    pub(super) running: usize,
    /// The best static priority in the expired array.
    pub(super) best: usize,
}

/// The static priority of `nice` (`NICE_TO_PRIO`).
pub(super) fn static_priority(nice: i8) -> usize {
    (BEST + 20 + i64::from(nice)) as usize
}

impl Rules {
    /// The rules of `release` where a tick takes `tick`.
    pub(super) fn new(release: Release, tick: Duration) -> Rules {
        Rules {
            release,
            jiffy: tick.as_ns().max(1),
            interactive_delta: Follows::Source,
        }
    }

    /// Milliseconds as jiffies, rounded down.
    fn jiffies_of(&self, ms: u64) -> u64 {
        ms * MS / self.jiffy
    }

    /// Milliseconds as jiffies, rounded up, at least one (`msecs_to_jiffies()` in
    /// `rebalance_tick()`).
    pub(super) fn interval(&self, ms: u64) -> u64 {
        (ms * MS).div_ceil(self.jiffy).max(1)
    }

    /// Jiffies in a second.
    pub(super) fn hz(&self) -> u64 {
        self.jiffies_of(1_000)
    }

    /// `DEF_TIMESLICE`, in jiffies; 2.6.4 has `AVG_TIMESLICE`, the slice of nice 0.
    fn default_slice(&self) -> u64 {
        match self.release {
            Release::V2_6_4 => self.slice(0),
            Release::V2_6_16 => self.jiffies_of(DEFAULT_SLICE_MS).max(1),
        }
    }

    /// `MAX_SLEEP_AVG`, in jiffies.
    fn max_sleep_avg_jiffies(&self) -> u64 {
        self.default_slice() * MAX_BONUS
    }

    /// `NS_MAX_SLEEP_AVG`.
    pub(super) fn max_sleep_avg(&self) -> u64 {
        self.max_sleep_avg_jiffies() * self.jiffy
    }

    /// What `sleep_avg` is set to after a long sleep: the greatest less a default slice.
    pub(super) fn after_long_sleep(&self) -> u64 {
        (self.max_sleep_avg_jiffies() - self.default_slice()) * self.jiffy
    }

    /// The full slice of `nice`, in jiffies (`task_timeslice()`).
    pub(super) fn slice(&self, nice: i8) -> u64 {
        if self.release == Release::V2_6_4 {
            return self.slice_of_2_6_4(nice);
        }
        let scale = match nice {
            ..0 => 4 * self.default_slice(),
            0.. => self.default_slice(),
        };
        let levels = (PRIORITIES - static_priority(nice)) as u64;
        let min = self.jiffies_of(MIN_SLICE_MS).max(1);
        (scale * levels / 20).max(min)
    }

    /// The same of 2.6.4, where slices are even steps from the shortest to the longest
    /// (`BASE_TIMESLICE`).
    fn slice_of_2_6_4(&self, nice: i8) -> u64 {
        let (least, most) = SLICES_2_6_4_MS;
        let [least, most] = [least, most].map(|ms| self.jiffies_of(ms).max(1));
        let best = PRIORITIES as u64 - 1 - BEST as u64;
        let levels = (PRIORITIES - 1 - static_priority(nice)) as u64;
        least + (most - least) * levels / best
    }

    /// The bonus of a `sleep_avg`, from 0 to 10 (`CURRENT_BONUS`).
    pub(super) fn bonus(&self, sleep_avg: u64) -> u64 {
        sleep_avg / self.jiffy * MAX_BONUS / self.max_sleep_avg_jiffies()
    }

    /// By how much a sleep counts at `bonus`: the less, the more was slept before.
    pub(super) fn weight(&self, sleep_avg: u64) -> u64 {
        MAX_BONUS.saturating_sub(self.bonus(sleep_avg)).max(1)
    }

    /// The effective priority of a task that is not real-time; less is better
    /// (`effective_prio()`).
    pub(super) fn priority(&self, nice: i8, sleep_avg: u64) -> usize {
        let bonus = self.bonus(sleep_avg) as i64 - MAX_BONUS as i64 / 2;
        let priority = static_priority(nice) as i64 - bonus;
        priority.clamp(BEST, PRIORITIES as i64 - 1) as usize
    }

    /// DELTA of the kernel: nice / 4 + 2.
    fn delta(nice: i8) -> i64 {
        i64::from(nice) / 4 + INTERACTIVE_DELTA
    }

    /// Whether a task of `nice` is interactive at `priority` (`TASK_INTERACTIVE`).
    pub(super) fn is_interactive(&self, nice: i8, priority: usize) -> bool {
        let fixed = static_priority(nice) as i64;
        let delta = match self.interactive_delta {
            Follows::Source => Rules::delta(nice),
            Follows::Thesis => fixed / 4 - 28,
        };
        priority as i64 <= fixed - delta
    }

    /// The limit L: a longer sleep is that of an idle task (`INTERACTIVE_SLEEP`). It is always the
    /// kernel's, since the thesis gives no other.
    pub(super) fn long_sleep(&self, nice: i8) -> u64 {
        let tenths = (MAX_BONUS as i64 / 2 + Rules::delta(nice) + 1).max(0) as u64;
        let jiffies = self.max_sleep_avg_jiffies() * tenths / MAX_BONUS;
        jiffies.saturating_sub(1) * self.jiffy
    }

    /// What is left of `sleep_avg` after the task ran for `ran`: a task of much bonus loses it more
    /// slowly (`schedule()`).
    pub(super) fn debited(&self, sleep_avg: u64, ran: u64) -> u64 {
        let ran = ran.min(self.max_sleep_avg());
        sleep_avg.saturating_sub(ran / self.bonus(sleep_avg).max(1))
    }

    /// The part G of its slice, in jiffies, after which an interactive task goes behind its equals
    /// (`TIMESLICE_GRANULARITY`).
    pub(super) fn granularity(&self, sleep_avg: u64, online_cpus: u64) -> u64 {
        let least = self.jiffies_of(GRANULARITY_MS).max(1);
        least * (1 << (self.weight(sleep_avg) - 1)) * online_cpus
    }

    /// Whether a task that has used `full - left` jiffies of its slice goes behind its equals. The
    /// difference is of unsigned 32-bit numbers: a task whose nice value became worse may have more
    /// left than a full slice.
    pub(super) fn requeues(&self, full: u64, left: u64, granularity: u64) -> bool {
        let used = (full as u32).wrapping_sub(left as u32);
        left >= granularity && u64::from(used).is_multiple_of(granularity)
    }

    /// Whether tasks of the expired array starve (`EXPIRED_STARVING`): they have waited for too
    /// long, or one of them has a better static priority than the task that runs.
    pub(super) fn starves(&self, expired: &Expired) -> bool {
        let limit = self.max_sleep_avg_jiffies() * expired.runnable + 1;
        expired.waited.is_some_and(|waited| waited >= limit) || expired.running > expired.best
    }

    /// `sleep_avg` of a child after a fork, of a parent who has `sleep_avg`
    /// (`wake_up_new_task()`).
    pub(super) fn of_child(&self, sleep_avg: u64) -> u64 {
        self.of_level(self.bonus(sleep_avg) * CHILD_PENALTY / 100)
    }

    /// The same of the parent.
    pub(super) fn of_parent(&self, sleep_avg: u64) -> u64 {
        self.of_level(self.bonus(sleep_avg))
    }

    /// The least `sleep_avg` that has `bonus`.
    fn of_level(&self, bonus: u64) -> u64 {
        bonus * self.max_sleep_avg_jiffies() / MAX_BONUS * self.jiffy
    }

    /// The parent's `sleep_avg` after a child exited (`sched_exit()`).
    pub(super) fn after_exit(&self, parent: u64, child: u64) -> u64 {
        let part = EXIT_WEIGHT + 1;
        match child < parent {
            true => parent / part * EXIT_WEIGHT + child / part,
            false => parent,
        }
    }
}

/// The slices of a child and of its parent, who had `left` jiffies (`sched_fork()`). The parent's
/// may be 0: then it is used up.
pub(super) fn shared_slice(left: u64) -> (u64, u64) {
    (left.div_ceil(2), left / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::new(Release::V2_6_16, Duration::from_ms(4))
    }

    fn fine() -> Rules {
        Rules::new(Release::V2_6_16, Duration::from_ms(1))
    }

    fn older() -> Rules {
        Rules::new(Release::V2_6_4, Duration::from_ms(1))
    }

    /// Decision cases 1, 2 and 6 of the affinity paper's specification.
    #[test]
    fn the_arithmetic_of_2_6_4() {
        for (nice, ms) in [(-20, 200), (-10, 151), (0, 102), (10, 53), (19, 10)] {
            assert_eq!(older().slice(nice), ms, "1: nice {nice}");
        }
        let interactive = |ms: u64| older().is_interactive(0, older().priority(0, ms * MS));
        assert_eq!([713, 714].map(interactive), [false, true], "2");
        assert_eq!(older().long_sleep(0), 815 * MS, "2: L");
        let starves = |jiffies| {
            older().starves(&Expired {
                waited: Some(jiffies),
                runnable: 40,
                running: static_priority(0),
                best: PRIORITIES,
            })
        };
        assert_eq!([40_800, 40_801].map(starves), [false, true], "6");
    }

    /// Decision case 1 of the specification.
    #[test]
    fn slices_are_of_the_static_priority() {
        let table = [
            (-20, 800),
            (-10, 600),
            (-1, 420),
            (0, 100),
            (10, 48),
            (19, 4),
        ];
        for (nice, ms) in table {
            assert_eq!(rules().slice(nice) * 4, ms, "nice {nice}");
        }
        for (nice, ms) in [(10, 50), (19, 5)] {
            assert_eq!(fine().slice(nice), ms, "nice {nice} at HZ 1000");
        }
    }

    /// Decision case 2.
    #[test]
    fn priority_and_interactivity_follow_from_sleep_avg() {
        let table = [
            (699, 6, 119, false),
            (700, 7, 118, true),
            (1000, 10, 115, true),
        ];
        for (ms, bonus, priority, interactive) in table {
            assert_eq!(rules().bonus(ms * MS), bonus, "{ms} ms");
            assert_eq!(rules().priority(0, ms * MS), priority, "{ms} ms");
            assert_eq!(rules().is_interactive(0, priority), interactive, "{ms} ms");
        }
    }

    /// Decision case 3, and the other nice values that the specification lists.
    #[test]
    fn the_least_sleep_avg_that_makes_a_task_interactive() {
        let least = |rules: &Rules, nice| {
            (0..=1000).find(|ms| rules.is_interactive(nice, rules.priority(nice, ms * MS)))
        };
        let thesis = Rules {
            interactive_delta: Follows::Thesis,
            ..rules()
        };
        let table = [
            ("source", rules(), -20, Some(200)),
            ("source", rules(), -10, Some(500)),
            ("source", rules(), 0, Some(700)),
            ("source", rules(), 10, Some(900)),
            ("source", rules(), 12, Some(1000)),
            ("source", rules(), 15, Some(1000)),
            ("source", rules(), 16, None),
            ("source", rules(), 19, None),
            ("thesis", thesis, -10, Some(400)),
            ("thesis", thesis, 0, Some(700)),
        ];
        for (whose, rules, nice, ms) in table {
            assert_eq!(least(&rules, nice), ms, "{whose}, nice {nice}");
        }
        assert_eq!(rules().priority(16, 1000 * MS), 131);
        assert!(rules().is_interactive(16, 130));
    }

    /// The limit L of the specification.
    #[test]
    fn the_limit_of_a_long_sleep() {
        let limits = [
            rules().long_sleep(0),
            fine().long_sleep(0),
            rules().long_sleep(-20),
        ];
        assert_eq!(limits, [796 * MS, 799 * MS, 296 * MS]);
    }

    /// Decision case 9.
    #[test]
    fn running_costs_the_less_the_more_was_slept() {
        for (before_ms, left_us) in [(1000, 990_000), (700, 685_714), (60, 0)] {
            let left = rules().debited(before_ms * MS, 100 * MS);
            assert_eq!(left / 1_000, left_us, "{before_ms} ms");
        }
    }

    /// Decision case 12.
    #[test]
    fn granularity_grows_as_the_bonus_falls() {
        let table = [(1000, 8, 10), (900, 8, 10), (800, 16, 20), (700, 32, 40)];
        for (ms, coarse_ms, fine_ms) in table {
            assert_eq!(rules().granularity(ms * MS, 1) * 4, coarse_ms, "{ms} ms");
            assert_eq!(
                rules().granularity(ms * MS, 2) * 4,
                2 * coarse_ms,
                "{ms} ms"
            );
            assert_eq!(
                fine().granularity(ms * MS, 1),
                fine_ms,
                "{ms} ms at HZ 1000"
            );
        }
        let used = (1..25).filter(|used| rules().requeues(25, 25 - used, 2));
        let expected: Vec<u64> = (2..=22).step_by(2).collect();
        assert_eq!(used.collect::<Vec<_>>(), expected);
    }

    /// Decision case 13.
    #[test]
    fn expired_tasks_starve_after_a_second_for_each_runnable_one() {
        let table = [
            ("2 runnable", Some(500), 2, 0, PRIORITIES, false),
            ("2 runnable", Some(501), 2, 0, PRIORITIES, true),
            ("1 runnable", Some(250), 1, 0, PRIORITIES, false),
            ("1 runnable", Some(251), 1, 0, PRIORITIES, true),
            ("the clock stands", None, 1, 0, PRIORITIES, false),
            ("nice 5 runs, nice 0 expired", Some(0), 2, 5, 120, true),
            ("nice 5 runs, nice 5 expired", Some(0), 2, 5, 125, false),
            ("nice 0 runs, nice 5 expired", Some(0), 2, 0, 125, false),
        ];
        for (case, waited, runnable, nice, best, starves) in table {
            let expired = Expired {
                waited,
                runnable,
                running: static_priority(nice),
                best,
            };
            assert_eq!(rules().starves(&expired), starves, "{case}, {waited:?}");
        }
    }

    /// Decision case 15.
    #[test]
    fn a_fork_shares_the_slice_and_leaves_both_less_sleep_avg() {
        assert_eq!(shared_slice(25), (13, 12));
        let (child, parent) = (rules().of_child(950 * MS), rules().of_parent(950 * MS));
        assert_eq!((child, parent), (800 * MS, 900 * MS));
    }

    #[test]
    fn a_busy_child_that_exits_leaves_its_parent_less() {
        let table = [(1000, 600, 900), (600, 1000, 600), (500, 500, 500)];
        for (parent, child, after) in table {
            assert_eq!(rules().after_exit(parent * MS, child * MS), after * MS);
        }
    }
}
