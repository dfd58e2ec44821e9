//! What all schedulers of the family answer alike; their queues say the rest.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, Pick, Scheduler, UnknownCost, Why};
use warmq_units::{CpuId, LockId, TaskId};

use super::idle::reschedule_idle;
use super::state::Common;

/// How a scheduler of the family queues tasks and picks among them.
pub(crate) trait Queues {
    /// Empty queues, with their locks and heads.
    fn new(attach: &mut Attach<'_>, chosen: &Chosen) -> Self;

    /// The lock that guards the queue of `cpu`.
    fn lock_for(&self, cpu: CpuId) -> LockId;

    /// Makes room for `task`, which is in no queue.
    fn admit(&mut self, task: TaskId);

    /// Puts a woken task into a queue.
    fn enqueue(&mut self, common: &mut Common, context: &mut Context<'_>, task: TaskId, cpu: CpuId);

    /// Takes a task that sleeps or exits out of its queue.
    fn dequeue(&mut self, common: &mut Common, context: &mut Context<'_>, task: TaskId);

    /// The walk. `Pick::Retry` asks for new slices.
    fn pick_next(
        &mut self,
        common: &mut Common,
        context: &mut Context<'_>,
        prev: Option<TaskId>,
    ) -> Pick;

    /// `task` was queued: who should make room for it?
    fn find_cpu(&mut self, common: &mut Common, context: &mut Context<'_>, task: TaskId) {
        reschedule_idle(common, context, task);
    }

    /// `prev` left its CPU and is still runnable: who else should make room for it?
    fn put_prev(&mut self, common: &mut Common, context: &mut Context<'_>, prev: TaskId) {
        self.find_cpu(common, context, prev);
    }

    /// Called without the lock after [`Pick::Retry`].
    fn unlocked(&mut self, common: &mut Common, context: &mut Context<'_>) {
        common.recalculate(context);
    }

    /// The nice value, policy or affinity of `task` changed: it may belong elsewhere in its queue.
    fn refile(&mut self, _: &mut Common, _: &mut Context<'_>, _: TaskId) {}

    /// `cpu` has gone offline: whoever waits in its queue must leave it.
    fn vacate(&mut self, _: &mut Common, _: &mut Context<'_>, _cpu: CpuId) {}

    /// A tick was charged to `running`.
    fn ticked(&mut self, _: &Common, _: &Context<'_>, _running: Option<TaskId>) {}
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

    /// Parameters of `task` changed: whoever may not have its CPU any more lets go of it.
    fn changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (on_cpu, waits) = (view.on_cpu(), view.is_runnable());
        match on_cpu.filter(|cpu| !view.may_run_on(*cpu)) {
            Some(cpu) => context.reschedule(cpu),
            None => self.queues.refile(&mut self.common, context, task),
        }
        if waits && on_cpu.is_none() {
            self.queues.find_cpu(&mut self.common, context, task);
        }
    }
}

impl<Q: Queues> Scheduler for Family<Q> {
    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.queues.vacate(&mut self.common, context, cpu);
    }

    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.queues.lock_for(cpu)
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.common.fork(context, parent, child);
        self.queues.admit(child);
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        self.common.joins(context, task);
        self.queues.enqueue(&mut self.common, context, task, cpu);
    }

    /// A task whose waker is about to sleep preempts nobody.
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, why: Why) {
        if !matches!(why, Why::Wakeup(wakeup) if wakeup.sync) {
            self.queues.find_cpu(&mut self.common, context, task);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.common.leaves(context);
        self.queues.dequeue(&mut self.common, context, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.common.begin(context, prev);
        let pick = self.queues.pick_next(&mut self.common, context, prev);
        match pick {
            Pick::Task(next) => self.common.picked(context, prev, Some(next)),
            Pick::Idle => self.common.picked(context, prev, None),
            Pick::Retry => {}
        }
        pick
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.queues.unlocked(&mut self.common, context);
    }

    fn switched(&mut self, context: &mut Context<'_>, prev: Option<TaskId>, next: Option<TaskId>) {
        self.common.switched(context, prev, next);
    }

    /// `__schedule_tail()`: another CPU might want `prev`, unless it gave way.
    fn wants_put_prev(&self, prev: TaskId) -> bool {
        !self.common.slices.has_yielded(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.queues.put_prev(&mut self.common, context, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.common.tick(context, running);
        self.queues.ticked(&self.common, context, running);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.common.yields(context, task)
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
