//! Deadline tasks: their reservations, and the timers of these ([`warmq_classes::Cbs`]).

use warmq_classes::Charged;
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::effects::Urgency;
use super::state::{Class, State};
use super::wakeup::MOVED;

/// What timers are known by: that of a slice or a runtime, that of the server of a CPU, and from
/// [`REPLENISHMENTS`] on those that end the throttling of tasks.
pub(super) const SLICE_TIMER: u64 = 0;
pub(super) const SERVER_TIMER: u64 = 1;
const REPLENISHMENTS: u64 = 2;

impl State {
    /// Whether `task` is in the queue of its CPU: it is runnable, and not throttled (`on_dl_rq()`).
    pub(super) fn is_queued(&self, task: TaskId) -> bool {
        let state = self.task(task);
        let throttled = state.cbs.is_some_and(|cbs| cbs.is_throttled());
        state.runnable && !throttled
    }

    /// An urgent task that is runnable joins the queue of its CPU, if it is not throttled.
    pub(super) fn join_urgent(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        let now = self.cpu(cpu).clock;
        let state = self.task_mut(task);
        let how = std::mem::take(&mut state.joining);
        if let Some(cbs) = &mut state.cbs {
            cbs.joins(now, how);
            state.rank = cbs.rank();
            self.deadlines.push(task);
        }
        self.add_urgent(task);
    }

    fn add_urgent(&mut self, task: TaskId) {
        let state = self.task(task);
        let (cpu, rank) = (state.cpu, state.rank);
        if self.is_queued(task) {
            self.cpu_mut(cpu).urgent.add(rank, task);
        }
    }

    /// The running deadline task ran for `ran` ns (`update_curr_dl_se()`).
    pub(super) fn charge_reservation(&mut self, task: TaskId, ran: i64) {
        let cpu = self.task(task).cpu;
        let now = self.cpu(cpu).clock;
        let state = self.task_mut(task);
        let Some(cbs) = &mut state.cbs else {
            return;
        };
        if cbs.charge(now, ran) == Charged::GoesOn {
            return;
        }
        state.rank = cbs.rank();
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
        state.replenishment.expired();
        let Some(cbs) = state.cbs.as_mut().filter(|cbs| cbs.is_throttled()) else {
            return;
        };
        cbs.timer(now);
        state.rank = cbs.rank();
        if !state.runnable {
            return;
        }
        self.add_urgent(task);
        self.check_preempt(cpu, task, MOVED, context.must_reschedule(cpu));
        self.push_urgent(context, cpu);
    }

    /// Arms the timer of a task as its reservation asks for, or cancels it.
    pub(super) fn arm_replenishment(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.task_mut(task);
        let due = state.cbs.and_then(|cbs| cbs.due());
        let token = REPLENISHMENTS + u64::from(task.0);
        state.replenishment.set(context, due, (state.cpu, token));
    }

    /// In how many ns of CPU time the runtime of the running deadline task is used up, if a timer
    /// is to say so (`start_hrtick_dl()`).
    pub(super) fn left_of_runtime(&self, cpu: CpuId) -> Option<i64> {
        let current = self.cpu(cpu).current.filter(|_| self.rules.hrtick_dl)?;
        self.task(current).cbs.map(|cbs| cbs.left())
    }

    /// The timer of the runtime of `task`, which runs on `cpu`, has expired (`task_tick_dl()`).
    pub(super) fn runtime_is_over(&mut self, cpu: CpuId, task: TaskId) {
        if self.task(task).class == Class::Urgent {
            self.charge_urgent(task);
        }
        let left = self.left_of_runtime(cpu).filter(|left| *left > 0);
        let first = self.cpu(cpu).urgent.iter().next() == Some(task);
        self.timers
            .extend(left.filter(|_| first).map(|left| (cpu, left)));
    }
}
