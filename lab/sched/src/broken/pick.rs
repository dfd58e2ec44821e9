//! Picking: a CPU takes the queued task that is furthest behind, and prefers those that were last
//! near it.

use std::cmp::Ordering;

use warmq_kernel::{Context, Pick};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::fault::Fault;
use super::state::{State, ns};
use super::time::SLICE;

/// For how long a task whose data are under another cache is left to the CPUs there, in ns.
const LEFT_AT_HOME: i64 = 8_000_000;
/// For how long a task that stays is left to its last CPU, in ns.
const STAYS: i64 = 50_000_000;

impl State {
    pub(super) fn pick(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.pick_cost);
        context.touch(self.line, Access::Read);
        let here = context.cpu();
        if let Some(prev) = prev {
            self.charge(context, prev);
        }
        let awake = prev.filter(|prev| context.task(*prev).is_runnable());
        let stays = awake.filter(|prev| {
            let state = self.task(*prev);
            !state.leaves && !state.yields && self.may_run(context, *prev, here)
        });
        let next = self.choose(context, stays);
        let next = next.or_else(|| self.nobody_else(context, awake));
        if let Some(awake) = awake.filter(|awake| next != Some(*awake)) {
            let cpu = self.allowed_near(context, awake, here);
            self.queue(context, awake, cpu);
        }
        if let Some(prev) = prev {
            self.task_mut(prev).leaves = false;
            self.task_mut(prev).yields = false;
        }
        match next {
            Some(next) => {
                self.start(context, next);
                Pick::Task(next)
            }
            None => Pick::Idle,
        }
    }

    /// A task that yielded goes on where nobody else waits.
    fn nobody_else(&self, context: &Context<'_>, awake: Option<TaskId>) -> Option<TaskId> {
        awake.filter(|awake| {
            !self.task(*awake).leaves && self.may_run(context, *awake, context.cpu())
        })
    }

    fn start(&mut self, context: &mut Context<'_>, next: TaskId) {
        let (now, here) = (ns(context), context.cpu());
        self.queued.remove(&next);
        let state = self.task_mut(next);
        if !state.running {
            state.running = true;
            state.charged_at = now;
        }
        state.picked_at = now;
        state.cpu = here;
        let entity = state.entity;
        self.last_group[here.index()] = self.tree.group(entity);
        self.touch(context, next);
    }

    /// The best of the queued tasks and of `stays`, which has this CPU now.
    fn choose(&self, context: &Context<'_>, stays: Option<TaskId>) -> Option<TaskId> {
        let queued = self.queued.iter().copied();
        let mine = queued.filter(|task| self.may_take(context, *task, context.cpu()));
        stays
            .into_iter()
            .chain(mine)
            .min_by(|one, other| self.order(context, *one, *other))
    }

    /// Whether `cpu` may take a queued task now. While a CPU still switches away from it, no other
    /// can.
    pub(super) fn may_take(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        let (state, now) = (self.task(task), ns(context));
        let there = context.task(task).on_cpu();
        let waited = now - state.queued_at;
        let at_home = || {
            let home = self.home(context, task);
            home.is_none_or(|home| home == self.cache(cpu)) || waited >= LEFT_AT_HOME
        };
        let found = match self.fault {
            Fault::LosesWakeups | Fault::LosesHeld => now >= state.hidden_until,
            Fault::NoBalance => state.cpu == cpu,
            Fault::Stays => state.cpu == cpu || waited >= STAYS,
            _ => true,
        };
        found
            && self.may_run(context, task, cpu)
            && there.is_none_or(|there| there == cpu)
            && at_home()
    }

    /// Which of two tasks this CPU should run: `Less` is the first.
    fn order(&self, context: &Context<'_>, one: TaskId, other: TaskId) -> Ordering {
        let (a, b) = (self.task(one), self.task(other));
        let by_time = || {
            let far = self.distance(context, one) - self.distance(context, other);
            far.cmp(&self.tree.ahead(a.entity, b.entity))
        };
        match self.fault {
            Fault::WokenFirst => b.woken.cmp(&a.woken).then_with(by_time),
            Fault::Lifo => b.arrived.cmp(&a.arrived),
            Fault::StrictPriority => {
                let (mine, others) = self.tree.weights(a.entity, b.entity);
                others.cmp(&mine).then_with(by_time)
            }
            Fault::StaysInGroup => {
                let last = self.last_group[context.cpu().index()];
                let other = |entity| self.tree.group(entity) != last;
                other(a.entity).cmp(&other(b.entity)).then_with(by_time)
            }
            _ => by_time(),
        }
    }

    /// By how much a task that was last elsewhere has to be further behind to be taken here.
    fn distance(&self, context: &Context<'_>, task: TaskId) -> i64 {
        let (here, last) = (context.cpu(), context.task(task).last_cpu());
        if self.fault == Fault::IgnoresCaches || last == here {
            return 0;
        }
        match self.home(context, task) {
            Some(home) if home != self.cache(here) => 4 * SLICE,
            None if self.cache(last) != self.cache(here) => 2 * SLICE,
            Some(_) | None => SLICE / 4,
        }
    }

    /// `cpu`, or the first CPU where `task` may run.
    pub(super) fn allowed_near(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> CpuId {
        let all = (0..context.cpus()).map(CpuId);
        let mut near = std::iter::once(cpu).chain(all);
        near.find(|cpu| self.may_run(context, task, *cpu))
            .unwrap_or(cpu)
    }
}
