//! Wakeups: where a task is queued, what its sleep earns, and whom it preempts
//! (`try_to_wake_up()`, `activate_task()`).

use warmq_kernel::{Context, Waiting, WakeContext, Wakeup};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::credit::Activated;
use super::queue::LOAD_SCALE;
use super::release::Release;
use super::rules::PRIORITIES;
use super::statistics::PRIORITY;

/// Which average of the load a wakeup looks at: that of the last tick (`wake_idx`).
const WAKE_LOAD: usize = 1;
/// How much busier than the waker's CPU that of the task must be to be left, in percent: half of
/// the imbalance that balancing tolerates is above 100.
const WAKE_IMBALANCE: u64 = 112;

/// Whether a wakeup pulls a task to the waker's CPU, by the loads of the two.
#[derive(Clone, Copy, Debug)]
struct Affinity {
    /// tq: the target load of the waker's CPU, without the waker if the wakeup is sync.
    here: u64,
    /// lp: the source load of the CPU where the task ran last.
    there: u64,
    /// tp: the target load of that CPU.
    there_as_target: u64,
}

impl Affinity {
    fn pulls(self) -> bool {
        let Affinity {
            here,
            there,
            there_as_target,
        } = self;
        let both_idle = here <= there && here + there_as_target <= LOAD_SCALE;
        both_idle || 100 * (here + LOAD_SCALE) <= WAKE_IMBALANCE * there
    }
}

impl O1 {
    /// Where a woken task is queued.
    pub(super) fn place(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        wakeup: &Wakeup,
    ) -> CpuId {
        match self.rules.release {
            Release::V2_6_4 => self.place_by_2_6_4(context, task, wakeup),
            Release::V2_6_16 => self.place_woken(context, task, wakeup.sync),
        }
    }

    /// On the CPU where it ran last; a sync wakeup takes it to the waker's, unless its own still
    /// switches away from it.
    fn place_by_2_6_4(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        wakeup: &Wakeup,
    ) -> CpuId {
        context.touch(self.task(task).state_line(), Access::Read);
        let here = context.cpu();
        let view = context.task(task);
        let comes = self.is_sync(wakeup) && view.on_cpu().is_none() && view.may_run_on(here);
        match comes {
            true => here,
            false => context.allowed_near(task, self.task(task).cpu),
        }
    }

    /// Whether the waker says that it is about to sleep. In 2.6.4 a pipe's readers and writers say
    /// so (`wake_up_interruptible_sync()`).
    fn is_sync(&self, wakeup: &Wakeup) -> bool {
        wakeup.sync || (self.rules.release == Release::V2_6_4 && wakeup.pipe)
    }

    /// Whether a wakeup may preempt at all: a waker that is about to sleep leaves its own CPU
    /// anyway.
    pub(super) fn may_preempt(&self, wakeup: &Wakeup, to: CpuId, waker: CpuId) -> bool {
        may_preempt(self.is_sync(wakeup), to, waker)
    }

    /// The CPU in whose queue a woken task goes: where it ran last, or where its waker runs, or an
    /// idle sibling of that one.
    fn place_woken(&mut self, context: &mut Context<'_>, task: TaskId, sync: bool) -> CpuId {
        context.touch(self.task(task).state_line(), Access::Read);
        let here = context.cpu();
        let last = context.allowed_near(task, self.task(task).cpu);
        let view = context.task(task);
        if view.on_cpu() == Some(last) {
            // That CPU still switches away from it, and may as well go back.
            return last;
        }
        if last == here {
            return self.idle_sibling(context, task, here);
        }
        if !view.may_run_on(here) {
            return self.idle_sibling(context, task, last);
        }
        let lines = [here, last].map(|cpu| self.queue(cpu).line);
        context.touch_all(lines, Access::Read);
        let waker = if sync { LOAD_SCALE } else { 0 };
        let affinity = Affinity {
            here: self
                .queue(here)
                .target_load(WAKE_LOAD)
                .saturating_sub(waker),
            there: self.queue(last).source_load(WAKE_LOAD),
            there_as_target: self.queue(last).target_load(WAKE_LOAD),
        };
        let chosen = if affinity.pulls() { here } else { last };
        self.idle_sibling(context, task, chosen)
    }

    /// `cpu`, or an idle CPU of its core if it is busy (`wake_idle()`).
    fn idle_sibling(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> CpuId {
        let idle = |cpu: &CpuId| context.running_on(*cpu).is_none();
        if idle(&cpu) {
            return cpu;
        }
        let view = context.task(task);
        let mut siblings = self.siblings[cpu.index()].iter();
        let found = siblings.find(|sibling| idle(sibling) && view.may_run_on(**sibling));
        found.copied().unwrap_or(cpu)
    }

    /// Puts a woken task at the end of its list in the active array. A sleep in a pipe is no sign
    /// of an interactive task (`TASK_NONINTERACTIVE`), and leaves everything as it was; any other
    /// is credited. In 2.6.4 it is the sync wakeup on the waker's CPU that leaves everything as it
    /// was.
    pub(super) fn activate(&mut self, context: &mut Context<'_>, task: TaskId, wakeup: &Wakeup) {
        let cpu = self.task(task).cpu;
        let counts = match self.rules.release {
            // `__activate_task()`
            Release::V2_6_4 => !self.is_sync(wakeup) || cpu != context.cpu(),
            Release::V2_6_16 => !wakeup.pipe,
        };
        if counts {
            self.credit_wakeup(context, task, wakeup);
        }
        self.add_active(context, task);
    }

    /// Credits a woken task with its sleep, which sets its priority.
    fn credit_wakeup(&mut self, context: &mut Context<'_>, task: TaskId, wakeup: &Wakeup) {
        let (now, rules) = (self.now(context), self.rules);
        let state = self.task_mut(task);
        state.network = matches!(wakeup.slept, Waiting::Data(_));
        state.activated = match is_uninterruptible(wakeup.slept) {
            true => Activated::Uninterruptible,
            false => Activated::No,
        };
        let slept = now.saturating_sub(state.timestamp);
        if !state.is_real_time() {
            self.credit_sleep(context, task, slept);
        }
        let state = self.task_mut(task);
        state.priority = state.effective_priority(&rules);
        context.statistic(PRIORITY, task, state.priority as u64);
        if state.activated == Activated::No {
            state.activated = match wakeup.context {
                WakeContext::Interrupt | WakeContext::Softirq => Activated::ByInterrupt,
                WakeContext::Task => Activated::ByTask,
            };
        }
        state.timestamp = now;
    }

    /// Preempts the CPU in whose queue `task` is if that runs a task of a worse priority.
    pub(super) fn preempt(&self, context: &mut Context<'_>, task: TaskId) {
        let cpu = self.task(task).cpu;
        if self.preempts(context, task) {
            context.reschedule(cpu);
        }
    }

    /// Whether `task` has a better priority than what runs on its CPU (`TASK_PREEMPTS_CURR`). The
    /// idle task has the worst.
    pub(super) fn preempts(&self, context: &Context<'_>, task: TaskId) -> bool {
        let state = self.task(task);
        let running = context.running_on(state.cpu);
        takes_over(
            state.priority,
            running.map(|running| self.task(running).priority),
        )
    }
}

/// Whether a task of priority `woken` preempts one of priority `running`, or the idle task: less is
/// better, and equal is not enough.
fn takes_over(woken: usize, running: Option<usize>) -> bool {
    woken < running.unwrap_or(PRIORITIES)
}

/// Whether a wakeup may preempt, by whether it is sync.
fn may_preempt(sync: bool, to: CpuId, waker: CpuId) -> bool {
    !sync || to != waker
}

/// Whether a sleep is uninterruptible (`TASK_UNINTERRUPTIBLE`): those in the freezer and for a
/// socket's owner are.
fn is_uninterruptible(slept: Waiting) -> bool {
    matches!(slept, Waiting::Thaw | Waiting::Socket(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 14.
    #[test]
    fn a_woken_task_preempts_if_its_priority_is_better() {
        let (here, other) = (CpuId(0), CpuId(1));
        let table = [
            ("better", 116, Some(117), false, here, true),
            ("equal", 117, Some(117), false, here, false),
            (
                "sync, on the waker's CPU",
                115,
                Some(120),
                true,
                here,
                false,
            ),
            ("sync, on another CPU", 115, Some(120), true, other, true),
            ("the worst, on an idle CPU", 139, None, false, here, true),
        ];
        for (case, woken, running, sync, to, preempts) in table {
            let result = may_preempt(sync, to, here) && takes_over(woken, running);
            assert_eq!(result, preempts, "{case}");
        }
    }

    /// The rule of the specification, in tasks: the waker runs alone on its CPU unless it says
    /// otherwise, and the CPU of the woken task is idle or busy.
    #[test]
    fn a_wakeup_pulls_to_a_cpu_that_is_not_busier() {
        let table = [
            ("the waker is sync, the task's CPU idle", 0, 0, 0, true),
            ("sync, that CPU was busy at the last tick", 0, 0, 1, true),
            ("sync, that CPU is busy", 0, 1, 1, true),
            ("the waker stays, the task's CPU idle", 1, 0, 0, false),
            ("the waker stays, one runs there", 1, 1, 1, false),
            ("the waker stays, two run there", 1, 2, 2, true),
            ("interrupt on an idle CPU, one runs there", 0, 1, 1, true),
            (
                "interrupt on an idle CPU, two there at the last tick",
                0,
                0,
                2,
                false,
            ),
        ];
        for (case, here, there, there_as_target, pulls) in table {
            let affinity = Affinity {
                here: here * LOAD_SCALE,
                there: there * LOAD_SCALE,
                there_as_target: there_as_target * LOAD_SCALE,
            };
            assert_eq!(affinity.pulls(), pulls, "{case}");
        }
    }
}
