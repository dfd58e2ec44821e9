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

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::{Rank, Urgent};

/// A scheduler whose CPUs have tasks of these classes.
pub trait Overload {
    /// Who runs on a CPU, of any class.
    fn runs(&self, cpu: CpuId) -> Option<TaskId>;

    /// What a task is compared by.
    fn rank(&self, task: TaskId) -> Rank;

    /// The tasks of these classes on a CPU.
    fn urgent(&self, cpu: CpuId) -> &Urgent;

    /// How far a CPU is from another one.
    fn distance(&self, from: CpuId, to: CpuId) -> usize;

    /// Moves one that waits to the queue of a CPU.
    fn put_urgent(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId);

    /// A CPU is to pick again.
    fn reschedule(&mut self, context: &mut Context<'_>, cpu: CpuId);

    /// The rank of who runs on a CPU.
    fn rank_on(&self, cpu: CpuId) -> Rank {
        self.runs(cpu).map_or(Rank::Other, |task| self.rank(task))
    }

    /// The CPU for one that wakes: the `last` one where it was, unless one runs there that is as
    /// good; then that with the least (`select_task_rq_rt()`, `select_task_rq_dl()`).
    fn select_urgent(&self, context: &Context<'_>, task: TaskId, last: CpuId) -> CpuId {
        let found = match self.is_taken(context, last, self.rank(task)) {
            true => self.lowest(context, task, last),
            false => None,
        };
        found.unwrap_or(last)
    }

    /// Whether who runs on a CPU keeps one of a rank from running.
    fn is_taken(&self, context: &Context<'_>, cpu: CpuId, rank: Rank) -> bool {
        self.runs(cpu).is_some_and(|current| {
            let allowed = context.task(current).allowed();
            let is_bound = allowed.is_some_and(|cpus| cpus.len() == 1);
            looks_elsewhere(rank, self.rank_on(cpu), is_bound)
        })
    }

    /// The CPU for a task that cannot run on `last`, if there is one.
    fn lowest(&self, context: &Context<'_>, task: TaskId, last: CpuId) -> Option<CpuId> {
        let view = context.task(task);
        let cpus = (0..context.cpus()).map(CpuId);
        let usable = cpus.filter(|cpu| view.may_run_on(*cpu) && context.is_online(*cpu));
        let best = usable.map(|cpu| (cpu, self.urgent(cpu).best()));
        let distance = |cpu| self.distance(last, cpu);
        lowest(self.rank(task), best, (last, context.cpu()), distance)
    }

    /// Those that wait on a CPU, the best first, but for those that another CPU still switches away
    /// from.
    fn urgent_waiters(&self, context: &Context<'_>, cpu: CpuId) -> Vec<TaskId> {
        let waits =
            |task: &TaskId| self.runs(cpu) != Some(*task) && context.task(*task).on_cpu().is_none();
        self.urgent(cpu).iter().filter(waits).collect()
    }

    /// Those that wait on a CPU go to CPUs that have something lesser (`push_rt_tasks()`,
    /// `push_dl_tasks()`).
    fn push_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        for task in self.urgent_waiters(context, cpu) {
            if is_picked_next(self.rank(task), self.rank_on(cpu)) {
                return self.reschedule(context, cpu);
            }
            if let Some(to) = self.lowest(context, task, cpu).filter(|to| *to != cpu) {
                self.put_urgent(context, task, to);
            }
        }
    }

    /// One was queued on a CPU: it goes elsewhere if it cannot run there (`task_woken_rt()`,
    /// `task_woken_dl()`).
    fn push_woken(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        if self.is_taken(context, cpu, self.rank(task)) {
            self.push_urgent(context, cpu);
        }
    }

    /// What a CPU ran had the rank `before` it left, or changed: the best that waits elsewhere
    /// comes, if it is better than what is here (`pull_rt_task()`, `pull_dl_task()`).
    fn pull_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId, before: Rank) {
        let best = self.urgent(cpu).best();
        if pulls(before, best)
            && context.is_online(cpu)
            && let Some(task) = self.best_elsewhere(context, cpu, best)
        {
            self.put_urgent(context, task, cpu);
        }
    }

    /// The best that waits elsewhere for a CPU whose best has a rank.
    fn best_elsewhere(&self, context: &Context<'_>, cpu: CpuId, best: Rank) -> Option<TaskId> {
        let others = (0..context.cpus()).map(CpuId).filter(|other| *other != cpu);
        let waiters = others.flat_map(|from| {
            let waiters = self.urgent_waiters(context, from).into_iter();
            let usable = waiters.filter(|task| context.task(*task).may_run_on(cpu));
            usable.map(move |task| Waiter {
                task,
                rank: self.rank(task),
                runs: self.rank_on(from),
            })
        });
        to_pull(best, waiters)
    }
}

/// Whether a task that wakes or waits looks for another CPU: who runs there is of its class, and
/// is as good or may run nowhere else (`select_task_rq_rt()`, `task_woken_rt()`,
/// `select_task_rq_dl()`, `task_woken_dl()`). A real-time task starts behind a deadline task, and
/// is pushed from there.
fn looks_elsewhere(rank: Rank, runs: Rank, is_bound: bool) -> bool {
    runs.is_of_class_of(rank) && (is_bound || runs <= rank)
}

/// Whether a CPU picks a task that waits there next, in place of pushing it elsewhere: who runs
/// there is worth less, and where a deadline task waits, is one itself (`push_rt_task()`,
/// `push_dl_task()`).
fn is_picked_next(rank: Rank, runs: Rank) -> bool {
    rank < runs && (matches!(rank, Rank::RealTime(_)) || runs.is_of_class_of(rank))
}

/// Whether a CPU pulls whose task of this rank has left, or is worth less than before
/// (`need_pull_rt_task()`, `need_pull_dl_task()`).
fn pulls(before: Rank, best: Rank) -> bool {
    before.is_urgent() && best > before
}

/// Of CPUs that a task may use, each with the best rank there, the one where that is the lowest, if
/// it is lower than the task's (`find_lowest_rq()`, `find_later_rq()`). Of equals it is the task's
/// `last` one, or the nearest to that, or of these the one `here` that asks.
fn lowest(
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
#[derive(Clone, Copy)]
struct Waiter<T> {
    task: T,
    rank: Rank,
    /// The rank of who runs on its CPU: if that is lesser, it is about to run there.
    runs: Rank,
}

/// The best of those that wait on other CPUs, if it is better than what the CPU has that pulls
/// (`pull_rt_task()`, `pull_dl_task()`).
fn to_pull<T>(best: Rank, waiters: impl Iterator<Item = Waiter<T>>) -> Option<T> {
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
