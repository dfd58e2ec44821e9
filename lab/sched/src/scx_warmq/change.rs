//! Tasks whose nice value, cgroup or affinity changes.
//!
//! The kernel takes a task that runs or waits out of its queue for that, and puts it back. One that
//! runs stays on its CPU; if it may no longer run there, the migration thread of that CPU moves it.

use warmq_kernel::{Context, GroupId, Policy, View};
use warmq_units::{CpuId, CpuSet, TaskId};

use super::entity::Coming;
use super::state::{State, ns};

/// What the kernel said last of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    nice: i8,
    policy: Policy,
    group: GroupId,
    allowed: Option<CpuSet>,
}

impl Known {
    pub(super) fn of(view: View<'_>) -> Known {
        Known {
            nice: view.nice(),
            policy: view.policy(),
            group: view.group(),
            allowed: view.allowed().cloned(),
        }
    }

    fn allows(&self, cpu: CpuId) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(cpu))
    }
}

impl State {
    /// Takes note of what the kernel says of a task now. Returns what it said before.
    fn learn(&mut self, view: View<'_>) -> Option<Known> {
        self.tasks[view.id().index()].known.replace(Known::of(view))
    }

    /// The nice value, the policy or the cgroup of a task may have changed.
    pub(super) fn weight_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let before = self.learn(context.task(task));
        let state = &self.tasks[task.index()];
        if before == state.known {
            return;
        }
        let came = before.is_none_or(|before| before.group != context.task(task).group());
        let cpu = context.task(task).last_cpu();
        self.regroup(context, task, cpu);
        self.changed(context, task);
        // The kernel asks a running task that comes to another cgroup to reschedule: it goes on
        // with its slice.
        let state = &self.tasks[task.index()];
        if let Some(cpu) = state.on
            && came
            && state.slice_left(ns(context)) == 0
        {
            context.reschedule(cpu);
        }
    }

    /// The affinity of a task may have changed, or the CPU where it waits goes offline.
    pub(super) fn affinity_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let before = self.learn(view);
        let state = &mut self.tasks[task.index()];
        let forbidden = !view.may_run_on(state.on.unwrap_or(state.queued_at));
        let same = before.is_some_and(|before| {
            let mut cpus = (0..context.cpus()).map(CpuId);
            cpus.all(|cpu| {
                before.allows(cpu) == state.known.as_ref().is_some_and(|it| it.allows(cpu))
            })
        });
        if same && !forbidden {
            return;
        }
        state.only = self.topology.only_cpu(view);
        state.goes_to = None;
        self.changed(context, task);
        if let Some(cpu) = self.tasks[task.index()].on
            && forbidden
        {
            context.reschedule(cpu);
        }
    }

    fn changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.tasks[task.index()].waits() {
            self.requeue(context, task);
        } else if let Some(cpu) = self.tasks[task.index()].on {
            self.restart(context, task, cpu);
        }
    }

    /// A task that waits has changed: queues it where it belongs now.
    fn requeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let cpu = self.tasks[task.index()].queued_at;
        self.requeue_at(context, task, cpu);
        let view = context.task(task);
        if !view.may_run_on(cpu) {
            let cpu = self.topology.first_cpu(view).unwrap_or(cpu);
            self.requeue_at(context, task, cpu);
        }
    }

    /// Queues a task that waits at `cpu`.
    fn requeue_at(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        self.unqueue(context, task);
        let state = &mut self.tasks[task.index()];
        state.queued_at = cpu;
        let before = state.entity;
        let slept = self.slept(task, ns(context));
        if before.is_none() {
            self.begin_period(task, ns(context));
        }
        let coming = self.coming(context, task);
        self.settle(context, task, cpu, coming);
        self.queue(context, task);
        // Else the kernel is about to queue it elsewhere.
        if !context.task(task).may_run_on(cpu) || self.kick_idle(context, task, cpu) {
            return;
        }
        if before.is_none() {
            return self.preempt(context, task, cpu, slept);
        }
        let entity = self.tasks[task.index()].entity;
        let in_group = entity.is_some_and(|entity| self.group_of_entity(entity).is_some());
        if in_group && before != entity {
            let home = self.cpu_to_queue_at(context, task, cpu);
            self.preempt(context, task, home, self.policy.min_sleep);
        }
    }

    /// A running task has changed: it goes on.
    fn restart(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        self.tasks[task.index()].yields = false;
        if self.is_uncounted(task) && self.is_unmanaged(context, task, cpu) {
            return self.note_uncounted(context, task, cpu);
        }
        // Who was not counted so far is charged at the next tick.
        self.charge(context, task);
        self.count_running(task, -1);
        let coming = self.coming(context, task);
        self.settle(context, task, cpu, coming);
        self.count_running(task, 1);
        let left = self.tasks[task.index()].slice_left(ns(context));
        self.note_deadline(cpu, task, left);
    }

    /// The migration thread of this CPU moves a task that ran here and no longer may. Tasks that
    /// were sent here are queued again, as when a real-time task takes the CPU.
    pub(super) fn migrate(&mut self, context: &mut Context<'_>, task: TaskId) {
        let here = context.cpu();
        self.stop(task);
        if self.tasks[task.index()].slice_left(ns(context)) == 0 {
            // The program is asked to queue it here first.
            self.settle(context, task, here, Coming::Awake);
            self.queue(context, task);
        }
        let sent = self.cpus[here.index()].sent.clone();
        for task in sent {
            self.requeue_at(context, task, here);
        }
        self.unqueue(context, task);
        let to = self.topology.first_cpu(context.task(task));
        self.put_back(context, task, to.unwrap_or(here));
    }
}
