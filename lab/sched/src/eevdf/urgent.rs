//! Real-time and deadline tasks move to where they can run (`push_rt_tasks()`, `pull_rt_task()`,
//! `push_dl_tasks()`, `pull_dl_task()`).

use warmq_classes::{Rank, Waiter, is_picked_next, looks_elsewhere, lowest, pulls, to_pull};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::queueing::Leaving;
use super::state::State;

impl State {
    /// The CPU for an urgent task that wakes, which was on `last` (`select_task_rq_rt()`,
    /// `select_task_rq_dl()`).
    pub(super) fn select_urgent(&self, context: &Context<'_>, task: TaskId, last: CpuId) -> CpuId {
        let rank = self.task(task).rank;
        let found = match self.is_taken(context, last, rank) {
            true => self.lowest_for(context, task),
            false => None,
        };
        found.unwrap_or(last)
    }

    /// Whether who runs on `cpu` keeps one of a rank from running.
    fn is_taken(&self, context: &Context<'_>, cpu: CpuId, rank: Rank) -> bool {
        let Some(current) = self.cpu(cpu).current else {
            return false;
        };
        let allowed = context.task(current).allowed();
        let is_bound = allowed.is_some_and(|cpus| cpus.len() == 1);
        looks_elsewhere(rank, self.rank_on(cpu), is_bound)
    }

    /// The rank of who runs on a CPU.
    fn rank_on(&self, cpu: CpuId) -> Rank {
        let current = self.cpu(cpu).current;
        current.map_or(Rank::Other, |task| self.task(task).rank)
    }

    fn lowest_for(&self, context: &Context<'_>, task: TaskId) -> Option<CpuId> {
        let (view, state) = (context.task(task), self.task(task));
        let cpus = (0..context.cpus()).map(CpuId);
        let usable = cpus.filter(|cpu| view.may_run_on(*cpu) && context.is_online(*cpu));
        let best = usable.map(|cpu| (cpu, self.cpu(cpu).urgent.best()));
        let domains = &self.cpu(state.cpu).domains;
        let distance = |cpu: CpuId| {
            let nearest = domains.iter().position(|of| of.span.contains(&cpu));
            nearest.unwrap_or(domains.len())
        };
        lowest(state.rank, best, (state.cpu, context.cpu()), distance)
    }

    /// Urgent tasks that wait on `cpu`, the best first, but for those that are about to: another
    /// CPU still switches away from them.
    fn urgent_waiters(&self, context: &Context<'_>, cpu: CpuId) -> impl Iterator<Item = TaskId> {
        let there = self.cpu(cpu);
        let waits = move |task: &TaskId| {
            there.current != Some(*task) && context.task(*task).on_cpu().is_none()
        };
        there.urgent.iter().filter(waits)
    }

    /// Those that wait on `cpu` go to CPUs that have something lesser (`push_rt_tasks()`,
    /// `push_dl_tasks()`).
    pub(super) fn push_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let waiters: Vec<TaskId> = self.urgent_waiters(context, cpu).collect();
        for task in waiters {
            if is_picked_next(self.task(task).rank, self.rank_on(cpu)) {
                return self.effects.request(cpu, Urgency::Now);
            }
            if let Some(to) = self.lowest_for(context, task).filter(|to| *to != cpu) {
                self.move_urgent(context, task, to);
            }
        }
    }

    /// An urgent task was queued on `cpu`: it goes elsewhere if it cannot run there
    /// (`task_woken_rt()`, `task_woken_dl()`).
    pub(super) fn push_woken(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let state = self.task(task);
        if self.is_queued(task) && self.is_taken(context, cpu, state.rank) {
            self.push_urgent(context, cpu);
        }
    }

    /// The task of `cpu` had this rank before it left, or changed: the best urgent one that waits
    /// elsewhere comes, if it is better than what is here (`pull_rt_task()`).
    pub(super) fn pull_urgent(&mut self, context: &mut Context<'_>, cpu: CpuId, before: Rank) {
        let best = self.cpu(cpu).urgent.best();
        if !pulls(before, best) || !context.is_online(cpu) {
            return;
        }
        if let Some(task) = self.best_elsewhere(context, cpu, best) {
            self.move_urgent(context, task, cpu);
        }
    }

    fn best_elsewhere(&self, context: &Context<'_>, cpu: CpuId, best: Rank) -> Option<TaskId> {
        let others = (0..context.cpus()).map(CpuId).filter(|other| *other != cpu);
        let waiters = others.flat_map(|from| {
            let waiters = self.urgent_waiters(context, from);
            let usable = waiters.filter(|task| context.task(*task).may_run_on(cpu));
            usable.map(move |task| Waiter {
                task,
                rank: self.task(task).rank,
                runs: self.rank_on(from),
            })
        });
        to_pull(best, waiters)
    }

    fn move_urgent(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let from = self.task(task).cpu;
        self.sync(context, from);
        self.sync(context, to);
        self.deactivate(task, Leaving::Moves);
        self.end_idling(to);
        self.arrive(context, task, to);
    }
}
