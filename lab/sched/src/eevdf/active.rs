//! Where waiting tasks cannot be pulled, the migration thread of the busy CPU pushes one away, if
//! need be the one that ran (`need_active_balance()`, `active_load_balance_cpu_stop()`).

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::balance::{Failed, Idleness};
use super::effects::Urgency;
use super::queueing::Leaving;
use super::standing::Amount;
use super::state::State;

/// What the migration thread of a CPU is to do (`active_balance`, `push_cpu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Push {
    pub(super) to: CpuId,
    /// Only a task is pushed that prefers the cache of that CPU (`LBF_ACTIVE_LB_LLC`).
    pub(super) drawn: bool,
}

/// What decides whether a task is pushed, after an attempt that pulled nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    /// The CPU that pulls idles, or is about to, and its priority counts and is higher, or the
    /// other's does not count, as its core is busy.
    packs: bool,
    /// All tasks of the other CPU are under the cache that they prefer.
    breaks_cache: bool,
    /// Tasks were asked for by their number, and attempts failed so often that hot tasks would have
    /// come twice over.
    keeps_failing: bool,
    /// The only task of a CPU whose time others take would have more of it here.
    gains_capacity: bool,
    /// Tasks were asked for that prefer the cache of the CPU that pulls.
    drawn: bool,
    /// A task was asked for that needs a larger CPU.
    misfits: bool,
}

impl Need {
    /// `need_active_balance()`.
    fn pushes(self) -> bool {
        let others = self.keeps_failing || self.gains_capacity || self.drawn;
        self.packs || self.misfits || !self.breaks_cache && others
    }
}

impl State {
    pub(super) fn needs_push(&self, failed: &Failed) -> bool {
        let (here, from) = (failed.pull.here, failed.from);
        let domain = &self.cpu(here).domains[failed.pull.domain];
        let idles = failed.pull.idleness != Idleness::Busy;
        let counted = matches!(failed.pull.amount, Amount::Tasks(_));
        let pct = domain.level.imbalance_pct;
        let gains = self.capacity(from) * pct < self.capacity(here) * 100;
        Need {
            packs: idles && self.packs_actively(domain, here, from),
            breaks_cache: self.breaks_preference(from, here),
            keeps_failing: counted && domain.failed > domain.level.cache_nice_tries + 2,
            gains_capacity: idles && gains && self.has_reduced_capacity(from, pct),
            drawn: matches!(failed.pull.amount, Amount::Drawn(_)),
            misfits: matches!(failed.pull.amount, Amount::Misfit(_)),
        }
        .pushes()
    }

    /// The migration thread of this CPU runs: the CPU to whose queue a waiting task goes now, under
    /// the locks of both. Who ran goes when this CPU has switched away from it.
    pub(super) fn stop(&mut self, context: &mut Context<'_>) -> Option<CpuId> {
        let here = context.cpu();
        let push = self.cpu_mut(here).push.take()?;
        // The thread is switched to, and from.
        context.compute(self.stop_cost);
        let task = self.to_push(context, push)?;
        if self.cpu(here).current == Some(task) {
            self.cpu_mut(here).push_to = Some(push.to);
            self.effects.request(here, Urgency::Now);
            self.has_pushed(here, push.to);
            return None;
        }
        self.cpu_mut(here).pushed = Some((task, push.to));
        Some(push.to)
    }

    /// The task that ran or was queued longest ago, of those that may go (`detach_one_task()`).
    fn to_push(&self, context: &Context<'_>, push: Push) -> Option<TaskId> {
        let here = context.cpu();
        let online = context.is_online(here) && context.is_online(push.to);
        let failed = self.shared_domain(push.to, here)?.1;
        let may_go = |task: &TaskId| {
            let view = context.task(*task);
            let elsewhere = view.on_cpu().is_some_and(|cpu| cpu != here);
            let asked = self.may_ask(context, *task, push.to, failed).is_ok();
            let allowed = view.may_run_on(push.to) && self.steering.lets_move(*task, here, push.to);
            let drawn = !push.drawn || self.prefers_cache_of(*task, push.to);
            online && !elsewhere && asked && allowed && drawn
        };
        self.cpu(here).recency.iter().copied().find(may_go)
    }

    /// The smallest domain of `to` that spans `from`, and how often it failed there.
    fn shared_domain(&self, to: CpuId, from: CpuId) -> Option<(usize, u32)> {
        let mut domains = self.cpu(to).domains.iter();
        let at = domains.position(|domain| domain.span.binary_search(&from).is_ok())?;
        Some((at, self.cpu(to).domains[at].failed))
    }

    fn has_pushed(&mut self, from: CpuId, to: CpuId) {
        if let Some((at, _)) = self.shared_domain(to, from) {
            self.cpu_mut(to).domains[at].failed = 0;
        }
    }

    /// A waiting task of this CPU goes where `stop` said.
    pub(super) fn push_out(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId) {
        let here = context.cpu();
        let waits = self.task(task).runnable && self.task(task).cpu == here;
        if !waits || context.task(task).on_cpu().is_some() {
            return;
        }
        self.sync(context, to);
        self.deactivate(task, Leaving::Moves);
        self.end_idling(to);
        self.arrive(context, task, to);
        self.has_pushed(here, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_running_task_is_pushed() {
        let none = Need::default();
        let at_home = Need {
            breaks_cache: true,
            ..none
        };
        for (case, need, pushes) in [
            ("nothing", none, false),
            (
                "to a better CPU",
                Need {
                    packs: true,
                    ..none
                },
                true,
            ),
            (
                "to a better CPU, from its cache",
                Need {
                    packs: true,
                    ..at_home
                },
                true,
            ),
            (
                "after failures",
                Need {
                    keeps_failing: true,
                    ..none
                },
                true,
            ),
            (
                "after failures, from its cache",
                Need {
                    keeps_failing: true,
                    ..at_home
                },
                false,
            ),
            (
                "from a real-time task",
                Need {
                    gains_capacity: true,
                    ..none
                },
                true,
            ),
            (
                "from a real-time task, and its cache",
                Need {
                    gains_capacity: true,
                    ..at_home
                },
                false,
            ),
            (
                "to a larger CPU",
                Need {
                    misfits: true,
                    ..none
                },
                true,
            ),
            (
                "to a larger CPU, from its cache",
                Need {
                    misfits: true,
                    ..at_home
                },
                true,
            ),
            (
                "to its cache",
                Need {
                    drawn: true,
                    ..none
                },
                true,
            ),
        ] {
            assert_eq!(need.pushes(), pushes, "{case}");
        }
    }
}
