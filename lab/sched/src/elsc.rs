//! ELSC: Linux 2.4 with a table of lists that is sorted by static goodness (Molloy and Honeyman).
//!
//! Purpose: a pick that looks at a few tasks of the topmost list only. It gives up some of
//! vanilla's choice: a task with the affinity bonus in a lower list is not seen. One lock.
//!
//! A task whose slice is used up is filed at once where its next slice will put it, in a second
//! table; when the first has nobody left, slices are computed anew and the tables change places.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Pick, Policy};
use warmq_units::{CpuId, LockId, TaskId};

use crate::family::goodness::{IDLE, is_real_time, static_goodness, ticks};
use crate::family::levels::Levels;
use crate::family::scheduler::{Family, Queues};
use crate::family::state::{Here, still_runnable};

/// Lists of a table: 20 for SCHED_OTHER, four steps of static goodness each, and 10 for real time,
/// ten priorities each.
const LISTS: usize = 30;
const REAL_TIME: usize = 20;

/// The ELSC scheduler.
pub(crate) type Elsc = Family<Tables>;

/// The two tables.
///
/// Invariant: a runnable task is in one of them, unless it runs; the table of the used up holds
/// only tasks whose counter is 0.
pub(crate) struct Tables {
    lock: LockId,
    active: Levels,
    used_up: Levels,
}

/// The list of a task with `counter` ticks left.
fn list(policy: Policy, counter: i32, nice: i8) -> usize {
    match policy.real_time() {
        Some(priority) => REAL_TIME + usize::from(priority / 10),
        None => (static_goodness(counter, nice).max(0) as usize / 4).min(REAL_TIME - 1),
    }
}

impl Tables {
    fn add(&mut self, here: &mut Here<'_, '_>, task: TaskId, in_front: bool) {
        let view = here.context.task(task);
        let (policy, nice) = (view.policy(), view.nice());
        let counter = here.common.slices.counter(task);
        let (table, counter) = if counter > 0 || is_real_time(policy) {
            (&mut self.active, counter)
        } else {
            (&mut self.used_up, ticks(nice))
        };
        let list = list(policy, counter, nice);
        table.add(here, task, list, in_front);
    }

    fn remove(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        self.active.remove(here, task);
        self.used_up.remove(here, task);
    }

    fn contains(&self, task: TaskId) -> bool {
        self.active.contains(task) || self.used_up.contains(task)
    }

    /// The best of the first few of the topmost list where one can run here, and how good it is.
    /// One that gave way is worth less than anybody in the lists below.
    fn best(&self, here: &mut Here<'_, '_>) -> (i32, Option<TaskId>) {
        let (mut best, mut visits) = ((IDLE, None), 0);
        let mut bound = LISTS;
        while let Some(level) = self.active.highest_below(here.context, bound)
            && best.0 < 0
        {
            let most = u32::from(here.context.cpus()) / 2 + 5;
            visits += self.active.walk(here, level, most, &mut best);
            bound = level;
        }
        here.context.walked(visits);
        best
    }
}

impl Queues for Tables {
    fn new(attach: &mut Attach<'_>, _: &Chosen) -> Tables {
        Tables {
            lock: attach.lock("runqueue_lock"),
            active: Levels::new(attach, LISTS),
            used_up: Levels::new(attach, LISTS),
        }
    }

    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn admit(&mut self, task: TaskId) {
        self.active.admit(task);
        self.used_up.admit(task);
    }

    fn enqueue(&mut self, here: &mut Here<'_, '_>, task: TaskId, _: CpuId) {
        self.add(here, task, true);
    }

    fn dequeue(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        self.remove(here, task);
    }

    fn pick_next(&mut self, here: &mut Here<'_, '_>, prev: Option<TaskId>) -> Pick {
        if let Some(prev) = still_runnable(here.context, prev)
            && !self.contains(prev)
        {
            let renewed = here.common.slices.renew_round_robin(here.context, prev);
            let yields = here.common.slices.has_yielded(prev);
            self.add(here, prev, !renewed && !yields);
        }
        match self.best(here) {
            (weight, _)
                if weight < 0 && self.used_up.highest_below(here.context, LISTS).is_some() =>
            {
                Pick::Retry
            }
            (_, Some(next)) => {
                self.active.remove(here, next);
                Pick::Task(next)
            }
            (_, None) => Pick::Idle,
        }
    }

    /// New slices for all; those that were used up are filed under them already.
    fn unlocked(&mut self, here: &mut Here<'_, '_>) {
        here.recalculate();
        // Whoever is left in the active table runs elsewhere or may not run here.
        for task in self.active.all_below(LISTS) {
            self.active.remove(here, task);
            let view = here.context.task(task);
            let counter = here.common.slices.counter(task);
            let list = list(view.policy(), counter, view.nice());
            self.used_up.add(here, task, list, false);
        }
        std::mem::swap(&mut self.active, &mut self.used_up);
    }

    fn refile(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        if self.contains(task) {
            self.remove(here, task);
            self.add(here, task, true);
        }
    }
}
