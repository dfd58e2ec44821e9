//! Tasks that run before those of the scheduler: deadline tasks, and after them real-time ones
//! (`kernel/sched/deadline.c`, `rt.c`). How much of the CPU they leave to others:
//! [`Server`](crate::Server) and [`Throttle`](crate::Throttle).

use warmq_units::TaskId;

use crate::Rank;

/// A slice of SCHED_RR, in ns (`DEF_TIMESLICE`).
const SLICE: u64 = 100_000_000;

/// The tasks of one CPU that are more than fair ones, the running one among them: the best first,
/// equals in the order in which they came.
#[derive(Default)]
pub struct Urgent(Vec<(Rank, TaskId)>);

impl Urgent {
    /// A slice of SCHED_RR in ticks of `tick` ns.
    pub fn slice(tick: u64) -> u64 {
        (SLICE / tick.max(1)).max(1)
    }

    /// Queues `task` behind all of its rank (`enqueue_task_rt()`, `__enqueue_dl_entity()`).
    pub fn add(&mut self, rank: Rank, task: TaskId) {
        let at = self.0.partition_point(|(there, _)| *there <= rank);
        self.0.insert(at, (rank, task));
    }

    /// Takes `task` out (`dequeue_task_rt()`, `dequeue_dl_entity()`).
    pub fn remove(&mut self, task: TaskId) {
        self.0.retain(|(_, other)| *other != task);
    }

    /// Puts `task` behind all of its rank (`requeue_task_rt()`).
    pub fn requeue(&mut self, task: TaskId) {
        let found = self.0.iter().find(|(_, other)| *other == task).copied();
        if let Some((rank, task)) = found {
            self.remove(task);
            self.add(rank, task);
        }
    }

    /// Whether another task of the rank of `task` is here.
    pub fn has_equal(&self, task: TaskId) -> bool {
        let rank = self.0.iter().find(|(_, other)| *other == task);
        let rank = rank.map(|(rank, _)| *rank);
        self.0
            .iter()
            .any(|(there, other)| Some(*there) == rank && *other != task)
    }

    /// The best rank.
    pub fn best(&self) -> Rank {
        self.0.first().map_or(Rank::Other, |(rank, _)| *rank)
    }

    /// How many of them are real-time tasks (`rt_nr_running`).
    pub fn real_time(&self) -> usize {
        let real_time = |(rank, _): &&(Rank, TaskId)| matches!(rank, Rank::RealTime(_));
        self.0.iter().filter(real_time).count()
    }

    /// The best first.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().map(|(_, task)| *task)
    }

    /// The best rank first, and of each the one that came last (`load_balance_start_rt()`).
    pub fn to_balance(&self) -> Vec<TaskId> {
        let mut tasks: Vec<(Rank, TaskId)> = self.0.iter().rev().copied().collect();
        tasks.sort_by_key(|(rank, _)| *rank);
        tasks.into_iter().map(|(_, task)| task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(queue: impl IntoIterator<Item = TaskId>) -> Vec<u32> {
        queue.into_iter().map(|task| task.0).collect()
    }

    #[test]
    fn the_best_runs_first_and_equals_take_turns() {
        let mut queue = Urgent::default();
        for (task, priority) in [(1, 50), (2, 40), (3, 50), (4, 40)] {
            queue.add(Rank::RealTime(priority), TaskId(task));
        }
        assert_eq!(tasks(queue.iter()), [2, 4, 1, 3]);
        assert_eq!(tasks(queue.to_balance()), [4, 2, 3, 1]);
        queue.requeue(TaskId(2));
        assert_eq!(tasks(queue.iter()), [4, 2, 1, 3]);
        assert!(queue.has_equal(TaskId(1)));
        queue.remove(TaskId(3));
        assert!(!queue.has_equal(TaskId(1)));
        queue.add(Rank::Deadline(7), TaskId(5));
        queue.add(Rank::Deadline(6), TaskId(6));
        assert_eq!(tasks(queue.iter()), [6, 5, 4, 2, 1]);
        assert_eq!(queue.best(), Rank::Deadline(6));
    }
}
