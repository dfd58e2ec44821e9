//! PLS: Linux 2.4 with a list for each priority level.
//!
//! Purpose: the same choice as the vanilla walk without visiting everybody. A task's level is the
//! part of its goodness that is the same on every CPU; the walk goes down from the highest level
//! and ends where no bonus could make up for the level. It does badly where all tasks have about
//! the same goodness: then it visits as many as vanilla. One lock.

use warmq_kernel::{Attach, Context, Pick, Policy, Scheduler, UnknownCost, Why, Within};
use warmq_units::setting::{Chosen, Setting};
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
    chosen: Chosen,
    state: Option<State>,
}

struct State {
    lock: LockId,
    levels: Levels,
    common: Common,
}

impl Pls {
    pub(crate) fn new(chosen: Chosen) -> Pls {
        Pls {
            chosen,
            state: None,
        }
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("attached before anything runs")
    }
}

impl State {
    fn add(&mut self, context: &mut Context<'_>, task: TaskId, in_front: bool) {
        let view = context.task(task);
        let level = match view.policy() {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
                REAL_TIME + usize::from(priority)
            }
            Policy::Other | Policy::Batch => match self.common.slices.counter(task) {
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
    fn attach(&mut self, attach: &mut Attach<'_>) -> Result<(), UnknownCost> {
        let common = Common::new(attach, &self.chosen)?;
        let lock = attach.lock("runqueue_lock");
        self.state = Some(State {
            lock,
            levels: Levels::new(attach, LEVELS),
            common,
        });
        Ok(())
    }

    fn lock_for(&self, _: CpuId) -> LockId {
        self.state
            .as_ref()
            .expect("attached before anything runs")
            .lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        let state = self.state();
        state.common.fork(context, parent, child);
        state.levels.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        let state = self.state();
        state.common.queued(context, task);
        state.add(context, task, true);
    }

    fn woken(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId) {
        self.state().common.reschedule_idle(context, task);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.state();
        state.levels.remove(context, &state.common.layout, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let state = self.state();
        context.compute(state.common.fixed);
        if let Some(prev) = still_runnable(context, prev)
            && !state.levels.contains(prev)
        {
            let in_front = !state.common.slices.renew_round_robin(context, prev);
            state.add(context, prev, in_front);
        }
        let (weight, best) = state.best(context, prev);

        match (weight, best) {
            (0, _) => Pick::Retry,
            (_, None) => Pick::Idle,
            (_, Some(next)) => {
                state.levels.remove(context, &state.common.layout, next);
                state.common.hand_over(context, prev, next);
                Pick::Task(next)
            }
        }
    }

    /// Every task gets a new slice, and those that wait new levels.
    fn unlocked(&mut self, context: &mut Context<'_>) {
        let state = self.state();
        state.common.recalculate(context);
        for task in state.levels.all_below(REAL_TIME) {
            state.levels.remove(context, &state.common.layout, task);
            state.add(context, task, false);
        }
    }

    fn wants_put_prev(&self) -> bool {
        true
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.state().common.put_prev(context, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.state().common.tick(context, running);
    }

    fn yielded(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state().common.slices.yields(context, task);
    }

    fn changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.state();
        if state.levels.contains(task) {
            state.levels.remove(context, &state.common.layout, task);
            state.add(context, task, true);
        }
        state.common.changed(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.state().common.slices.exit(task);
    }
}
