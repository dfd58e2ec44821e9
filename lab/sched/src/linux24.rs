//! The scheduler of Linux 2.4.4: one run queue, one lock, and a walk over everything runnable at
//! each `schedule()`; with the coloring of the paper, Spraul's slab coloring and Sears's prefetch
//! as settings.
//!
//! Purpose: the vanilla kernel of the coloring paper, and its cure. It does badly where many tasks
//! are runnable: the walk is linear in them, under a lock that all CPUs share.

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Attach, Pick, Within};
use warmq_machine::Access;
use warmq_units::{Bytes, CpuId, LockId, TaskId};

use crate::family;
use crate::family::goodness::IDLE;
use crate::family::list::Lists;
use crate::family::scheduler::{Family, Queues};
use crate::family::state::{Here, may_go_on};

/// The only list.
const RUN_QUEUE: usize = 0;

/// What can be set.
pub(crate) fn settings() -> Vec<Setting> {
    let mut settings = family::settings();
    settings.push(Setting::flag("prefetch", false).says(
        "ask for the next task's line while goodness() of this one is computed",
        "coloring paper; Sears's prefetch",
    ));
    settings
}

/// Linux 2.4's scheduler.
pub(crate) type Linux24 = Family<RunQueue>;

/// The run queue.
///
/// Invariant: a task is in it from `enqueue` to `dequeue`, also while it runs.
pub(crate) struct RunQueue {
    lock: LockId,
    queue: Lists,
    prefetch: bool,
}

impl RunQueue {
    /// The walk: every runnable task that no other CPU has is weighed, and the first of the best is
    /// kept. Returns its weight with it.
    fn walk(
        &self,
        here: &mut Here<'_, '_>,
        mut best: (i32, Option<TaskId>),
    ) -> (i32, Option<TaskId>) {
        let mut visits = 0;
        here.context.touch(self.queue.head(RUN_QUEUE), Access::Read);
        here.context.within(Within::RunQueueWalk);
        let mut next = self.queue.first(RUN_QUEUE);
        while let Some(task) = next {
            next = self.queue.after(task);
            visits += 1;
            if here.visit(task, next.filter(|_| self.prefetch)) {
                let weight = here.common.goodness(here.context, task);
                if weight > best.0 {
                    best = (weight, Some(task));
                }
            }
        }
        here.context.within(Within::Elsewhere);
        here.context.walked(visits);
        best
    }
}

impl Queues for RunQueue {
    fn new(attach: &mut Attach<'_>, chosen: &Chosen) -> RunQueue {
        let lock = attach.lock("runqueue_lock");
        let head = attach.data(Bytes(attach.line()));
        RunQueue {
            lock,
            queue: Lists::new(vec![head]),
            prefetch: chosen.flag("prefetch"),
        }
    }

    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn admit(&mut self, task: TaskId) {
        self.queue.admit(task);
    }

    fn enqueue(&mut self, here: &mut Here<'_, '_>, task: TaskId, _: CpuId) {
        self.queue.add_first(here, RUN_QUEUE, task);
    }

    fn dequeue(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        self.queue.remove(here, task);
    }

    fn pick_next(&mut self, here: &mut Here<'_, '_>, prev: Option<TaskId>) -> Pick {
        let mut best = (IDLE, None);
        if let Some(prev) = may_go_on(here.context, prev) {
            if here.common.slices.renew_round_robin(here.context, prev) {
                // Last in the queue, the walk gives its equals their turn.
                self.queue.remove(here, prev);
                self.queue.add_last(here, RUN_QUEUE, prev);
            } else {
                best = (here.common.goodness(here.context, prev), Some(prev));
            }
        }
        match self.walk(here, best) {
            (0, _) => Pick::Retry,
            (_, None) => Pick::Idle,
            (_, Some(next)) => Pick::Task(next),
        }
    }
}

/// What every task there ever was would be worth here, runnable or not.
#[cfg(test)]
pub(crate) fn worths(linux24: &Linux24, context: &warmq_kernel::Context<'_>) -> Vec<i32> {
    let common = &linux24.common;
    let worth = |task| common.goodness(context, task);
    (0..common.slices.known()).map(TaskId).map(worth).collect()
}
