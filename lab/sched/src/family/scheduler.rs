//! What all schedulers of the family answer alike; their queues say the rest.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, Pick, Scheduler, UnknownCost, Why};
use warmq_units::{CpuId, LockId, TaskId};

use super::idle::reschedule_idle;
use super::state::{Common, Here};

/// How a scheduler of the family queues tasks and picks among them.
pub(crate) trait Queues {
    /// Empty queues, with their locks and heads.
    fn new(attach: &mut Attach<'_>, chosen: &Chosen) -> Self;

    /// The lock that guards the queue of `cpu`.
    fn lock_for(&self, cpu: CpuId) -> LockId;

    /// Makes room for `task`, which is in no queue.
    fn admit(&mut self, task: TaskId);

    /// Puts a woken task into a queue.
    fn enqueue(&mut self, here: &mut Here<'_, '_>, task: TaskId, cpu: CpuId);

    /// Takes a task that sleeps or exits out of its queue.
    fn dequeue(&mut self, here: &mut Here<'_, '_>, task: TaskId);

    /// The walk. `Pick::Retry` asks for new slices.
    fn pick_next(&mut self, here: &mut Here<'_, '_>, prev: Option<TaskId>) -> Pick;

    /// `task` was queued: who should make room for it?
    fn find_cpu(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        reschedule_idle(here, task);
    }

    /// `prev` left its CPU and is still runnable: who else should make room for it?
    fn put_prev(&mut self, here: &mut Here<'_, '_>, prev: TaskId) {
        self.find_cpu(here, prev);
    }

    /// Called without the lock after [`Pick::Retry`].
    fn unlocked(&mut self, here: &mut Here<'_, '_>) {
        here.recalculate();
    }

    /// The nice value, policy or affinity of `task` changed: it may belong elsewhere in its queue.
    fn refile(&mut self, _: &mut Here<'_, '_>, _: TaskId) {}

    /// `cpu` has gone offline: whoever waits in its queue must leave it.
    fn vacate(&mut self, _: &mut Here<'_, '_>, _cpu: CpuId) {}

    /// A tick was charged to `running`.
    fn ticked(&mut self, _: &mut Here<'_, '_>, _running: Option<TaskId>) {}
}

/// A scheduler of the 2.4 family.
pub(crate) struct Family<Q> {
    pub(crate) common: Common,
    queues: Q,
}

impl<Q: Queues> Family<Q> {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Self, UnknownCost> {
        let queues = Q::new(attach, chosen);
        let common = Common::new(attach, chosen)?;
        Ok(Family { common, queues })
    }

    fn with<R>(
        &mut self,
        context: &mut Context<'_>,
        act: impl FnOnce(&mut Q, &mut Here<'_, '_>) -> R,
    ) -> R {
        let common = &mut self.common;
        act(&mut self.queues, &mut Here { common, context })
    }

    /// Parameters of `task` changed: whoever may not have its CPU any more lets go of it.
    fn changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (on_cpu, waits) = (view.on_cpu(), view.is_runnable());
        match on_cpu.filter(|cpu| !view.may_run_on(*cpu)) {
            Some(cpu) => context.reschedule(cpu),
            None => self.with(context, |queues, here| queues.refile(here, task)),
        }
        if waits && on_cpu.is_none() {
            self.with(context, |queues, here| queues.find_cpu(here, task));
        }
    }
}

impl<Q: Queues> Scheduler for Family<Q> {
    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.with(context, |queues, here| queues.vacate(here, cpu));
    }

    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.queues.lock_for(cpu)
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.with(context, |_, here| here.fork(parent, child));
        self.queues.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        self.with(context, |queues, here| {
            here.joins(task);
            queues.enqueue(here, task, cpu);
        });
    }

    /// A task whose waker is about to sleep preempts nobody.
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, why: Why) {
        if !matches!(why, Why::Wakeup(wakeup) if wakeup.sync) {
            self.with(context, |queues, here| queues.find_cpu(here, task));
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.with(context, |queues, here| {
            here.leaves();
            queues.dequeue(here, task);
        });
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.with(context, |queues, here| {
            here.begin(prev);
            let pick = queues.pick_next(here, prev);
            match pick {
                Pick::Task(next) => here.picked(prev, Some(next)),
                Pick::Idle => here.picked(prev, None),
                Pick::Retry => {}
            }
            pick
        })
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.with(context, |queues, here| queues.unlocked(here));
    }

    fn switched(&mut self, context: &mut Context<'_>, prev: Option<TaskId>, next: Option<TaskId>) {
        self.with(context, |_, here| here.switched(prev, next));
    }

    /// `__schedule_tail()`: another CPU might want `prev`, unless it gave way.
    fn wants_put_prev(&self, prev: TaskId) -> bool {
        !self.common.slices.has_yielded(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.with(context, |queues, here| queues.put_prev(here, prev));
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.with(context, |queues, here| {
            here.tick(running);
            queues.ticked(here, running);
        });
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.with(context, |_, here| here.yields(task))
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.changed(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.changed(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.common.slices.exit(task);
    }
}
