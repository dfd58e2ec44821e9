//! Where real-time tasks go of which one CPU has too many (`kernel/sched/rt.c`, `cpupri.c`).
//!
//! Each CPU runs the best of its own, and the machine is to run the best of all. So one that must
//! wait is pushed to a CPU that has something lesser, and a CPU whose real-time task leaves pulls
//! the best that waits elsewhere.
//!
//! Different from the kernel: it happens at once, under the lock of one run queue; a CPU pulls no
//! more than one task.

use warmq_units::CpuId;

/// The priority of what is no real-time task (`MAX_RT_PRIO`). Less is better.
pub const NO_PRIORITY: i32 = 100;

/// Whether a real-time task that wakes or waits looks for another CPU: who runs there is a
/// real-time one, too, and is as good or may run nowhere else (`select_task_rq_rt()`,
/// `task_woken_rt()`).
pub fn looks_elsewhere(priority: i32, runs: i32, is_bound: bool) -> bool {
    runs < NO_PRIORITY && (is_bound || runs <= priority)
}

/// Whether a CPU pulls whose task of this priority has left, or is worth less than before
/// (`need_pull_rt_task()`).
pub fn pulls(before: i32, best: i32) -> bool {
    before < NO_PRIORITY && best > before
}

/// Of CPUs that a task may use, each with the best priority there, the one where that is the
/// lowest, if it is lower than the task's (`find_lowest_rq()`). Of equals it is the task's `last`
/// one, or the nearest to that, or of these the one `here` that asks.
pub fn lowest(
    priority: i32,
    cpus: impl Iterator<Item = (CpuId, i32)>,
    (last, here): (CpuId, CpuId),
    distance: impl Fn(CpuId) -> usize,
) -> Option<CpuId> {
    let lower = cpus.filter(|(_, best)| *best > priority);
    let order = |cpu: CpuId| (cpu != last, distance(cpu), cpu != here, cpu);
    let found = lower.min_by_key(|(cpu, best)| (-best, order(*cpu)));
    found.map(|(cpu, _)| cpu)
}

/// A real-time task that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter<T> {
    /// The task.
    pub task: T,
    /// Its priority.
    pub priority: i32,
    /// The priority of who runs on its CPU: if that is lesser, it is about to run there.
    pub runs: i32,
}

/// The best of those that wait on other CPUs, if it is better than what the CPU has that pulls
/// (`pull_rt_task()`).
pub fn to_pull<T>(best: i32, waiters: impl Iterator<Item = Waiter<T>>) -> Option<T> {
    let better = waiters.filter(|waiter| waiter.priority < best && waiter.priority >= waiter.runs);
    let found = better.min_by_key(|waiter| waiter.priority);
    found.map(|waiter| waiter.task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_elsewhere() {
        // own priority, who runs there, may it run nowhere else
        let table = [
            ((50, NO_PRIORITY, true), false),
            ((50, 40, false), true),
            ((50, 50, false), true),
            ((50, 60, false), false),
            ((50, 60, true), true),
        ];
        for ((priority, runs, is_bound), expected) in table {
            let found = looks_elsewhere(priority, runs, is_bound);
            assert_eq!(found, expected, "{priority} {runs} {is_bound}");
        }
    }

    #[test]
    fn who_pulls() {
        // before, the best now
        let table = [
            ((50, NO_PRIORITY), true),
            ((50, 60), true),
            ((50, 50), false),
            ((50, 40), false),
            ((NO_PRIORITY, NO_PRIORITY), false),
        ];
        for ((before, best), expected) in table {
            assert_eq!(pulls(before, best), expected, "{before} {best}");
        }
    }

    #[test]
    fn the_lowest_cpu_is_the_own_or_near() {
        // The best priorities of four CPUs, two under a cache; the task was on CPU 1, and the CPU
        // that asks.
        let table = [
            ([100, 100, 100, 100], 3, Some(1)),
            ([100, 10, 100, 100], 3, Some(0)),
            ([10, 10, 100, 100], 3, Some(3)),
            ([10, 10, 100, 100], 0, Some(2)),
            ([10, 10, 60, 70], 0, Some(3)),
            ([10, 10, 50, 40], 0, None),
        ];
        for (best, here, expected) in table {
            let cpus = (0..).map(CpuId).zip(best);
            let distance = |cpu: CpuId| usize::from(cpu.0 / 2 != 0);
            let found = lowest(50, cpus, (CpuId(1), CpuId(here)), distance);
            assert_eq!(found, expected.map(CpuId), "{best:?} {here}");
        }
    }

    #[test]
    fn the_best_that_waits_is_pulled() {
        let waiter = |task, priority, runs| Waiter {
            task,
            priority,
            runs,
        };
        let waiters = [
            waiter('a', 50, 40),
            waiter('b', 45, 45),
            waiter('c', 30, 60),
            waiter('d', 45, 20),
        ];
        let table = [(NO_PRIORITY, Some('b')), (46, Some('b')), (45, None)];
        for (best, expected) in table {
            assert_eq!(to_pull(best, waiters.into_iter()), expected, "{best}");
        }
    }
}
