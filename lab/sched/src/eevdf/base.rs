//! Under the layer of affinity.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::affinity::{Base, Steering};
use crate::fair::tree::EntityId;

use super::Eevdf;
use super::queueing::Leaving;
use super::state::{QueueId, State, What};

impl Base for Eevdf {
    const STATISTICS: u8 = 0;
    const ARRAYS: bool = false;

    fn steering(&mut self) -> &mut Steering {
        &mut self.state.steering
    }

    fn queue_of(&self, task: TaskId) -> CpuId {
        self.state.task(task).cpu
    }

    fn runnable(&self, cpu: CpuId) -> u32 {
        self.state.running(cpu) as u32
    }

    fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let urgent = self.state.cpu(cpu).urgent.to_balance();
        urgent.into_iter().chain(self.state.waiting(cpu)).collect()
    }

    fn move_to(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let state = &mut self.state;
        state.sync(context, state.task(task).cpu);
        state.sync(context, to);
        state.deactivate(task, Leaving::Moves);
        state.arrive(context, task, to);
        state.settle(context);
    }

    fn send_away(&mut self, _: TaskId, here: CpuId, to: CpuId) {
        self.state.cpu_mut(here).push_to = Some(to);
    }
}

impl State {
    /// Who runs instead of `best`: of the tasks of `queue` that are of the group in succession, and
    /// eligible, the one with the earliest deadline. The running task keeps the CPU where it would,
    /// and nobody goes before tasks of other cgroups.
    pub(super) fn successor(&mut self, queue: QueueId, best: EntityId) -> Option<EntityId> {
        let there = &self.queues[queue];
        let cpu = there.cpu;
        let prefers = |entity: EntityId| match self.entities[entity].what {
            What::Task(task) => self.steering.prefers(cpu, task),
            What::Group(_) => false,
        };
        let is_task = matches!(self.entities[best].what, What::Task(_));
        let keeps = there.current == Some(best) || self.entities[best].delayed;
        if !self.steering.favours(cpu) || keeps || !is_task || prefers(best) {
            return None;
        }
        let ready = |entity: &EntityId| {
            prefers(*entity) && !self.entities[*entity].delayed && self.is_eligible(*entity)
        };
        let found = there.tree.iter().find(ready)?;
        self.effects.read(self.entities[found].node);
        Some(found)
    }
}
