//! Where real-time and deadline tasks go of which one CPU has too many (`kernel/sched/rt.c`,
//! `deadline.c`, `cpupri.c`, `cpudeadline.c`).
//!
//! Each CPU runs the best of its own, and the machine is to run the best of all. So one that must
//! wait is pushed to a CPU that has something lesser, and a CPU whose task leaves pulls the best
//! that waits elsewhere.
//!
//! Different from the kernel: it happens at once, under the lock of one run queue; a CPU pulls no
//! more than one task; a deadline task finds the latest deadline of the CPUs that it may use, not
//! of all.

use std::cmp::Reverse;

use warmq_units::CpuId;

use crate::Rank;

/// Whether a task that wakes or waits looks for another CPU: who runs there is of its class, and
/// is as good or may run nowhere else (`select_task_rq_rt()`, `task_woken_rt()`,
/// `select_task_rq_dl()`, `task_woken_dl()`). A real-time task starts behind a deadline task, and
/// is pushed from there.
pub fn looks_elsewhere(rank: Rank, runs: Rank, is_bound: bool) -> bool {
    runs.is_of_class_of(rank) && (is_bound || runs <= rank)
}

/// Whether a CPU picks a task that waits there next, in place of pushing it elsewhere: who runs
/// there is worth less, and where a deadline task waits, is one itself (`push_rt_task()`,
/// `push_dl_task()`).
pub fn is_picked_next(rank: Rank, runs: Rank) -> bool {
    rank < runs && (matches!(rank, Rank::RealTime(_)) || runs.is_of_class_of(rank))
}

/// Whether a CPU pulls whose task of this rank has left, or is worth less than before
/// (`need_pull_rt_task()`, `need_pull_dl_task()`).
pub fn pulls(before: Rank, best: Rank) -> bool {
    before.is_urgent() && best > before
}

/// Of CPUs that a task may use, each with the best rank there, the one where that is the lowest, if
/// it is lower than the task's (`find_lowest_rq()`, `find_later_rq()`). Of equals it is the task's
/// `last` one, or the nearest to that, or of these the one `here` that asks.
pub fn lowest(
    rank: Rank,
    cpus: impl Iterator<Item = (CpuId, Rank)>,
    (last, here): (CpuId, CpuId),
    distance: impl Fn(CpuId) -> usize,
) -> Option<CpuId> {
    let seen = cpus.map(|(cpu, best)| (cpu, best.seen_from(rank)));
    let lower = seen.filter(|(_, best)| *best > rank);
    let order = |cpu: CpuId| (cpu != last, distance(cpu), cpu != here, cpu);
    let found = lower.min_by_key(|(cpu, best)| (Reverse(*best), order(*cpu)));
    found.map(|(cpu, _)| cpu)
}

/// A real-time or deadline task that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter<T> {
    /// The task.
    pub task: T,
    /// Its rank.
    pub rank: Rank,
    /// The rank of who runs on its CPU: if that is lesser, it is about to run there.
    pub runs: Rank,
}

/// The best of those that wait on other CPUs, if it is better than what the CPU has that pulls
/// (`pull_rt_task()`, `pull_dl_task()`).
pub fn to_pull<T>(best: Rank, waiters: impl Iterator<Item = Waiter<T>>) -> Option<T> {
    let better = waiters.filter(|waiter| waiter.rank < best && waiter.rank >= waiter.runs);
    let found = better.min_by_key(|waiter| waiter.rank);
    found.map(|waiter| waiter.task)
}

#[cfg(test)]
mod tests {
    use super::Rank::{Deadline, Other, RealTime};
    use super::*;

    #[test]
    fn who_looks_elsewhere() {
        // own rank, who runs there, may it run nowhere else
        let table = [
            ((RealTime(50), Other, true), false),
            ((RealTime(50), RealTime(40), false), true),
            ((RealTime(50), RealTime(50), false), true),
            ((RealTime(50), RealTime(60), false), false),
            ((RealTime(50), RealTime(60), true), true),
            ((RealTime(50), Deadline(9), true), false),
            ((Deadline(9), RealTime(0), true), false),
            ((Deadline(9), Deadline(8), false), true),
            ((Deadline(9), Deadline(10), false), false),
            ((Deadline(9), Deadline(10), true), true),
        ];
        for ((rank, runs, is_bound), expected) in table {
            let found = looks_elsewhere(rank, runs, is_bound);
            assert_eq!(found, expected, "{rank:?} {runs:?} {is_bound}");
        }
    }

    #[test]
    fn who_is_picked_next_in_place_of_being_pushed() {
        let table = [
            ((RealTime(50), Other), true),
            ((RealTime(50), RealTime(60)), true),
            ((RealTime(50), RealTime(50)), false),
            ((RealTime(50), Deadline(9)), false),
            ((Deadline(9), Deadline(10)), true),
            ((Deadline(9), Deadline(8)), false),
            ((Deadline(9), RealTime(0)), false),
            ((Deadline(9), Other), false),
        ];
        for ((rank, runs), expected) in table {
            assert_eq!(is_picked_next(rank, runs), expected, "{rank:?} {runs:?}");
        }
    }

    #[test]
    fn who_pulls() {
        // before, the best now
        let table = [
            ((RealTime(50), Other), true),
            ((RealTime(50), RealTime(60)), true),
            ((RealTime(50), RealTime(50)), false),
            ((RealTime(50), RealTime(40)), false),
            ((Other, Other), false),
            ((Deadline(5), RealTime(0)), true),
            ((Deadline(5), Deadline(4)), false),
        ];
        for ((before, best), expected) in table {
            assert_eq!(pulls(before, best), expected, "{before:?} {best:?}");
        }
    }

    #[test]
    fn the_lowest_cpu_is_the_own_or_near() {
        let real = RealTime;
        // The task, the best ranks of four CPUs, two under a cache; the task was on CPU 1, and the
        // CPU that asks.
        let table = [
            (real(50), [Other, Other, Other, Other], 3, Some(1)),
            (real(50), [Other, real(10), Other, Other], 3, Some(0)),
            (real(50), [real(10), real(10), Other, Other], 3, Some(3)),
            (real(50), [real(10), real(10), Other, Other], 0, Some(2)),
            (
                real(50),
                [real(10), real(10), real(60), real(70)],
                0,
                Some(3),
            ),
            (real(50), [real(10), real(10), real(50), real(40)], 0, None),
            (
                real(50),
                [Deadline(9), real(60), Other, Deadline(9)],
                0,
                Some(2),
            ),
            // To a deadline task all CPUs without one are alike.
            (
                Deadline(5),
                [real(10), Deadline(9), Other, Other],
                3,
                Some(0),
            ),
            (
                Deadline(5),
                [Deadline(7), Deadline(6), Deadline(8), Deadline(4)],
                3,
                Some(2),
            ),
            (
                Deadline(9),
                [Deadline(7), Deadline(6), Deadline(8), Deadline(4)],
                3,
                None,
            ),
        ];
        for (rank, best, here, expected) in table {
            let cpus = (0..).map(CpuId).zip(best);
            let distance = |cpu: CpuId| usize::from(cpu.0 / 2 != 0);
            let found = lowest(rank, cpus, (CpuId(1), CpuId(here)), distance);
            assert_eq!(found, expected.map(CpuId), "{rank:?} {best:?} {here}");
        }
    }

    #[test]
    fn the_best_that_waits_is_pulled() {
        let waiter = |task, rank, runs| Waiter { task, rank, runs };
        let waiters = [
            waiter('a', RealTime(50), RealTime(40)),
            waiter('b', RealTime(45), RealTime(45)),
            waiter('c', RealTime(30), RealTime(60)),
            waiter('d', RealTime(45), RealTime(20)),
        ];
        let table = [
            (Other, Some('b')),
            (RealTime(46), Some('b')),
            (RealTime(45), None),
            (Deadline(1), None),
        ];
        for (best, expected) in table {
            assert_eq!(to_pull(best, waiters.into_iter()), expected, "{best:?}");
        }
    }
}
