//! Wakeup preemption: how often a task sleeps, and whether its wakeup preempts.

use warmq_decide::{self as decide, Verdict, Wakeup};
use warmq_kernel::{Context, Policy};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::state::{State, ns};

impl State {
    /// Begins a new period, if it is time: the count of sleeps starts from 0.
    pub(super) fn begin_period(&mut self, task: TaskId, now: u64) {
        let state = &mut self.tasks[task.index()];
        if now.saturating_sub(state.period_at) >= self.policy.period {
            state.period_at = now;
            state.sleeps = 0;
        }
    }

    /// For how long a task that wakes now has slept, in ns.
    pub(super) fn slept(&self, task: TaskId, now: u64) -> u64 {
        now.saturating_sub(self.tasks[task.index()].slept_at)
    }

    /// `task`, which slept for `slept` ns, was queued at `cpu`, which is busy: it preempts if it
    /// may.
    pub(super) fn preempt(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
        slept: u64,
    ) {
        if self.ends_slice(context, task, cpu, slept) {
            context.reschedule(cpu);
        }
    }

    /// Ends the slice of the task that runs on `cpu` if `task` may preempt it. Returns whether it
    /// may.
    pub(super) fn ends_slice(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
        slept: u64,
    ) -> bool {
        let now = ns(context);
        context.touch(self.cpus[cpu.index()].line, Access::Read);
        let Some(wakeup) = self.wakeup(context, task, cpu, slept) else {
            return false;
        };
        let granted = decide::wakeup_preempts(&self.policy, &wakeup) == Verdict::Granted;
        if granted {
            let here = &mut self.cpus[cpu.index()];
            here.preempted_at = Some(now);
            context.touch(here.line, Access::Write);
            if let Some(running) = here.running {
                self.tasks[running.index()].slice = 0;
            }
        }
        granted
    }

    /// The wakeup of `task` beside the task that runs on `cpu`. `None` if none runs, or if `cpu`
    /// does not serve the entity of `task`.
    fn wakeup(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
        slept: u64,
    ) -> Option<Wakeup> {
        let now = ns(context);
        let (state, here) = (&self.tasks[task.index()], &self.cpus[cpu.index()]);
        let entity = state.entity.filter(|entity| self.serves(cpu, *entity))?;
        let running = here.running?;
        let idle = |task: TaskId| context.task(task).policy() == Policy::Idle;
        let slice = self.slice_in(self.domain_of_entity(entity));
        Some(Wakeup {
            waking: decide::vruntime(&self.entities[entity].time, self.deadline(task, slice)),
            running: here.run_deadline,
            sleeps: state.sleeps,
            weight: state.weight,
            slept,
            since: here
                .preempted_at
                .map_or(u64::MAX, |last| now.saturating_sub(last)),
            outranks: u64::from(idle(running) && !idle(task)),
        })
    }
}
