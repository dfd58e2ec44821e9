//! Under the layer of affinity.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::affinity::{Base, Steering};
use crate::fair::tree::EntityId;

use super::Cfs;
use super::state::{QueueId, State, What};
use super::weights::delta_fair;

impl Base for Cfs {
    const STATISTICS: u8 = 0;
    const ARRAYS: bool = false;

    fn steering(&mut self) -> &mut Steering {
        &mut self.state.steering
    }

    fn queue_of(&self, task: TaskId) -> CpuId {
        self.state.tasks[task.index()].cpu
    }

    fn runnable(&self, cpu: CpuId) -> u32 {
        self.state.cpu(cpu).running as u32
    }

    fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let state = &self.state;
        let task = |entity: EntityId| match state.entities[entity].what {
            What::Task(task) => Some(task),
            What::Group(_) => None,
        };
        let queues = state.leaves(cpu).into_iter();
        let fair = queues.flat_map(|queue| state.queues[queue].tree.iter().filter_map(task));
        let real_time = state.cpu(cpu).realtime.to_balance();
        real_time.into_iter().chain(fair).collect()
    }

    fn move_to(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let from = self.queue_of(task);
        self.state.update_clock(context, from);
        self.state.update_clock(context, to);
        self.state.migrate(context, task, to);
    }

    fn send_away(&mut self, _: TaskId, here: CpuId, to: CpuId) {
        self.state.cpu_mut(here).push_to = Some(to);
    }
}

impl State {
    /// Who runs instead of the task of `first`, the leftmost of `queue` that can: the leftmost of
    /// the group that is in succession, if it is not behind by more than a wakeup granularity, as
    /// the `next` buddy of later kernels. Nobody goes before tasks of other cgroups.
    pub(super) fn successor(
        &mut self,
        context: &mut Context<'_>,
        queue: QueueId,
        first: EntityId,
    ) -> Option<TaskId> {
        let here = context.cpu();
        let task = |state: &State, entity: EntityId| match state.entities[entity].what {
            What::Task(task) if state.steering.prefers(here, task) => Some(task),
            _ => None,
        };
        if !self.steering.favours(here) || task(self, first).is_some() {
            return None;
        }
        let leads = &self.entities[first];
        let granularity = delta_fair(self.tunables.wakeup_granularity, leads.weight);
        let last = leads.vruntime.saturating_add(granularity);
        let near = self.queues[queue].tree.iter();
        let near = near.take_while(|entity| self.entities[*entity].vruntime <= last);
        let of_group = near.filter_map(|entity| Some((entity, task(self, entity)?)));
        for (entity, task) in of_group.collect::<Vec<_>>() {
            context.touch(self.entities[entity].node, Access::Read);
            if self.is_free(context, task) {
                return Some(task);
            }
        }
        None
    }
}
