//! `schedule()`: who runs next, and what running and waiting do to `sleep_avg`.

use warmq_kernel::{Context, Pick};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::credit::{Activated, Credit, credit};
use super::interactive_credit::{credited, debited};
use super::release::Release;
use super::rules::MS;
use super::settings::Options;
use super::statistics::{PRIORITY, SLEEP_AVG, SLEEP_CREDIT};

impl O1 {
    /// Charges `prev` for its run, and picks the first task of the best list of the active array.
    pub(super) fn pick(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let (here, now) = (context.cpu(), self.now(context));
        if let Some(prev) = prev {
            self.charge_run(context, prev, now);
        }
        let Some(next) = self.next(context, prev) else {
            let queue = self.queue_mut(here);
            queue.expired_since = None;
            queue.push_to = None;
            return Pick::Idle;
        };
        self.credit_wait(context, next, now);
        let switches = prev != Some(next);
        let state = self.task_mut(next);
        state.activated = Activated::No;
        if switches {
            state.timestamp = now;
        }
        context.touch(self.task(next).list_line(), Access::Write);
        Pick::Task(next)
    }

    /// `prev` may leave the CPU: its run lowers its `sleep_avg`.
    fn charge_run(&mut self, context: &mut Context<'_>, prev: TaskId, now: u64) {
        let rules = self.rules;
        let state = self.task_mut(prev);
        let ran = now.saturating_sub(state.timestamp);
        match rules.release {
            Release::V2_6_4 => state.set_account(debited(&rules, state.account(), ran)),
            Release::V2_6_16 => state.sleep_avg = rules.debited(state.sleep_avg, ran),
        }
        state.timestamp = now;
        state.last_ran = now;
        context.statistic(SLEEP_AVG, prev, state.sleep_avg / MS);
        context.touch(self.task(prev).list_line(), Access::Write);
    }

    /// The task that runs next. One that is to be pushed away gives way to any other.
    fn next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
        let here = context.cpu();
        let pushed = self.pushed(context, prev);
        if let Some(other) = pushed.and_then(|pushed| self.best(context, here, Some(pushed))) {
            return Some(other);
        }
        self.queue_mut(here).push_to = None;
        let queue = self.queue(here);
        context.touch(queue.arrays[queue.active].base(), Access::Read);
        if queue.arrays[queue.active].is_empty() && !queue.arrays[queue.expired()].is_empty() {
            context.touch(queue.line, Access::Write);
            self.queue_mut(here).swap();
        }
        let best = self.best(context, here, None)?;
        Some(self.successor(context, here, best))
    }

    /// The best task of the queue of `cpu` that can run there, other than `except`: almost always
    /// the first. Those that cannot are about to leave the queue, as their affinity has changed, or
    /// another CPU still switches away from them.
    fn best(&self, context: &Context<'_>, cpu: CpuId, except: Option<TaskId>) -> Option<TaskId> {
        let can_run = |task: &TaskId| Some(*task) != except && self.can_run(context, cpu, *task);
        self.queue(cpu).iter().find(can_run)
    }

    /// Whether `task`, of the queue of `cpu`, can run there.
    pub(super) fn can_run(&self, context: &Context<'_>, cpu: CpuId, task: TaskId) -> bool {
        let view = context.task(task);
        let free = view.on_cpu().is_none_or(|there| there == cpu);
        let leaving = self.queue(cpu).leaving;
        let leaves = leaving.is_some_and(|(leaving, _)| leaving == task);
        free && !leaves && view.may_run_on(cpu)
    }

    /// The first pick after a wakeup counts what the task waited for as sleep, all of it or a part.
    /// It runs at once, but goes to the end of its list.
    fn credit_wait(&mut self, context: &mut Context<'_>, next: TaskId, now: u64) {
        let state = self.task(next);
        let waited = now.saturating_sub(state.timestamp);
        let variants = &self.options.variants;
        let Some(slept) = variants.credited_wait(state.activated, waited) else {
            return;
        };
        if state.is_real_time() {
            return;
        }
        self.credit_sleep(context, next, slept);
        let Some(array) = self.remove(context, next) else {
            return;
        };
        let priority = self.task(next).effective_priority(&self.rules);
        self.task_mut(next).priority = priority;
        context.statistic(PRIORITY, next, priority as u64);
        self.add_last(context, next, array);
    }

    /// Credits `task` with a sleep of `slept` ns (`recalc_task_prio()`, but for the priority).
    pub(super) fn credit_sleep(&mut self, context: &mut Context<'_>, task: TaskId, slept: u64) {
        let Options {
            variants,
            local,
            network_min_sleep,
            ..
        } = self.options;
        let rules = self.rules;
        let state = self.task_mut(task);
        let estimate = local.filter(|_| state.network);
        let own = estimate.map(|estimate| state.sleeps.threshold(estimate));
        let due = Credit {
            user: state.user,
            activated: state.activated,
            nice: state.nice,
            sleep_avg: state.sleep_avg,
            slept: if state.is_batch() { 0 } else { slept },
            min_sleep_ms: own.filter(|ms| *ms > 0).or(network_min_sleep),
        };
        if rules.release == Release::V2_6_4 {
            state.set_account(credited(&rules, state.interactive_credit, &due));
            context.statistic(SLEEP_AVG, task, state.sleep_avg / MS);
            return;
        }
        let credited = credit(&rules, &variants, &due);
        state.sleep_avg = credited.sleep_avg;
        context.statistic(SLEEP_AVG, task, state.sleep_avg / MS);
        if let Some(weighted) = credited.weighted_ms.filter(|ms| *ms > 0) {
            context.statistic(SLEEP_CREDIT, task, weighted);
        }
        if let (Some(estimate), Some(ms)) = (estimate, credited.compared_ms) {
            state.sleeps.add(estimate, ms);
        }
    }
}
