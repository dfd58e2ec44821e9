//! Tasks that begin, move between CPUs, and change in what they are.

use warmq_classes::Overload;
use warmq_kernel::{Context, GroupId, View};
use warmq_units::{Bytes, CpuId, Duration, TaskId};

use crate::fair::tree::EntityId;

use super::fits::Clamp;
use super::pelt::Average;
use super::queueing::Leaving;
use super::state::{Contribution, Entity, GroupState, Queue, QueueId, State, TaskState, What};
use super::wakeup::MOVED;
use super::weights::{down, shares_of, weight_of};

impl TaskState {
    /// It becomes what its policy makes it.
    fn stand(&mut self, view: View<'_>) {
        self.class.set_policy(view.policy());
        let uclamp = view.uclamp();
        self.clamp = Clamp {
            least: uclamp.min.into(),
            most: uclamp.max.into(),
        };
    }
}

impl State {
    /// Makes room for `child`, which was just created. Forks on two CPUs may be reported in another
    /// order than that of the task numbers.
    pub(super) fn admit(&mut self, context: &mut Context<'_>, child: TaskId) {
        let root = self.cpus[0].root;
        while self.tasks.len() <= child.index() {
            let task = TaskId(self.tasks.len() as u32);
            let entity = self.add_entity(context, What::Task(task), root);
            self.tasks.push(TaskState::new(entity));
        }
        let view = context.task(child);
        let (cpu, weight, slice) = (view.last_cpu(), weight_of(view), self.wanted_slice(view));
        let queue = self.queue_of_task(context, child, cpu);
        let now = self.load_clock(cpu);
        let entity = self.entity_of(child);
        let state = self.task_mut(child);
        *state = TaskState {
            cpu,
            recent_cpu: cpu,
            ..TaskState::new(entity)
        };
        state.stand(context.task(child));
        let state = &mut self.entities[entity];
        (state.queue, state.weight) = (queue, weight);
        state.load = Average::full(now, down(weight), 0);
        state.custom_slice = slice.is_some();
        state.slice = slice.map_or(self.rules.base_slice, |slice| slice.as_ns() as i64);
    }

    /// The slice that a task asks for, where it may.
    fn wanted_slice(&self, view: View<'_>) -> Option<Duration> {
        view.slice().filter(|_| self.rules.custom_slices)
    }

    fn add_entity(&mut self, context: &mut Context<'_>, what: What, queue: QueueId) -> EntityId {
        let line = self.line;
        let at = context.data(Bytes(2 * line));
        let slice = self.rules.base_slice;
        self.entities
            .push(Entity::new(what, queue, slice, [at, at + line]));
        self.entities.len() - 1
    }

    /// The queue on `cpu` in which `task` belongs.
    fn queue_of_task(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) -> QueueId {
        let view = context.task(task);
        let group = match view.is_kernel_thread() || !self.rules.groups {
            true => GroupId::ROOT,
            false => view.group(),
        };
        match self.group_in_force(context, group) {
            Some(group) => self.groups[group].queues[cpu.index()],
            None => self.cpu(cpu).root,
        }
    }

    /// The number of the group in which the tasks of `id` count; the root has none. A session is
    /// none without autogroups.
    fn group_in_force(&mut self, context: &mut Context<'_>, id: GroupId) -> Option<usize> {
        if id == GroupId::ROOT {
            return None;
        }
        let group = *context.group(id);
        let around = group.parent.unwrap_or(GroupId::ROOT);
        if group.autogroup && !self.rules.autogroup {
            return self.group_in_force(context, around);
        }
        if let Some(known) = self.groups.iter().position(|known| known.id == id) {
            return Some(known);
        }
        let around = self.group_in_force(context, around);
        Some(self.add_group(context, id, around))
    }

    /// Makes the queues of a group, and the entities that stand for them in those `around` it
    /// (`alloc_fair_sched_group()`).
    fn add_group(
        &mut self,
        context: &mut Context<'_>,
        id: GroupId,
        around: Option<usize>,
    ) -> usize {
        let number = self.groups.len();
        let above: Vec<QueueId> = match around {
            Some(around) => self.groups[around].queues.clone(),
            None => self.cpus.iter().map(|cpu| cpu.root).collect(),
        };
        let mut queues = Vec::new();
        for above in above {
            let own = self.queues.len();
            let entity = self.add_entity(context, What::Group(own), above);
            self.entities[entity].attached = true;
            let (cpu, depth) = (self.queues[above].cpu, self.queues[above].depth + 1);
            self.queues.push(Queue {
                group: Some(number),
                owner: Some(entity),
                depth,
                ..Queue::new(cpu, context.data(Bytes(self.line)))
            });
            queues.push(own);
        }
        self.groups.push(GroupState {
            id,
            shares: shares_of(context.group(id)),
            idle: context.group(id).idle,
            total: Contribution::default(),
            queues,
            line: context.data(Bytes(self.line)),
        });
        number
    }

    /// The queue of the same group on another CPU.
    pub(super) fn counterpart(&self, queue: QueueId, cpu: CpuId) -> QueueId {
        match self.queues[queue].group {
            Some(group) => self.groups[group].queues[cpu.index()],
            None => self.cpu(cpu).root,
        }
    }

    /// A task that is in no queue belongs on `cpu` from now on (`set_task_cpu()`).
    pub(super) fn set_cpu(&mut self, task: TaskId, cpu: CpuId) {
        if self.task(task).cpu == cpu {
            return;
        }
        self.finish_sleep(task);
        let entity = self.entity_of(task);
        self.detach_load(entity);
        self.entities[entity].queue = self.counterpart(self.entities[entity].queue, cpu);
        self.task_mut(task).cpu = cpu;
    }

    /// A runnable task that is in no queue joins that of `to`.
    pub(super) fn arrive(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        self.set_cpu(task, to);
        context.migrated(task, to);
        self.activate(task, false);
        self.check_preempt(to, task, MOVED, context.must_reschedule(to));
    }

    /// The affinity of `task` has changed, or its CPU goes offline (`set_cpus_allowed()`,
    /// `balance_push()`).
    pub(super) fn cpumask_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.task(task);
        let (cpu, runnable) = (state.cpu, state.runnable);
        if context.task(task).may_run_on(cpu) {
            return;
        }
        let to = context.allowed_near(task, cpu);
        if self.cpu(cpu).current == Some(task) {
            self.effects.request(cpu, super::effects::Urgency::Now);
        } else if to == cpu {
            // It may run nowhere: it waits until a CPU is back.
        } else if runnable && context.task(task).on_cpu().is_some() {
            // Its CPU is switching away from it: it moves when that is done (`put_prev()`).
        } else if runnable {
            self.sync(context, to);
            self.deactivate(task, Leaving::Moves);
            self.arrive(context, task, to);
        } else {
            self.set_cpu(task, to);
        }
    }

    /// `cpu` has gone offline: whoever waits there moves.
    pub(super) fn vacate(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let all = (0..self.tasks.len() as u32).map(TaskId);
        let here = |task: &TaskId| {
            let state = self.task(*task);
            state.cpu == cpu && state.runnable
        };
        let waiting: Vec<TaskId> = all.filter(here).collect();
        for task in waiting {
            self.cpumask_changed(context, task);
        }
    }

    /// The nice value, policy, slice or group of `task` has changed: it leaves its queue, and joins
    /// the one where it belongs (`sched_change_begin()`, `sched_change_end()`).
    pub(super) fn parameters_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (weight, slice) = (weight_of(view), self.wanted_slice(view));
        let cpu = self.task(task).cpu;
        let queue = self.queue_of_task(context, task, cpu);
        let (runnable, before) = (self.task(task).runnable, self.task(task).class.rank());
        let entity = self.entity_of(task);
        let runs = self.cpu(cpu).current == Some(task);
        let state = &self.entities[entity];
        // sched_move_task(), prio_changed_fair().
        let asks = state.queue != queue || weight < state.weight;
        if !runnable {
            self.finish_sleep(task);
        } else {
            self.deactivate(task, Leaving::Changes);
        }
        if runs {
            self.put_prev(task, None);
        }
        if self.entities[entity].queue != queue {
            self.detach_load(entity);
            self.update_loads_above(entity);
            self.entities[entity].queue = queue;
        }
        self.entities[entity].custom_slice = slice.is_some();
        let slice = slice.map_or(self.rules.base_slice, |slice| slice.as_ns() as i64);
        self.set_slice(entity, slice);
        self.reweigh(entity, weight);
        self.task_mut(task).stand(context.task(task));
        self.deadlines.push(task);
        if runnable {
            self.activate(task, false);
        }
        if runs {
            self.set_current(task, None);
        }
        let lost = asks || self.task(task).class.rank() > before || !self.is_queued(task);
        if runnable && runs && lost {
            self.pull_urgent(context, cpu, before);
            self.effects.request(cpu, super::effects::Urgency::Now);
        } else if runnable && !runs {
            self.check_preempt(cpu, task, MOVED, context.must_reschedule(cpu));
        }
    }

    /// The weight of a group has changed.
    pub(super) fn group_changed(&mut self, context: &mut Context<'_>, id: GroupId) {
        let Some(group) = self.groups.iter().position(|group| group.id == id) else {
            return;
        };
        for cpu in 0..self.cpus.len() as u16 {
            self.sync(context, CpuId(cpu));
        }
        self.groups[group].idle = context.group(id).idle;
        self.set_shares(group, shares_of(context.group(id)));
    }
}
