//! Where a woken task goes: to an idle CPU, or to a CPU whose task it preempts.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::fault::Fault;
use super::state::{State, ns};
use super::time::SLICE;

/// By how much a woken task has to be behind the running one, in ns.
const GRANULARITY: i64 = SLICE / 6;

/// Whether `cpu` is idle and has not been asked to reschedule.
fn is_free(context: &Context<'_>, cpu: CpuId) -> bool {
    context.running_on(cpu).is_none() && !context.will_reschedule(cpu)
}

impl State {
    fn cpus(&self) -> impl Iterator<Item = CpuId> {
        (0..self.places.len() as u16).map(CpuId)
    }

    fn is_core_free(&self, context: &Context<'_>, cpu: CpuId) -> bool {
        let mut siblings = self.siblings(cpu);
        siblings.all(|other| context.running_on(other).is_none())
    }

    /// The cache where a task is best off: that of its fragment, or of the CPU `near`.
    fn best_cache(&self, context: &Context<'_>, task: TaskId, near: CpuId) -> u16 {
        let home = self.home(context, task);
        home.unwrap_or_else(|| self.cache(near))
    }

    /// The best idle CPU for a task that was last on `near`, of those that `suit` it.
    fn idle_for(
        &self,
        context: &Context<'_>,
        task: TaskId,
        near: CpuId,
        suit: impl Fn(CpuId) -> bool,
    ) -> Option<CpuId> {
        let cache = self.best_cache(context, task, near);
        let hinted = self.home(context, task).is_some();
        let all = self.places.len() as u16;
        let free = self.cpus().filter(|cpu| is_free(context, *cpu));
        let free = free.filter(|cpu| suit(*cpu));
        free.min_by_key(|cpu| {
            let away = self.cache(*cpu) != cache;
            let crowd = if away {
                self.busy_under(context, *cpu)
            } else {
                0
            };
            let shares = !self.is_core_free(context, *cpu);
            match self.fault {
                // Round and round, from where it was last.
                Fault::IgnoresCaches => {
                    let round = (cpu.0 + all - near.0 - 1) % all;
                    (false, shares, false, 0, true, round)
                }
                Fault::PacksCores => (hinted && away, !shares, away, crowd, *cpu != near, cpu.0),
                _ => (hinted && away, shares, away, crowd, *cpu != near, cpu.0),
            }
        })
    }

    /// How many CPUs under the cache of `cpu` are busy.
    fn busy_under(&self, context: &Context<'_>, cpu: CpuId) -> usize {
        let near = self
            .cpus()
            .filter(|other| self.cache(*other) == self.cache(cpu));
        near.filter(|other| !is_free(context, *other)).count()
    }

    /// Where a task that wakes should go.
    pub(super) fn select(&self, context: &Context<'_>, task: TaskId, near: CpuId) -> CpuId {
        let last = context.task(task).last_cpu();
        let near = self.allowed_near(context, task, near);
        // The CPU that still switches away from the task is the one that sees when it is done.
        if context.task(task).on_cpu() == Some(last) && self.may_run(context, task, last) {
            return last;
        }
        let idle = match self.fault {
            Fault::Stays => None,
            _ => self.idle_for(context, task, near, |cpu| self.may_run(context, task, cpu)),
        };
        idle.unwrap_or(near)
    }

    /// A task was queued at `cpu`: asks an idle CPU to take it, or preempts.
    pub(super) fn kick(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        if self.kick_idle(context, task, cpu) || self.fault == Fault::NeverPreempts {
            return;
        }
        if let Some(cpu) = self.preempted_by(context, task, cpu) {
            context.reschedule(cpu);
        }
    }

    /// Asks an idle CPU to take a queued task; false if there is none.
    pub(super) fn kick_idle(&self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        let idle = self.idle_for(context, task, cpu, |cpu| self.may_take(context, task, cpu));
        if let Some(idle) = idle {
            context.reschedule(idle);
        }
        idle.is_some()
    }

    /// The CPU that should run `task` instead of its own, the nearest first.
    fn preempted_by(&mut self, context: &Context<'_>, task: TaskId, near: CpuId) -> Option<CpuId> {
        let cache = self.best_cache(context, task, near);
        let mut cpus: Vec<CpuId> = self.cpus().collect();
        cpus.sort_by_key(|cpu| (self.cache(*cpu) != cache, *cpu != near));
        cpus.into_iter()
            .find(|cpu| self.preempts(context, task, *cpu))
    }

    fn preempts(&mut self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        let Some(running) = context.running_on(cpu) else {
            return false;
        };
        if !self.may_take(context, task, cpu) || running == task {
            return false;
        }
        self.charge(context, running);
        let (mine, theirs) = (self.task(task), self.task(running));
        match self.fault {
            Fault::WokenFirst if mine.woken && !theirs.woken => true,
            _ => self.tree.ahead(mine.entity, theirs.entity) > GRANULARITY,
        }
    }

    /// The running task of this CPU shares its core, or is under another cache than its fragment,
    /// while a better CPU idles.
    pub(super) fn should_move(&self, context: &Context<'_>, running: TaskId) -> bool {
        let here = context.cpu();
        let misplaced = |cpu: CpuId| {
            let home = self.home(context, running);
            home.is_some_and(|home| home != self.cache(cpu))
        };
        let shares = |cpu: CpuId| !self.is_core_free(context, cpu);
        if matches!(
            self.fault,
            Fault::NoBalance | Fault::Stays | Fault::PacksCores
        ) {
            return false;
        }
        let may = |cpu| self.may_run(context, running, cpu);
        let Some(idle) = self.idle_for(context, running, here, may) else {
            return false;
        };
        (misplaced(idle), shares(idle)) < (misplaced(here), shares(here))
    }

    /// Asks idle CPUs to take what is queued.
    pub(super) fn offer(&mut self, context: &mut Context<'_>) {
        let now = ns(context);
        let waiting: Vec<TaskId> = self.queued.iter().copied().collect();
        let mut idle = self.cpus().filter(|cpu| is_free(context, *cpu)).count();
        for task in waiting {
            if idle == 0 {
                return;
            }
            let waited = now > self.task(task).queued_at;
            if waited && self.kick_idle(context, task, self.task(task).cpu) {
                idle -= 1;
            }
        }
    }
}
