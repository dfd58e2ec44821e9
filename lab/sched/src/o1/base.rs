//! Under the layer of affinity.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::{O1, STATISTICS};
use crate::affinity::{Base, Steering};

impl Base for O1 {
    const STATISTICS: u8 = STATISTICS.len() as u8;
    const ARRAYS: bool = true;

    fn steering(&mut self) -> &mut Steering {
        &mut self.steering
    }

    fn queue_of(&self, task: TaskId) -> CpuId {
        self.task(task).cpu
    }

    fn runnable(&self, cpu: CpuId) -> u32 {
        self.queue(cpu).running() as u32
    }

    fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let queue = self.queue(cpu);
        let arrays = [queue.expired(), queue.active].into_iter();
        let tasks = arrays.flat_map(|array| queue.arrays[array].iter_from_tails());
        tasks.collect()
    }

    fn move_to(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        O1::move_to(self, context, task, to);
        context.migrated(task, to);
    }

    fn send_away(&mut self, task: TaskId, here: CpuId, to: CpuId) {
        let queue = self.queue_mut(here);
        queue.leaving = Some((task, to));
        queue.push_to = None;
    }
}

impl O1 {
    /// This CPU has switched away from `task`, which leaves for the queue of `to`.
    pub(super) fn hand_over(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let here = context.cpu();
        let stays = self.task(task).cpu != here || !context.task(task).may_run_on(to);
        if stays || self.task(task).array.is_none() {
            // It must be picked again here, or is gone already.
            return context.reschedule(here);
        }
        Base::move_to(self, context, task, to);
    }

    /// The task to run when `best` is the first of the queue of `cpu`: the first of the group that
    /// is in succession there, where that may go before it. (A kernel would keep the tasks of a
    /// group in a list in each list; no visit costs anything here but the one that finds.)
    pub(super) fn successor(&self, context: &mut Context<'_>, cpu: CpuId, best: TaskId) -> TaskId {
        let (steering, first) = (&self.steering, self.task(best));
        if !steering.favours(cpu) || steering.prefers(cpu, best) || first.is_real_time() {
            return best;
        }
        let may_pass = |task: &TaskId| {
            let state = self.task(*task);
            let equal = steering.goes_across() || state.priority == first.priority;
            equal && state.array == first.array && self.can_run(context, cpu, *task)
        };
        let mut tasks = self.queue(cpu).iter();
        let found = tasks.find(|task| steering.prefers(cpu, *task) && may_pass(task));
        if let Some(found) = found {
            context.touch(self.task(found).list_line(), Access::Read);
        }
        found.unwrap_or(best)
    }
}
