//! PLS: Linux 2.4 with a list for each priority level.
//!
//! Purpose: the same choice as the vanilla walk without visiting everybody. A task's level is the
//! part of its goodness that is the same on every CPU; the walk goes down from the highest level
//! and ends where no bonus could make up for the level. It does badly where all tasks have about
//! the same goodness: then it visits as many as vanilla. One lock.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Pick};
use warmq_units::{CpuId, LockId, TaskId};

use crate::family::goodness::{AFFINITY, IDLE, SAME_MM, static_goodness};
use crate::family::levels::Levels;
use crate::family::scheduler::{Family, Queues};
use crate::family::state::{Here, still_runnable};

/// Level 0 holds those whose slice is used up, 1..=100 SCHED_OTHER, the rest real time.
const REAL_TIME: usize = 100;
const LEVELS: usize = REAL_TIME + 100;

/// The priority-level scheduler.
pub(crate) type Pls = Family<PriorityLevels>;

/// A list a level.
///
/// Invariant: a runnable task is in one of them, unless it runs.
pub(crate) struct PriorityLevels {
    lock: LockId,
    levels: Levels,
}

impl PriorityLevels {
    fn add(&mut self, here: &mut Here<'_, '_>, task: TaskId, in_front: bool) {
        let view = here.context.task(task);
        let level = match (view.policy().real_time(), here.common.slices.counter(task)) {
            (Some(priority), _) => REAL_TIME + usize::from(priority),
            (None, 0) => 0,
            (None, counter) => static_goodness(counter, view.nice()).clamp(1, 100) as usize,
        };
        let level = level.min(LEVELS - 1);
        self.levels.add(here, task, level, in_front);
    }

    /// The best of those that wait, and how good it is.
    fn best(&self, here: &mut Here<'_, '_>) -> (i32, Option<TaskId>) {
        let (mut best, mut visits) = ((IDLE, None), 0);
        let mut bound = LEVELS;
        while let Some(level) = self.levels.highest_below(here.context, bound) {
            if level <= REAL_TIME && level as i32 + AFFINITY + SAME_MM < best.0 {
                break;
            }
            visits += self.levels.walk(here, level, u32::MAX, &mut best);
            bound = level;
        }
        here.context.walked(visits);
        best
    }
}

impl Queues for PriorityLevels {
    fn new(attach: &mut Attach<'_>, _: &Chosen) -> PriorityLevels {
        PriorityLevels {
            lock: attach.lock("runqueue_lock"),
            levels: Levels::new(attach, LEVELS),
        }
    }

    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn admit(&mut self, task: TaskId) {
        self.levels.admit(task);
    }

    fn enqueue(&mut self, here: &mut Here<'_, '_>, task: TaskId, _: CpuId) {
        self.add(here, task, true);
    }

    fn dequeue(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        self.levels.remove(here, task);
    }

    fn pick_next(&mut self, here: &mut Here<'_, '_>, prev: Option<TaskId>) -> Pick {
        if let Some(prev) = still_runnable(here.context, prev)
            && !self.levels.contains(prev)
        {
            let in_front = !here.common.slices.renew_round_robin(here.context, prev);
            self.add(here, prev, in_front);
        }
        match self.best(here) {
            (0, _) => Pick::Retry,
            (_, None) => Pick::Idle,
            (_, Some(next)) => {
                self.levels.remove(here, next);
                Pick::Task(next)
            }
        }
    }

    /// Every task gets a new slice, and those that wait new levels.
    fn unlocked(&mut self, here: &mut Here<'_, '_>) {
        here.recalculate();
        for task in self.levels.all_below(REAL_TIME) {
            self.levels.remove(here, task);
            self.add(here, task, false);
        }
    }

    fn refile(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        if self.levels.contains(task) {
            self.levels.remove(here, task);
            self.add(here, task, true);
        }
    }
}
