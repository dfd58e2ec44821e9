//! PLS: Linux 2.4 with a list for each priority level.
//!
//! Purpose: the same choice as the vanilla walk without visiting everybody. A task's level is the
//! part of its goodness that is the same on every CPU; the walk goes down from the highest level
//! and ends where no bonus could make up for the level. It does badly where all tasks have about
//! the same goodness: then it visits as many as vanilla. One lock.

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Attach, Context, Pick, Policy, Scheduler, UnknownCost, Why, Within};
use warmq_units::{CpuId, LockId, TaskId};

use crate::family::goodness::{AFFINITY, SAME_MM, static_goodness};
use crate::family::layout;
use crate::family::levels::Levels;
use crate::family::state::{Common, mm_of, still_runnable};

/// Level 0 holds those whose slice is used up, 1..=100 SCHED_OTHER, the rest real time.
const REAL_TIME: usize = 100;
const LEVELS: usize = REAL_TIME + 100;
const IDLE: i32 = -1_000;

pub(crate) fn settings() -> Vec<Setting> {
    layout::settings()
}

/// The priority-level scheduler.
///
/// Invariant: a runnable task is in a list of `levels`, unless it runs.
pub(crate) struct Pls {
    lock: LockId,
    levels: Levels,
    common: Common,
}

impl Pls {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Pls, UnknownCost> {
        let common = Common::new(attach, chosen)?;
        let lock = attach.lock("runqueue_lock");
        Ok(Pls {
            lock,
            levels: Levels::new(attach, LEVELS),
            common,
        })
    }
}

impl Pls {
    fn add(&mut self, context: &mut Context<'_>, task: TaskId, in_front: bool) {
        let view = context.task(task);
        let level = match view.policy() {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
                REAL_TIME + usize::from(priority)
            }
            Policy::Other | Policy::Batch | Policy::Idle => match self.common.slices.counter(task) {
                0 => 0,
                counter => static_goodness(counter, view.nice()).clamp(1, 100) as usize,
            },
        };
        self.levels.add(
            context,
            &self.common.layout,
            task,
            level.min(LEVELS - 1),
            in_front,
        );
    }

    /// The best of those that wait, and how good it is.
    fn best(&self, context: &mut Context<'_>, prev: Option<TaskId>) -> (i32, Option<TaskId>) {
        let mm = mm_of(context, prev);
        let (mut best, mut visits) = ((IDLE, None), 0);
        let mut bound = LEVELS;
        while let Some(level) = self.levels.highest_below(context, bound) {
            if level <= REAL_TIME && level as i32 + AFFINITY + SAME_MM < best.0 {
                break;
            }
            context.within(Within::RunQueueWalk);
            let mut next = self.levels.first(level);
            while let Some(task) = next {
                next = self.levels.after(task);
                visits += 1;
                let weight = self.common.visit(context, task, mm, None);
                if let Some(weight) = weight.filter(|weight| *weight > best.0) {
                    best = (weight, Some(task));
                }
            }
            context.within(Within::Elsewhere);
            bound = level;
        }
        context.walked(visits);
        best
    }
}

impl Scheduler for Pls {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.common.fork(context, parent, child);
        self.levels.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.queued(context, task);
        self.add(context, task, true);
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.common.reschedule_idle(context, task);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.levels.remove(context, &self.common.layout, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.common.fixed);
        if let Some(prev) = still_runnable(context, prev)
            && !self.levels.contains(prev)
        {
            let in_front = !self.common.slices.renew_round_robin(context, prev);
            self.add(context, prev, in_front);
        }
        let (weight, best) = self.best(context, prev);

        match (weight, best) {
            (0, _) => Pick::Retry,
            (_, None) => Pick::Idle,
            (_, Some(next)) => {
                self.levels.remove(context, &self.common.layout, next);
                self.common.hand_over(context, prev, next);
                Pick::Task(next)
            }
        }
    }

    /// Every task gets a new slice, and those that wait new levels.
    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.common.recalculate(context);
        for task in self.levels.all_below(REAL_TIME) {
            self.levels.remove(context, &self.common.layout, task);
            self.add(context, task, false);
        }
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
        if self.levels.contains(task) {
            self.levels.remove(context, &self.common.layout, task);
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
