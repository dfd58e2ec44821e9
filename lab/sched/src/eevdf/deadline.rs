//! Deadline tasks: their reservations, and the timers of these ([`warmq_classes::TaskClass`]).

use warmq_classes::Overload;
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::state::State;
use super::wakeup::MOVED;

/// What timers are known by: that of a slice or a runtime, that of the server of a CPU, that of the
/// periods of real-time tasks, and from [`REPLENISHMENTS`] on those that end the throttling of
/// tasks.
pub(super) const SLICE_TIMER: u64 = 0;
pub(super) const SERVER_TIMER: u64 = 1;
pub(super) const PERIOD_TIMER: u64 = 2;
const REPLENISHMENTS: u64 = 3;

impl State {
    /// Whether `task` is in the queue of its CPU: it is runnable, and not throttled (`on_dl_rq()`).
    pub(super) fn is_queued(&self, task: TaskId) -> bool {
        let state = self.task(task);
        state.runnable && !state.class.is_throttled()
    }

    /// An urgent task that is runnable joins the queue of its CPU, if it is not throttled.
    pub(super) fn join_urgent(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        let now = self.cpu(cpu).clock;
        let state = self.task_mut(task);
        let how = std::mem::take(&mut state.joining);
        state.class.joins(now, how);
        self.deadlines.push(task);
        self.add_urgent(task);
        self.begin_period(task);
    }

    fn add_urgent(&mut self, task: TaskId) {
        let state = self.task(task);
        let (cpu, rank) = (state.cpu, state.class.rank());
        if self.is_queued(task) {
            self.cpu_mut(cpu).urgent.add(rank, task);
        }
    }

    /// The running deadline task ran for `ran` ns (`update_curr_dl_se()`).
    pub(super) fn charge_reservation(&mut self, task: TaskId, ran: i64) {
        let cpu = self.task(task).cpu;
        let now = self.cpu(cpu).clock;
        if !self.task_mut(task).class.charge(now, ran) {
            return;
        }
        self.deadlines.push(task);
        self.cpu_mut(cpu).urgent.remove(task);
        self.add_urgent(task);
        if self.cpu(cpu).urgent.iter().next() != Some(task) {
            self.effects.request(cpu, Urgency::Now);
        }
    }

    /// The timer that ends the throttling of a task has expired (`dl_task_timer()`).
    pub(super) fn replenishment_is_due(&mut self, context: &mut Context<'_>, token: u64) {
        let task = TaskId((token - REPLENISHMENTS) as u32);
        let cpu = self.task(task).cpu;
        self.sync(context, cpu);
        let now = self.cpu(cpu).clock;
        let state = self.task_mut(task);
        if !state.class.replenish(now) || !state.runnable {
            return;
        }
        self.add_urgent(task);
        self.check_preempt(cpu, task, MOVED, context.must_reschedule(cpu));
        self.push_urgent(context, cpu);
    }

    /// Arms the timer of a task as its reservation asks for, or cancels it.
    pub(super) fn arm_replenishment(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.task_mut(task);
        let token = REPLENISHMENTS + u64::from(task.0);
        state.class.arm(context, state.cpu, token);
    }

    /// In how many ns of CPU time the runtime of the running deadline task is used up, if a timer
    /// is to say so (`start_hrtick_dl()`).
    pub(super) fn left_of_runtime(&self, cpu: CpuId) -> Option<i64> {
        let current = self.cpu(cpu).current.filter(|_| self.rules.hrtick_dl)?;
        self.task(current).class.left()
    }

    /// The timer of the runtime of `task`, which runs on `cpu`, has expired (`task_tick_dl()`).
    pub(super) fn runtime_is_over(&mut self, cpu: CpuId, task: TaskId) {
        if self.task(task).class.is_urgent() {
            self.charge_urgent(task);
        }
        let left = self.left_of_runtime(cpu).filter(|left| *left > 0);
        let first = self.cpu(cpu).urgent.iter().next() == Some(task);
        self.timers
            .extend(left.filter(|_| first).map(|left| (cpu, left)));
    }
}
