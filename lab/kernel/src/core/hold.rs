//! What keeps tasks from running.

use warmq_units::TaskId;

use crate::core::Core;
use crate::core::task::State;
use crate::words::{Fragment, GroupId, Throttling, Waiting};

impl Core {
    /// What keeps `task` from running, if anything does.
    pub(crate) fn held_by(&self, task: TaskId) -> Option<Waiting> {
        if !self.holds {
            return None;
        }
        let state = self.task(task);
        match (state.kernel_thread, state.stopped) {
            (true, _) => None,
            (false, true) => Some(Waiting::Continue),
            (false, false) if self.groups.is_frozen(state.group) => Some(Waiting::Thaw),
            (false, false) => self
                .is_throttled(task, state.queue)
                .then_some(Waiting::Quota),
        }
    }

    /// What keeps `task` from being woken on whatever CPU, if anything does.
    pub(crate) fn held_asleep(&self, task: TaskId) -> Option<Waiting> {
        let everywhere = self.settings.throttling == Throttling::Pool;
        let held = self.held_by(task);
        held.filter(|hold| *hold != Waiting::Quota || everywhere)
    }

    /// Whether tasks may have something to do before they go on in user mode: false as long as none
    /// was ever stopped, frozen, asked to name data or in a group with a quota.
    #[inline]
    pub(crate) fn may_hold(&self) -> bool {
        self.holds
    }

    /// `task` is stopped, or continues.
    pub(crate) fn set_stopped(&mut self, task: TaskId, stopped: bool) {
        self.holds = true;
        self.task_mut(task).stopped = stopped;
    }

    /// `group` is frozen with all that is in it, or thawed.
    pub(crate) fn set_frozen(&mut self, group: GroupId, frozen: bool) {
        self.holds = true;
        self.groups.freeze(group, frozen);
    }

    /// `task` is to name `fragment` on its way to user mode.
    pub(crate) fn rename_data(&mut self, task: TaskId, fragment: Option<Fragment>) {
        self.holds = true;
        self.task_mut(task).new_fragment = Some(fragment);
    }

    /// Whether `task` has something to do before it goes on in user mode.
    pub(crate) fn has_work(&self, task: TaskId) -> bool {
        self.task(task).new_fragment.is_some() || self.held_by(task).is_some()
    }

    /// `task` is woken, or falls asleep, while `hold` keeps it from running: it will be woken when
    /// nothing holds it any more.
    pub(crate) fn hold_back(&mut self, task: TaskId, hold: Waiting) {
        let now = self.now();
        let state = self.task_mut(task);
        state.held_back.get_or_insert(now);
        if state.state != State::New {
            state.state = State::Sleeping(hold);
        }
        if hold == Waiting::Quota {
            self.waits_for_quota(task);
        }
    }

    /// The tasks in `group` and in the groups in it.
    pub(crate) fn members(&self, group: GroupId) -> Vec<TaskId> {
        let tasks = (0..).map(TaskId).zip(&self.tasks);
        let within =
            |task: &crate::core::task::TaskStruct| self.groups.is_within(task.group, group);
        tasks
            .filter(|(_, task)| task.state != State::Dead && within(task))
            .map(|(id, _)| id)
            .collect()
    }
}
