//! The scheduler of Linux 2.4.4: one run queue, one lock, and a walk over everything runnable at
//! each `schedule()`; with the coloring of the paper, Spraul's slab coloring and Sears's prefetch
//! as settings.
//!
//! Purpose: the vanilla kernel of the coloring paper, and its cure. It does badly where many tasks
//! are runnable: the walk is linear in them, under a lock that all CPUs share.

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Attach, Context, Mm, Pick, Scheduler, UnknownCost, Why, Within};
use warmq_machine::Access;
use warmq_units::{Bytes, CpuId, LockId, TaskId};

use crate::family::layout;
use crate::family::list::Lists;
use crate::family::state::{Common, may_go_on, mm_of};

/// The only list.
const RUN_QUEUE: usize = 0;
/// Less than any goodness: what the idle task has.
const IDLE: i32 = -1_000;

/// What can be set.
pub(crate) fn settings() -> Vec<Setting> {
    let mut settings = layout::settings();
    settings.push(Setting::flag("prefetch", false).says(
        "ask for the next task's line while goodness() of this one is computed",
        "coloring paper; Sears's prefetch",
    ));
    settings
}

/// Linux 2.4's scheduler.
///
/// Invariant: a task is in the run queue from `enqueue` to `dequeue`, also while it runs.
pub(crate) struct Linux24 {
    prefetch: bool,
    lock: LockId,
    queue: Lists,
    common: Common,
}

impl Linux24 {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Linux24, UnknownCost> {
        let common = Common::new(attach, chosen)?;
        let lock = attach.lock("runqueue_lock");
        let head = attach.data(Bytes(attach.line()));
        Ok(Linux24 {
            prefetch: chosen.flag("prefetch"),
            lock,
            queue: Lists::new(vec![head]),
            common,
        })
    }

    /// What every task there ever was would be worth here after `prev`, runnable or not.
    #[cfg(test)]
    pub(crate) fn worths(&mut self, context: &Context<'_>, prev: Option<TaskId>) -> Vec<i32> {
        let mm = mm_of(context, prev);
        let slices = &self.common.slices;
        let worth = |task| {
            slices
                .candidate(context, task, context.cpu(), mm)
                .goodness()
        };
        (0..slices.known()).map(TaskId).map(worth).collect()
    }
}

impl Linux24 {
    /// The walk: every runnable task that no other CPU has is weighed, and the first of the best is
    /// kept. Returns its weight with it.
    fn walk(
        &self,
        context: &mut Context<'_>,
        mm: Option<Mm>,
        prefetch: bool,
        mut best: (i32, Option<TaskId>),
    ) -> (i32, Option<TaskId>) {
        let mut visits = 0;
        context.touch(self.queue.head(RUN_QUEUE), Access::Read);
        context.within(Within::RunQueueWalk);
        let mut next = self.queue.first(RUN_QUEUE);
        while let Some(task) = next {
            next = self.queue.after(task);
            visits += 1;
            let weight = self
                .common
                .visit(context, task, mm, next.filter(|_| prefetch));
            if let Some(weight) = weight.filter(|weight| *weight > best.0) {
                best = (weight, Some(task));
            }
        }
        context.within(Within::Elsewhere);
        context.walked(visits);
        best
    }
}

impl Scheduler for Linux24 {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.common.fork(context, parent, child);
        self.queue.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.queued(context, task);
        self.queue
            .add_first(context, &self.common.layout, RUN_QUEUE, task);
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.reschedule_idle(context, task);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.queue.remove(context, &self.common.layout, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let prefetch = self.prefetch;
        let Linux24 { queue, common, .. } = self;
        context.compute(common.fixed);
        let mut best = (IDLE, None);
        if let Some(prev) = may_go_on(context, prev) {
            if common.slices.renew_round_robin(context, prev) {
                // Last in the queue, the walk gives its equals their turn.
                queue.remove(context, &common.layout, prev);
                queue.add_last(context, &common.layout, RUN_QUEUE, prev);
            } else {
                best = (common.weight_of_prev(context, prev), Some(prev));
            }
        }
        let mm = mm_of(context, prev);
        match self.walk(context, mm, prefetch, best) {
            (0, _) => Pick::Retry,
            (_, None) => Pick::Idle,
            (_, Some(next)) => {
                self.common.hand_over(context, prev, next);
                Pick::Task(next)
            }
        }
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.common.recalculate(context);
    }

    fn wants_put_prev(&self) -> bool {
        true
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.common.put_prev(context, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.common.tick(context, running);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.common.slices.yields(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.common.set_cpumask(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.common.slices.exit(task);
    }
}
