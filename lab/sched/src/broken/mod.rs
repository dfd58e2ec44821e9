//! A plain fair scheduler that can be broken in one way: it shows that laws can fail.
//!
//! Unbroken, it has one queue for the machine, by virtual time: tasks by weight, groups by weight
//! among their siblings, slices of 3 ms. A woken task goes to an idle CPU (the tasks of a fragment
//! to their cache, others to an idle core, their last cache, their last CPU), or preempts the
//! nearest task that it is behind. A CPU prefers tasks that were last near it, unless others have
//! had less by more than a slice or two; so one queue balances the load. That is simple and fair,
//! and no scheduler for large machines: all CPUs take one lock, and a pick looks at every queued
//! task.
//!
//! Not there: the class of real-time tasks, which have a large weight instead; costs of the
//! walk.

mod fault;
mod idle;
mod pick;
mod state;
mod time;

use warmq_config::{Chosen, Setting};
use warmq_kernel::{
    Attach, Context, Fragment, GroupId, Pick, Scheduler, UnknownCost, Waiting, WakeContext, Why,
};
use warmq_units::{CpuId, Duration, LockId, TaskId};

use self::fault::Fault;
use self::state::{State, ns};
use self::time::SLICE;

/// How often gaps of virtual time are closed, in ns.
const GAPS_EVERY: i64 = 10_000_000;
/// With `loses-wakeups`, one of so many is lost; a task that is lost is, for so long.
const LOST_EVERY: u64 = 10;
const LOST_FOR: Duration = Duration::from_ms(1_000);

/// What can be set.
pub(crate) fn settings() -> Vec<Setting> {
    vec![fault::setting()]
}

/// The scheduler.
pub(crate) struct Broken {
    state: State,
}

impl Broken {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Broken, UnknownCost> {
        let state = State::new(attach, fault::chosen(chosen))?;
        Ok(Broken { state })
    }
}

impl Scheduler for Broken {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.state.lock
    }

    fn fork(&mut self, context: &mut Context<'_>, _: Option<TaskId>, child: TaskId) {
        self.state.admit(context, child);
    }

    /// Two tasks that wake each other, and no others, belong under one cache; a waker that is about
    /// to sleep leaves its own.
    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        let last = context.task(task).last_cpu();
        let beside_waker = match why {
            Why::Wakeup(wakeup) if wakeup.context != WakeContext::Interrupt => {
                self.state.is_partner(task, wakeup.current) || wakeup.sync
            }
            Why::Wakeup(_) | Why::Fork => false,
        };
        let near = match self.state.fault {
            Fault::IgnoresCaches | Fault::Stays => last,
            _ if beside_waker => context.cpu(),
            _ => last,
        };
        self.state.select(context, task, near)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        let state = &mut self.state;
        context.compute(state.wakeup_cost);
        let woken = matches!(why, Why::Wakeup(_));
        state.enter(task, woken && state.fault == Fault::ForgivesSleepers);
        state.queue(context, task, cpu);
        state.arrivals += 1;
        let arrived = state.arrivals;
        let known = state.task_mut(task);
        known.arrived = arrived;
        known.woken = woken;
        if let Why::Wakeup(wakeup) = why {
            state.lose_some(context, task, cpu, wakeup.slept);
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        self.state.kick(context, task, cpu);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        state.charge(context, task);
        state.task_mut(task).running = false;
        state.queued.remove(&task);
        state.leave(task);
        state.touch(context, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.state.pick(context, prev)
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.state.queued.contains(&prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        if self.state.queued.contains(&prev) {
            let cpu = self.state.task(prev).cpu;
            self.state.kick_idle(context, prev, cpu);
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let (state, now) = (&mut self.state, ns(context));
        if now - state.gaps_closed_at >= GAPS_EVERY {
            state.gaps_closed_at = now;
            state.tree.close_gaps();
        }
        state.offer(context);
        let Some(running) = running else { return };
        state.charge(context, running);
        if state.should_move(context, running) {
            state.task_mut(running).leaves = true;
            context.reschedule(context.cpu());
        }
        let spent = now - state.task(running).picked_at >= SLICE;
        if spent && !state.queued.is_empty() && state.fault != Fault::NoSlices {
            context.reschedule(context.cpu());
        }
    }

    fn yield_task(&mut self, _: &mut Context<'_>, task: TaskId) -> bool {
        self.state.task_mut(task).yields = true;
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        if state.fault == Fault::IgnoresChanges {
            return;
        }
        state.charge(context, task);
        let runnable = state.task(task).runnable;
        state.leave(task);
        state.bring_up_to_date(context, task);
        if runnable {
            state.enter(task, false);
        }
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        let here = state.task(task).cpu;
        if state.queued.contains(&task) {
            let cpu = state.allowed_near(context, task, here);
            state.task_mut(task).cpu = cpu;
            state.kick(context, task, cpu);
        } else if state.task(task).running {
            context.reschedule(here);
        }
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        if self.state.fault != Fault::IgnoresChanges {
            self.state.group_reweighed(context, group);
        }
    }

    /// A task that was lost is found again.
    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        let task = TaskId(token as u32);
        if self.state.queued.contains(&task) {
            let cpu = self.state.task(task).cpu;
            self.state.kick(context, task, cpu);
        }
    }

    /// A task whose fragment is at home elsewhere moves there before it goes on.
    fn set_fragment(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        let (state, here) = (&mut self.state, context.cpu());
        state.follow(task, fragment, here);
        let home = state.home(context, task);
        if home.is_some_and(|home| home != state.cache(here)) {
            state.task_mut(task).leaves = true;
            context.reschedule(here);
        }
    }

    fn exit(&mut self, _: &mut Context<'_>, _: TaskId) {}
}

impl State {
    /// Whether `task` and `waker`, who wakes it now, have woken each other last.
    fn is_partner(&mut self, task: TaskId, waker: Option<TaskId>) -> bool {
        let before = std::mem::replace(&mut self.task_mut(task).woken_by, waker);
        let Some(waker) = waker else { return false };
        before == Some(waker) && self.task(waker).woken_by == Some(task)
    }

    /// With `loses-wakeups`, nobody finds one of ten woken tasks for a second; with `loses-held`,
    /// none that was frozen or out of quota.
    fn lose_some(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, slept: Waiting) {
        self.wakeups += 1;
        let lost = match self.fault {
            Fault::LosesWakeups => self.wakeups.is_multiple_of(LOST_EVERY),
            Fault::LosesHeld => matches!(slept, Waiting::Thaw | Waiting::Quota),
            _ => false,
        };
        if lost {
            let until = context.now() + LOST_FOR;
            self.task_mut(task).hidden_until = ns(context) + LOST_FOR.as_ns() as i64;
            context.arm_timer(cpu, until, u64::from(task.0));
        }
    }
}
