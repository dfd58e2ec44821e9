//! Tasks that must leave their CPU: their affinity has changed, the CPU has gone offline, or
//! balancing pushes the running task away (`set_cpus_allowed()`, `migration_call()`,
//! `active_load_balance()`).

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::balance::Movable;
use super::release::Release;

impl O1 {
    /// Moves `task` off a CPU that its affinity forbids. One that runs there leaves it first:
    /// `put_prev` calls again.
    pub(super) fn leave_forbidden(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let from = self.task(task).cpu;
        let to = context.allowed_near(task, from);
        if let Some(there) = view.on_cpu()
            && !view.may_run_on(there)
        {
            context.reschedule(there);
        } else if to != from {
            self.move_to(context, task, to);
        } else if self.task(task).array.is_some() && from != context.cpu() {
            // It was woken for another CPU while this one still switched away from it.
            self.preempt(context, task);
        }
    }

    /// Moves `task`, which does not run, to the queue of `to`, into the same array there as here,
    /// and preempts what is worse there (`pull_task()`). In 2.6.4 it goes into the active one.
    pub(super) fn move_to(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let from = self.task(task).cpu;
        let array = self.remove(context, task);
        self.task_mut(task).cpu = to;
        let Some(array) = array else { return };
        let active = array == self.queue(from).active || self.rules.release == Release::V2_6_4;
        let array = match active {
            true => self.queue(to).active,
            false => self.queue(to).expired(),
        };
        self.add_last(context, task, array);
        self.preempt(context, task);
    }

    /// Moves the tasks that wait for `cpu`, which has gone offline.
    pub(super) fn vacate(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let waiting: Vec<TaskId> = self.queue(cpu).iter().collect();
        for task in waiting {
            self.leave_forbidden(context, task);
        }
    }

    /// `prev`, if it is to be pushed to another CPU and can go there.
    pub(super) fn pushed(&self, context: &Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
        let to = self.queue(context.cpu()).push_to?;
        prev.filter(|prev| {
            let view = context.task(*prev);
            view.is_runnable() && view.may_run_on(to)
        })
    }

    /// The task that was to be pushed has left the CPU: one task moves, usually that one.
    pub(super) fn push(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        let Some(to) = self.queue_mut(here).push_to.take() else {
            return;
        };
        let movable = Movable {
            from: here,
            to,
            cache_hot: true,
        };
        self.move_tasks(context, movable, 1);
        // A task that stays may be better than the one that runs in its place.
        let first = self.queue(here).iter().next();
        if let Some(first) = first.filter(|first| self.preempts(context, *first)) {
            self.preempt(context, first);
        }
    }
}
