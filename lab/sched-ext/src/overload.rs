//! Real-time and deadline tasks move to where they can run (`push_rt_tasks()`, `pull_rt_task()`,
//! `push_dl_tasks()`, `pull_dl_task()`).

use warmq_classes::{Rank, Waiter, is_picked_next, looks_elsewhere, lowest, pulls, to_pull};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::run_queue::Machine;

impl Machine {
    /// The CPU for one that wakes: the one where it was, unless one runs there that is as good;
    /// then that with the least (`select_task_rq_rt()`).
    pub(crate) fn select_urgent(&self, context: &Context<'_>, task: TaskId) -> CpuId {
        let last = self.allowed_near(context, task, context.task(task).last_cpu());
        let found = match self.is_taken(context, last, self.state.rank(task)) {
            true => self.lowest(context, task, last),
            false => None,
        };
        found.unwrap_or(last)
    }

    /// Whether who runs on `cpu` keeps one of a rank from running.
    fn is_taken(&self, context: &Context<'_>, cpu: CpuId, rank: Rank) -> bool {
        let Some(current) = self.state.runs(cpu) else {
            return false;
        };
        let allowed = context.task(current).allowed();
        let is_bound = allowed.is_some_and(|cpus| cpus.len() == 1);
        looks_elsewhere(rank, self.state.rank_on(cpu), is_bound)
    }

    fn lowest(&self, context: &Context<'_>, task: TaskId, last: CpuId) -> Option<CpuId> {
        let view = context.task(task);
        let cpus = (0..context.cpus()).map(CpuId);
        let usable = cpus.filter(|cpu| view.may_run_on(*cpu) && context.is_online(*cpu));
        let best = usable.map(|cpu| (cpu, self.state.best_urgent(cpu)));
        let node = |cpu: CpuId| self.state.cpu(cpu).node;
        let distance = |cpu: CpuId| match self.state.idle.shares_cache(last, cpu) {
            true => 0,
            false => 1 + usize::from(node(last) != node(cpu)),
        };
        let rank = self.state.rank(task);
        lowest(rank, best, (last, context.cpu()), distance)
    }

    /// Those that wait on `cpu`, the best first, but for those that another CPU still switches away
    /// from.
    fn urgent_waiters(&self, context: &Context<'_>, cpu: CpuId) -> Vec<TaskId> {
        let waits = |task: &TaskId| context.task(*task).on_cpu().is_none();
        let all = self.state.urgent_on(cpu);
        let all = all.filter(|task| self.state.runs(cpu) != Some(*task));
        all.filter(waits).collect()
    }

    /// Those that wait on `cpu` go to CPUs that have something lesser.
    pub(crate) fn push_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        for task in self.urgent_waiters(context, cpu) {
            if is_picked_next(self.state.rank(task), self.state.rank_on(cpu)) {
                return context.reschedule(cpu);
            }
            if let Some(to) = self.lowest(context, task, cpu).filter(|to| *to != cpu) {
                self.put_urgent(context, task, to);
            }
        }
    }

    /// One was queued on `cpu`: it goes elsewhere if it cannot run there (`task_woken_rt()`).
    pub(crate) fn push_woken(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        if self.is_taken(context, cpu, self.state.rank(task)) {
            self.push_urgent(context, cpu);
        }
    }

    /// What `cpu` ran had this rank before it left, or changed: the best that waits elsewhere
    /// comes, if it is better than what is here.
    pub(crate) fn pull_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId, before: Rank) {
        let best = self.state.best_urgent(cpu);
        if !pulls(before, best) || !context.is_online(cpu) {
            return;
        }
        if let Some(task) = self.best_elsewhere(context, cpu, best) {
            self.put_urgent(context, task, cpu);
        }
    }

    fn best_elsewhere(&self, context: &Context<'_>, cpu: CpuId, best: Rank) -> Option<TaskId> {
        let others = (0..context.cpus()).map(CpuId).filter(|other| *other != cpu);
        let waiters = others.flat_map(|from| {
            let waiters = self.urgent_waiters(context, from).into_iter();
            let usable = waiters.filter(|task| context.task(*task).may_run_on(cpu));
            usable.map(move |task| Waiter {
                task,
                rank: self.state.rank(task),
                runs: self.state.rank_on(from),
            })
        });
        to_pull(best, waiters)
    }

    /// Moves one that waits.
    pub(crate) fn put_urgent(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let mut here = self.here(context);
        here.remove_urgent(task);
        here.add_urgent(task, to);
        here.preempt_for(task, to);
    }
}
