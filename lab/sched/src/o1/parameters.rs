//! Changes of nice values and policies (`set_user_nice()`, `sched_setscheduler()`).

use warmq_kernel::Context;
use warmq_units::TaskId;

use super::O1;
use super::rules::static_priority;
use super::task::nice_of;

impl O1 {
    /// The nice value or the policy of `task` may have changed.
    pub(super) fn parameters_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (policy, nice) = (view.policy(), nice_of(view));
        let state = self.task(task);
        if state.policy != policy {
            self.set_policy(context, task);
        } else if state.nice != nice {
            self.set_nice(context, task, nice);
        }
    }

    /// The priority becomes the static one, without the bonus, until it is computed next. A task
    /// that is better now, or runs and is worse, has its CPU pick again.
    fn set_nice(&mut self, context: &mut Context<'_>, task: TaskId, nice: i8) {
        if self.task(task).is_real_time() {
            self.task_mut(task).nice = nice;
            return;
        }
        let array = self.remove(context, task);
        let state = self.task_mut(task);
        let before = state.priority;
        state.nice = nice;
        state.priority = static_priority(nice);
        let (after, cpu) = (state.priority, state.cpu);
        let Some(array) = array else { return };
        self.add_last(context, task, array);
        let runs = context.running_on(cpu) == Some(task);
        if after < before || (after > before && runs) {
            context.reschedule(cpu);
        }
    }

    /// The task leaves its list for the end of one in the active array. `SCHED_BATCH` loses all
    /// `sleep_avg`.
    fn set_policy(&mut self, context: &mut Context<'_>, task: TaskId) {
        let queued = self.remove(context, task).is_some();
        let view = context.task(task);
        let state = &mut self.tasks[task.index()];
        let before = state.priority;
        state.follow(view);
        if state.is_batch() {
            state.sleep_avg = 0;
        }
        state.priority = match state.is_real_time() {
            true => state.effective_priority(&self.rules),
            false => static_priority(state.nice),
        };
        let (after, cpu) = (state.priority, state.cpu);
        if !queued {
            return;
        }
        self.add_active(context, task);
        if context.running_on(cpu) != Some(task) {
            self.preempt(context, task);
        } else if after > before {
            context.reschedule(cpu);
        }
    }
}
