//! The scheduler of Linux 2.4.4: one run queue, one lock, and a walk over everything runnable at
//! each `schedule()`; with the coloring of the paper, Spraul's slab coloring and Sears's prefetch
//! as settings.
//!
//! Purpose: the vanilla kernel of the coloring paper, and its cure. It does badly where many tasks
//! are runnable: the walk is linear in them, under a lock that all CPUs share.

use warmq_kernel::{Attach, Context, Mm, Pick, Scheduler, UnknownCost, Why, Within};
use warmq_machine::Access;
use warmq_units::setting::{Chosen, Setting};
use warmq_units::{CpuId, Cycles, LockId, TaskId};

use crate::family::idle::reschedule_idle;
use crate::family::layout::{self, Layout};
use crate::family::list::Lists;
use crate::family::slices::Slices;

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
    chosen: Chosen,
    prefetch: bool,
    state: Option<State>,
}

struct State {
    lock: LockId,
    queue: Lists,
    layout: Layout,
    slices: Slices,
    costs: Costs,
}

struct Costs {
    fixed: Cycles,
    visit: Cycles,
    wakeup: Cycles,
    current: Cycles,
}

impl Linux24 {
    pub(crate) fn new(chosen: Chosen) -> Linux24 {
        let prefetch = chosen.flag("prefetch");
        Linux24 { chosen, prefetch, state: None }
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("attached before anything runs")
    }
}

impl State {
    /// The walk: every runnable task that no CPU has is weighed, and the first of the best is
    /// kept. Returns its weight with it.
    fn walk(
        &self,
        context: &mut Context<'_>,
        mm: Option<Mm>,
        prefetch: bool,
        mut best: (i32, Option<TaskId>),
    ) -> (i32, Option<TaskId>) {
        let cpu = context.cpu();
        let mut visits = 0;
        context.touch(self.queue.head(RUN_QUEUE), Access::Read);
        context.within(Within::RunQueueWalk);
        let mut next = self.queue.first(RUN_QUEUE);
        while let Some(task) = next {
            next = self.queue.after(task);
            visits += 1;
            context.touch(self.layout.hot(task), Access::Read);
            if prefetch && let Some(ahead) = next {
                context.prefetch(self.layout.hot(ahead));
            }
            context.compute(self.costs.visit);
            let view = context.task(task);
            if view.on_cpu().is_some() || !view.may_run_on(cpu) {
                continue;
            }
            let weight = self.slices.candidate(context, task, cpu, mm).goodness();
            if weight > best.0 {
                best = (weight, Some(task));
            }
        }
        context.within(Within::Elsewhere);
        context.walked(visits);
        best
    }

    /// The task that leaves competes first, unless it gave way.
    fn weight_of_prev(&mut self, context: &Context<'_>, prev: TaskId) -> i32 {
        if self.slices.forget_yield(prev) {
            return 0;
        }
        let mm = context.task(prev).mm();
        self.slices.candidate(context, prev, context.cpu(), mm).goodness()
    }
}

impl Scheduler for Linux24 {
    fn attach(&mut self, attach: &mut Attach<'_>) -> Result<(), UnknownCost> {
        let layout = Layout::new(attach, &self.chosen);
        let lock = attach.lock("runqueue_lock");
        let head = attach.data(warmq_units::Bytes(attach.line()));
        let colored = if layout.is_colored() { attach.cost("current_colored")? } else { Cycles(0) };
        let costs = Costs {
            fixed: attach.cost("schedule_fixed")?,
            visit: attach.cost("goodness")?,
            wakeup: attach.cost("wakeup")?,
            current: colored,
        };
        let slices = Slices::new(attach)?;
        self.state = Some(State { lock, queue: Lists::new(vec![head]), layout, slices, costs });
        Ok(())
    }

    fn lock_for(&self, _: CpuId) -> LockId {
        self.state.as_ref().expect("attached before anything runs").lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        let state = self.state();
        state.layout.place(context, child);
        state.slices.fork(context, parent, child);
        state.queue.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        let state = self.state();
        context.compute(state.costs.wakeup);
        state.queue.add_first(context, &state.layout, RUN_QUEUE, task);
    }

    fn woken(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId) {
        let state = self.state();
        reschedule_idle(context, &state.slices, &state.layout, task);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.state();
        state.queue.remove(context, &state.layout, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let prefetch = self.prefetch;
        let state = self.state();
        context.compute(state.costs.fixed + state.costs.current);
        let mm = prev.and_then(|prev| context.task(prev).mm());
        let mut best = (IDLE, None);
        if let Some(prev) = prev.filter(|prev| context.task(*prev).is_runnable()) {
            if state.slices.renew_round_robin(context, prev) {
                state.queue.remove(context, &state.layout, prev);
                state.queue.add_last(context, &state.layout, RUN_QUEUE, prev);
            }
            best = (state.weight_of_prev(context, prev), Some(prev));
        }
        let (weight, task) = state.walk(context, mm, prefetch, best);
        match task {
            _ if weight == 0 => Pick::Retry,
            None => Pick::Idle,
            Some(task) => {
                // has_cpu and processor of the one that comes, and has_cpu of the one that goes.
                context.touch(state.layout.hot(task), Access::Write);
                if let Some(prev) = prev.filter(|prev| *prev != task) {
                    context.touch(state.layout.hot(prev), Access::Write);
                }
                Pick::Task(task)
            }
        }
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        let State { slices, layout, .. } = self.state();
        slices.recalculate(context, layout);
    }

    fn wants_put_prev(&self) -> bool {
        true
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let state = self.state();
        reschedule_idle(context, &state.slices, &state.layout, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let Some(running) = running else { return };
        let state = self.state();
        context.touch(state.layout.counter(running), Access::Write);
        if state.slices.charge_tick(running) {
            context.reschedule(context.cpu());
        }
    }

    fn yielded(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.state().slices.yields(task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.state().slices.exit(task);
    }
}
