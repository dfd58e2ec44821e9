//! What every scheduler of the family keeps besides its queues: where structures lie, slices, and
//! costs.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, Mm, UnknownCost};
use warmq_machine::Access;
use warmq_units::{CpuId, Cycles, TaskId};

use super::idle::reschedule_idle;
use super::layout::Layout;
use super::slices::Slices;

/// The part of a scheduler's state that does not depend on how it queues.
pub(crate) struct Common {
    pub(crate) layout: Layout,
    pub(crate) slices: Slices,
    /// `schedule()` but for the walk.
    pub(crate) fixed: Cycles,
    /// One visit of the walk, but for its misses.
    pub(crate) visit: Cycles,
    pub(crate) wakeup: Cycles,
}

impl Common {
    pub(crate) fn new(attach: &Attach<'_>, chosen: &Chosen) -> Result<Common, UnknownCost> {
        let layout = Layout::new(attach, chosen);
        let current = match layout.is_colored() {
            true => attach.cost("current_colored")?,
            false => Cycles(0),
        };
        Ok(Common {
            layout,
            slices: Slices::new(attach)?,
            fixed: attach.cost("schedule_fixed")? + current,
            visit: attach.cost("goodness")?,
            wakeup: attach.cost("wakeup")?,
        })
    }

    pub(crate) fn fork(
        &mut self,
        context: &mut Context<'_>,
        parent: Option<TaskId>,
        child: TaskId,
    ) {
        self.layout.place(context, child);
        self.slices.fork(context, parent, child);
        if parent.is_some_and(|parent| self.slices.counter(parent) == 0) {
            context.reschedule(context.cpu());
        }
    }

    /// One visit of a walk: what `task` is worth on this CPU; `None` when it cannot run here now.
    /// The line of `ahead` is on its way while goodness() is computed (Sears's prefetch).
    #[inline]
    pub(crate) fn visit(
        &self,
        context: &mut Context<'_>,
        task: TaskId,
        mm: Option<Mm>,
        ahead: Option<TaskId>,
    ) -> Option<i32> {
        context.touch(self.layout.hot(task), Access::Read);
        if let Some(ahead) = ahead {
            context.prefetch(self.layout.hot(ahead));
        }
        context.compute(self.visit);
        let view = context.task(task);
        let cpu = context.cpu();
        let free = view.on_cpu().is_none_or(|there| there == cpu) && view.may_run_on(cpu);
        free.then(|| self.slices.candidate(context, task, cpu, mm).goodness())
    }

    /// What the task that leaves is worth here.
    pub(crate) fn weight_of_prev(&self, context: &Context<'_>, prev: TaskId) -> i32 {
        let mm = context.task(prev).mm();
        self.slices
            .candidate(context, prev, context.cpu(), mm)
            .goodness()
    }

    /// `has_cpu` and `processor` of the task that comes, `has_cpu` of the one that goes. One that
    /// gave way and is picked all the same has done its duty.
    pub(crate) fn hand_over(
        &mut self,
        context: &mut Context<'_>,
        prev: Option<TaskId>,
        next: TaskId,
    ) {
        context.touch(self.layout.hot(next), Access::Write);
        match prev {
            Some(prev) if prev == next => self.slices.forget_yield(prev),
            Some(prev) => context.touch(self.layout.hot(prev), Access::Write),
            None => {}
        }
    }

    /// A task joins a queue: what waking it costs, but for its misses.
    pub(crate) fn queued(&mut self, context: &mut Context<'_>, task: TaskId) {
        context.compute(self.wakeup);
        self.slices.forget_yield(task);
    }

    /// `prev` left this CPU and could have gone on: another might want it, unless it gave way
    /// (`__schedule_tail()`).
    pub(crate) fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        if self.slices.has_yielded(prev) {
            self.slices.forget_yield(prev);
        } else {
            self.reschedule_idle(context, prev);
        }
    }

    /// The affinity of `task` may have changed: whoever may not have it any more lets go of it, and
    /// one that waits looks for a CPU anew.
    pub(crate) fn set_cpumask(&self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        match view.on_cpu() {
            Some(cpu) if !view.may_run_on(cpu) => context.reschedule(cpu),
            None if view.is_runnable() => self.reschedule_idle(context, task),
            Some(_) | None => {}
        }
    }

    pub(crate) fn reschedule_idle(&self, context: &mut Context<'_>, task: TaskId) {
        reschedule_idle(context, &self.slices, &self.layout, task);
    }

    pub(crate) fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let Some(running) = running else { return };
        context.touch(self.layout.counter(running), Access::Write);
        if self.slices.charge_tick(running) {
            context.reschedule(context.cpu());
        }
    }

    pub(crate) fn recalculate(&mut self, context: &mut Context<'_>) {
        self.slices.recalculate(context, &self.layout);
    }
}

/// The address space of the task that leaves.
pub(crate) fn mm_of(context: &Context<'_>, prev: Option<TaskId>) -> Option<Mm> {
    prev.and_then(|prev| context.task(prev).mm())
}

/// `prev`, if it does not sleep.
pub(crate) fn still_runnable(context: &Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
    prev.filter(|prev| context.task(*prev).is_runnable())
}

/// `prev`, if it could go on here.
pub(crate) fn may_go_on(context: &Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
    still_runnable(context, prev).filter(|prev| context.task(*prev).may_run_on(context.cpu()))
}

/// True when nobody but the idle task is on `cpu`.
pub(crate) fn is_idle(context: &Context<'_>, cpu: CpuId) -> bool {
    context.running_on(cpu).is_none()
}
