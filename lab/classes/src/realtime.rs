//! Real-time tasks, which run before all others (`kernel/sched_rt.c`). Nobody throttles them here:
//! 2.6.24 does not, and later kernels leave the others 5 % of the CPU.

use warmq_units::TaskId;

use crate::NO_PRIORITY;

/// A slice of SCHED_RR, in ns (`DEF_TIMESLICE`).
const SLICE: u64 = 100_000_000;

/// The real-time tasks of one CPU, the running one among them: the best priority first, equals in
/// the order in which they came.
#[derive(Default)]
pub struct RealTime(Vec<(i32, TaskId)>);

impl RealTime {
    /// A slice in ticks of `tick` ns.
    pub fn slice(tick: u64) -> u64 {
        (SLICE / tick.max(1)).max(1)
    }

    /// Queues `task` behind all of its priority (`enqueue_task_rt()`).
    pub fn add(&mut self, priority: i32, task: TaskId) {
        let at = self.0.partition_point(|(there, _)| *there <= priority);
        self.0.insert(at, (priority, task));
    }

    /// Takes `task` out (`dequeue_task_rt()`).
    pub fn remove(&mut self, task: TaskId) {
        self.0.retain(|(_, other)| *other != task);
    }

    /// Puts `task` behind all of its priority (`requeue_task_rt()`).
    pub fn requeue(&mut self, task: TaskId) {
        let found = self.0.iter().find(|(_, other)| *other == task).copied();
        if let Some((priority, task)) = found {
            self.remove(task);
            self.add(priority, task);
        }
    }

    /// Whether another task of the priority of `task` is here.
    pub fn has_equal(&self, task: TaskId) -> bool {
        let priority = self.0.iter().find(|(_, other)| *other == task);
        let priority = priority.map(|(priority, _)| *priority);
        self.0
            .iter()
            .any(|(there, other)| Some(*there) == priority && *other != task)
    }

    /// The best priority, if there is any task.
    pub fn best(&self) -> i32 {
        self.0
            .first()
            .map_or(NO_PRIORITY, |(priority, _)| *priority)
    }

    /// The best first.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().map(|(_, task)| *task)
    }

    /// The best priority first, and of each the one that came last (`load_balance_start_rt()`).
    pub fn to_balance(&self) -> Vec<TaskId> {
        let mut tasks: Vec<(i32, TaskId)> = self.0.iter().rev().copied().collect();
        tasks.sort_by_key(|(priority, _)| *priority);
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
        let mut queue = RealTime::default();
        for (task, priority) in [(1, 50), (2, 40), (3, 50), (4, 40)] {
            queue.add(priority, TaskId(task));
        }
        assert_eq!(tasks(queue.iter()), [2, 4, 1, 3]);
        assert_eq!(tasks(queue.to_balance()), [4, 2, 3, 1]);
        queue.requeue(TaskId(2));
        assert_eq!(tasks(queue.iter()), [4, 2, 1, 3]);
        assert!(queue.has_equal(TaskId(1)));
        queue.remove(TaskId(3));
        assert!(!queue.has_equal(TaskId(1)));
    }
}
