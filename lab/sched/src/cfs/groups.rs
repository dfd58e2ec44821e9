//! Group scheduling: a group is an entity with a weight on each CPU, and has a tree of its own
//! there.
//!
//! The weight is not divided among the CPUs: a group whose tasks are on two CPUs has its full
//! weight on each. The tasks in no group are a group, too (`init_task_group`).

use warmq_kernel::{Context, GroupId};
use warmq_units::{Bytes, CpuId, TaskId};

use crate::fair::tree::EntityId;

use super::state::{QueueId, State, What};
use super::weights::weight_of_group;

impl State {
    /// The queue on `cpu` in which `task` belongs.
    pub(super) fn queue_of_task(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> QueueId {
        if !self.tunables.groups {
            return self.cpu(cpu).root;
        }
        let view = context.task(task);
        let group = match view.is_kernel_thread() {
            true => GroupId::ROOT,
            false => view.group(),
        };
        let group = self.group_in_force(context, group);
        self.queues_of_group(context, group)[cpu.index()]
    }

    /// The group in which the tasks of `group` count: the ancestor on the last level that there is.
    /// Sessions are no groups yet (autogroups came with 2.6.38).
    fn group_in_force(&self, context: &Context<'_>, group: GroupId) -> GroupId {
        let parent = |group: &GroupId| context.group(*group).parent;
        let mut path: Vec<GroupId> = std::iter::successors(Some(group), parent)
            .filter(|group| *group != GroupId::ROOT && !context.group(*group).autogroup)
            .collect();
        path.reverse();
        path.truncate(self.tunables.group_levels as usize);
        path.pop().unwrap_or(GroupId::ROOT)
    }

    fn queues_known(&self, group: GroupId) -> Option<&Vec<QueueId>> {
        let mut known = self.groups.iter();
        known.find(|queues| self.queues[queues[0]].group == Some(group))
    }

    /// The queues of `group`, one for each CPU; makes them, and those of the groups around it, when
    /// the first task comes (`sched_create_group()`).
    fn queues_of_group(&mut self, context: &mut Context<'_>, group: GroupId) -> Vec<QueueId> {
        if let Some(known) = self.queues_known(group) {
            return known.clone();
        }
        let around = context.group(group).parent;
        let around = around.map(|parent| self.group_in_force(context, parent));
        let above: Vec<QueueId> = match around.filter(|around| *around != GroupId::ROOT) {
            Some(around) => self.queues_of_group(context, around),
            None => self.cpus.iter().map(|cpu| cpu.root).collect(),
        };
        let weight = self.weight_in_force(context, group);
        let queues: Vec<QueueId> = above
            .into_iter()
            .map(|above| self.add_group(context, group, above, weight))
            .collect();
        self.groups.insert(0, queues.clone());
        queues
    }

    fn weight_in_force(&self, context: &Context<'_>, group: GroupId) -> u64 {
        match group {
            GroupId::ROOT => self.tunables.root_weight,
            group => weight_of_group(context.group(group)),
        }
    }

    /// The entity of `group` in the queue `above`, and its own queue.
    fn add_group(
        &mut self,
        context: &mut Context<'_>,
        group: GroupId,
        above: QueueId,
        weight: u64,
    ) -> QueueId {
        let own = self.queues.len();
        let entity = self.add_entity(context, What::Group(own), above);
        self.entities[entity].weight = weight;
        let (cpu, head) = (self.queues[above].cpu, context.data(Bytes(self.line)));
        self.add_queue(cpu, Some(group), Some(entity), head)
    }

    /// The queues of `cpu` that hold tasks, the newest group first (`for_each_leaf_cfs_rq()`).
    pub(super) fn leaves(&self, cpu: CpuId) -> Vec<QueueId> {
        match self.tunables.groups {
            true => self
                .groups
                .iter()
                .map(|queues| queues[cpu.index()])
                .collect(),
            false => vec![self.cpu(cpu).root],
        }
    }

    /// The queue of the same group on another CPU (`cpu_cfs_rq()`).
    pub(super) fn counterpart(&self, queue: QueueId, cpu: CpuId) -> QueueId {
        let known = self.queues[queue]
            .group
            .and_then(|group| self.queues_known(group));
        known.map_or(self.cpu(cpu).root, |queues| queues[cpu.index()])
    }

    /// The weight of `group` has changed (`sched_group_set_shares()`).
    pub(super) fn reweigh_group(&mut self, context: &mut Context<'_>, group: GroupId) {
        let Some(queues) = self.queues_known(group).cloned() else {
            return;
        };
        let weight = self.weight_in_force(context, group);
        let owners: Vec<EntityId> = queues
            .into_iter()
            .filter_map(|queue| self.queues[queue].owner)
            .collect();
        for entity in owners {
            let cpu = self.queues[self.entities[entity].queue].cpu;
            self.update_clock(context, cpu);
            let queued = self.entities[entity].queued;
            if queued {
                self.dequeue_entity(context, entity);
            }
            self.entities[entity].weight = weight;
            if queued {
                self.enqueue_entity(context, entity, false);
            }
        }
    }
}
