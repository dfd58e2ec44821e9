//! Moving tasks between CPUs, and changes of what a task or a CPU may do.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::state::{Class, State, class_of};
use super::weights::weight_of;

impl State {
    /// A task that is in no queue belongs on `cpu` from now on (`set_task_cpu()`). Its vruntime
    /// keeps its distance to the min_vruntime of its queue.
    pub(super) fn set_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let state = &mut self.tasks[task.index()];
        state.cpu = cpu;
        let entity = state.entity;
        let from = self.entities[entity].queue;
        let to = self.counterpart(from, cpu);
        let moved = self.queues[to].min_vruntime - self.queues[from].min_vruntime;
        let entity = &mut self.entities[entity];
        entity.vruntime += moved;
        entity.queue = to;
    }

    /// Moves a task that waits to the queue of `to` (`pull_task()`, `__migrate_task()`).
    pub(super) fn migrate(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        self.deactivate(context, task);
        self.arrive(context, task, to);
    }

    /// A runnable task that is in no queue joins that of `to`.
    pub(super) fn arrive(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        self.update_clock(context, to);
        self.set_cpu(task, to);
        context.migrated(task, to);
        self.activate(context, task, false);
        self.check_preempt(context, to, task);
    }

    /// The affinity of `task` has changed, or its CPU goes offline (`set_cpus_allowed()`,
    /// `migrate_live_tasks()`).
    pub(super) fn cpumask_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let (cpu, queued) = {
            let state = &self.tasks[task.index()];
            (state.cpu, state.queued)
        };
        if context.task(task).may_run_on(cpu) {
            return;
        }
        let to = context.allowed_near(task, cpu);
        if self.cpu(cpu).current == Some(task) {
            context.reschedule(cpu);
        } else if to == cpu {
            // It may run nowhere: it waits until a CPU is back.
        } else if queued {
            self.update_clock(context, cpu);
            self.migrate(context, task, to);
        } else {
            self.set_cpu(task, to);
        }
    }

    /// `cpu` has gone offline: whoever waits there moves.
    pub(super) fn vacate(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let here = |task: &TaskId| {
            let state = &self.tasks[task.index()];
            state.cpu == cpu && state.queued
        };
        let all = (0..self.tasks.len() as u32).map(TaskId);
        let waiting: Vec<TaskId> = all.filter(here).collect();
        for task in waiting {
            self.cpumask_changed(context, task);
        }
    }

    /// The nice value, policy or group of `task` has changed.
    pub(super) fn parameters_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (class, priority) = class_of(view);
        let weight = weight_of(view);
        let cpu = self.tasks[task.index()].cpu;
        let queue = self.queue_of_task(context, task, cpu);
        let state = &self.tasks[task.index()];
        let entity = &self.entities[state.entity];
        let moves = state.class != class || entity.queue != queue;
        if !moves && state.priority == priority && entity.weight == weight {
            return;
        }
        let (before, queued) = (state.priority, state.queued);
        self.update_clock(context, cpu);
        let runs = self.cpu(cpu).current == Some(task);
        if queued {
            self.deactivate(context, task);
        }
        if runs && moves {
            self.put_prev(context, task);
        }
        let entity = self.entity_of(task);
        self.entities[entity].weight = weight;
        self.entities[entity].queue = queue;
        let state = &mut self.tasks[task.index()];
        (state.class, state.priority) = (class, priority);
        if runs && moves {
            self.set_current(context, task);
        }
        if queued {
            self.activate(context, task, false);
            self.after_change(context, task, (runs, before));
        }
    }

    /// Whether the CPU of a queued task picks again after its priority was `before`
    /// (`set_user_nice()`, `sched_setscheduler()`).
    fn after_change(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        (runs, before): (bool, i32),
    ) {
        let state = &self.tasks[task.index()];
        let (cpu, now) = (state.cpu, state.priority);
        let reniced = state.class == Class::Fair && now < before;
        if runs && now > before || !runs && reniced {
            context.reschedule(cpu);
        } else if !runs {
            self.check_preempt(context, cpu, task);
        }
    }
}
