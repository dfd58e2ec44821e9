//! Picking the next task, and handing on tasks that must leave.

use warmq_kernel::{Context, Pick};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::state::{QueueId, State, What};

impl State {
    /// `schedule()`: the running task goes back into the tree, and the leftmost one runs. Real-time
    /// tasks come first.
    pub(super) fn pick(&mut self, context: &mut Context<'_>) -> Pick {
        context.compute(self.pick_cost);
        let here = context.cpu();
        self.update_clock(context, here);
        if let Some(current) = self.cpu(here).current {
            self.send_away(context, current);
            self.put_prev(context, current);
            self.cpu_mut(here).current = None;
        }
        self.cpu_mut(here).push_to = None;
        let real_time: Vec<TaskId> = self.cpu(here).realtime.iter().collect();
        let root = self.cpu(here).root;
        let mut real_time = real_time.into_iter();
        let first = real_time.find(|task| self.is_free(context, *task));
        let Some(next) = first.or_else(|| self.leftmost(context, root)) else {
            return Pick::Idle;
        };
        self.cpu_mut(here).current = Some(next);
        self.set_current(context, next);
        Pick::Task(next)
    }

    /// If the running task may not stay here, or is to be pushed elsewhere, takes it out of the
    /// queue; when this CPU has switched away from it, it joins another.
    fn send_away(&mut self, context: &mut Context<'_>, current: TaskId) {
        let here = context.cpu();
        let view = context.task(current);
        if !self.tasks[current.index()].queued {
            return;
        }
        let push = self.cpu(here).push_to.filter(|to| view.may_run_on(*to));
        let to = match view.may_run_on(here) {
            true => push,
            false => Some(context.allowed_near(current, here)),
        };
        let Some(to) = to.filter(|to| *to != here) else {
            return;
        };
        self.deactivate(context, current);
        self.tasks[current.index()].displaced = true;
        self.cpu_mut(here).leaving = Some((current, to));
    }

    /// Whether a queued task can run here now. While another CPU still switches away from it, it
    /// cannot; that CPU notifies this one when it is through.
    pub(super) fn is_free(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let (view, here) = (context.task(task), context.cpu());
        let elsewhere = view.on_cpu().is_some_and(|there| there != here);
        if elsewhere {
            self.tasks[task.index()].displaced = true;
        }
        !elsewhere && view.may_run_on(here)
    }

    /// The first task of a tree that can run here; through a group, the first of its tree
    /// (`pick_next_task_fair()`).
    fn leftmost(&mut self, context: &mut Context<'_>, queue: QueueId) -> Option<TaskId> {
        context.touch(self.queues[queue].line, Access::Read);
        let mut left = 0;
        while let Some(entity) = self.queues[queue].tree.nth(left) {
            left += 1;
            context.touch(self.entities[entity].node, Access::Read);
            let found = match self.entities[entity].what {
                What::Task(task) => Some(task).filter(|task| self.is_free(context, *task)),
                What::Group(own) => self.leftmost(context, own),
            };
            match found {
                Some(found) if matches!(self.entities[entity].what, What::Task(_)) => {
                    return Some(self.successor(context, queue, entity).unwrap_or(found));
                }
                Some(found) => return Some(found),
                None => {}
            }
        }
        None
    }

    /// This CPU has switched away from `prev`, which is still runnable.
    pub(super) fn handed_over(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let here = context.cpu();
        self.tasks[prev.index()].displaced = false;
        let leaving = self.cpu_mut(here).leaving.take();
        if let Some((task, to)) = leaving {
            self.tasks[task.index()].displaced = false;
            let to = context.allowed_near(task, to);
            return self.arrive(context, task, to);
        }
        let state = &self.tasks[prev.index()];
        let (cpu, queued) = (state.cpu, state.queued);
        if queued && cpu != here {
            self.update_clock(context, cpu);
            self.check_preempt(context, cpu, prev);
        }
    }

    /// Where the task goes that `cpu` switches away from and that does not come back.
    pub(super) fn leaves_for(&self, cpu: CpuId) -> Option<CpuId> {
        self.cpu(cpu).leaving.map(|(_, to)| to)
    }
}
