//! Wakeups that are left to the CPU where the task is to run (`ttwu_queue_wakelist()`): that of an
//! idle one, or of one under another last-level cache, whose lock and queue the waker then need not
//! touch.

use warmq_units::{CpuId, TaskId};

use super::state::State;

impl State {
    /// Whether `waker` leaves it to `target` to queue `task` (`ttwu_queue_cond()`). One that is
    /// still queued in its sleep is taken back at once (`ttwu_runnable()`).
    pub(super) fn leaves_wakeup(&mut self, waker: CpuId, task: TaskId, target: CpuId) -> bool {
        let delayed = self.entities[self.entity_of(task)].delayed;
        if !self.rules.ttwu_queue || delayed || waker == target {
            return false;
        }
        let queued = self.running(target) + self.cpu(target).delayed;
        let leaves = queued == 0 || !self.share_cache(waker, target);
        if leaves {
            self.task_mut(task).left_to = Some(target);
            self.cpu_mut(target).wakeups_left += 1;
        }
        leaves
    }

    /// `task` is about to be queued: if that was left to a CPU, it is on no list any more.
    pub(super) fn was_left(&mut self, task: TaskId) {
        if let Some(cpu) = self.task_mut(task).left_to.take() {
            self.cpu_mut(cpu).wakeups_left -= 1;
        }
    }
}
