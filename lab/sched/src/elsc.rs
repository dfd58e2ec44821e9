//! ELSC: Linux 2.4 with a table of lists that is sorted by static goodness (Molloy and Honeyman).
//!
//! Purpose: a pick that looks at a few tasks of the topmost list only. It gives up some of
//! vanilla's choice: a task with the affinity bonus in a lower list is not seen. One lock.
//!
//! A task whose slice is used up is filed at once where its next slice will put it, in a second
//! table; when the first has nobody left, slices are computed anew and the tables change places.

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Attach, Context, Pick, Policy, Scheduler, UnknownCost, Why, Within};
use warmq_units::{CpuId, LockId, TaskId};

use crate::family::goodness::{static_goodness, ticks};
use crate::family::layout;
use crate::family::levels::Levels;
use crate::family::state::{Common, mm_of, still_runnable};

/// Lists of a table: 20 for SCHED_OTHER, four steps of static goodness each, and 10 for real time,
/// ten priorities each.
const LISTS: usize = 30;
const REAL_TIME: usize = 20;
const IDLE: i32 = -1_000;

pub(crate) fn settings() -> Vec<Setting> {
    layout::settings()
}

/// The ELSC scheduler.
///
/// Invariant: a runnable task is in one of the tables, unless it runs; the table of the used up
/// holds only tasks whose counter is 0.
pub(crate) struct Elsc {
    lock: LockId,
    active: Levels,
    used_up: Levels,
    common: Common,
}

impl Elsc {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Elsc, UnknownCost> {
        let common = Common::new(attach, chosen)?;
        let lock = attach.lock("runqueue_lock");
        let (active, used_up) = (Levels::new(attach, LISTS), Levels::new(attach, LISTS));
        Ok(Elsc {
            lock,
            active,
            used_up,
            common,
        })
    }
}

/// The list of a task with `counter` ticks left.
fn list(policy: Policy, counter: i32, nice: i8) -> usize {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            REAL_TIME + usize::from(priority / 10)
        }
        Policy::Other | Policy::Batch | Policy::Idle => {
            (static_goodness(counter, nice).max(0) as usize / 4).min(REAL_TIME - 1)
        }
    }
}

impl Elsc {
    fn add(&mut self, context: &mut Context<'_>, task: TaskId, in_front: bool) {
        let view = context.task(task);
        let (policy, nice) = (view.policy(), view.nice());
        let counter = self.common.slices.counter(task);
        let real_time = matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_));
        let (table, counter) = if counter > 0 || real_time {
            (&mut self.active, counter)
        } else {
            (&mut self.used_up, ticks(nice))
        };
        table.add(
            context,
            &self.common.layout,
            task,
            list(policy, counter, nice),
            in_front,
        );
    }

    fn remove(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.active.remove(context, &self.common.layout, task);
        self.used_up.remove(context, &self.common.layout, task);
    }

    /// The best of the first few of the topmost list where one can run here, and how good it is.
    /// One that gave way is worth less than anybody in the lists below.
    fn best(&self, context: &mut Context<'_>, prev: Option<TaskId>) -> (i32, Option<TaskId>) {
        let mm = mm_of(context, prev);
        let (mut best, mut visits) = ((IDLE, None), 0);
        let mut bound = LISTS;
        while let Some(level) = self.active.highest_below(context, bound)
            && best.0 < 0
        {
            let mut left = u32::from(context.cpus()) / 2 + 5;
            context.within(Within::RunQueueWalk);
            let mut next = self.active.first(level);
            while let Some(task) = next.filter(|_| left > 0) {
                next = self.active.after(task);
                visits += 1;
                if let Some(weight) = self.common.visit(context, task, mm, None) {
                    left -= 1;
                    if weight > best.0 {
                        best = (weight, Some(task));
                    }
                }
            }
            context.within(Within::Elsewhere);
            bound = level;
        }
        context.walked(visits);
        best
    }
}

impl Scheduler for Elsc {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.common.fork(context, parent, child);
        self.active.admit(child);
        self.used_up.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.queued(context, task);
        self.add(context, task, true);
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.reschedule_idle(context, task);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.remove(context, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.common.fixed);
        if let Some(prev) = still_runnable(context, prev)
            && !self.active.contains(prev)
            && !self.used_up.contains(prev)
        {
            let renewed = self.common.slices.renew_round_robin(context, prev);
            let yields = self.common.slices.has_yielded(prev);
            self.add(context, prev, !renewed && !yields);
        }
        let best = self.best(context, prev);

        match best {
            (weight, _) if weight < 0 && self.used_up.highest_below(context, LISTS).is_some() => {
                Pick::Retry
            }
            (_, Some(next)) => {
                self.active.remove(context, &self.common.layout, next);
                self.common.hand_over(context, prev, next);
                Pick::Task(next)
            }
            (_, None) => Pick::Idle,
        }
    }

    /// New slices for all; those that were used up are filed under them already.
    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.common.recalculate(context);
        // Whoever is left in the active table runs elsewhere or may not run here.
        for task in self.active.all_below(LISTS) {
            self.active.remove(context, &self.common.layout, task);
            let view = context.task(task);
            let counter = self.common.slices.counter(task);
            let list = list(view.policy(), counter, view.nice());
            self.used_up
                .add(context, &self.common.layout, task, list, false);
        }
        std::mem::swap(&mut self.active, &mut self.used_up);
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

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.active.contains(task) || self.used_up.contains(task) {
            self.remove(context, task);
            self.add(context, task, true);
        }
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.common.set_cpumask(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.common.slices.exit(task);
    }
}
