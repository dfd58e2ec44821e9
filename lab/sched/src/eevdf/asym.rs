//! CPUs of a higher priority, which boost higher than others, have tasks first (asym packing:
//! Intel's ITMT, AMD's preferred cores).

use warmq_units::CpuId;

use super::domains::{Domain, Group};
use super::standing::Standing;
use super::state::State;

impl State {
    /// Whether the priority of `cpu` counts in `domain` (`sched_use_asym_prio()`): where threads
    /// share a core, or the rest of its core idles.
    fn priority_counts(&self, domain: &Domain, cpu: CpuId) -> bool {
        domain.packs && (domain.level.shares_core || self.siblings_idle(cpu))
    }

    /// Whether a task on `other` would better be on `cpu` (`sched_asym()`).
    pub(super) fn is_preferred(&self, domain: &Domain, cpu: CpuId, other: CpuId) -> bool {
        self.priority_counts(domain, cpu) && self.is_better(cpu, other)
    }

    fn is_better(&self, cpu: CpuId, other: CpuId) -> bool {
        self.cpu(cpu).priority > self.cpu(other).priority
    }

    /// Whether the tasks of `group` should be on `here`, which idles, instead
    /// (`sched_group_asym()`). Several busy threads of a core are no matter of priorities.
    pub(super) fn packs(
        &self,
        here: CpuId,
        domain: &Domain,
        group: &Group,
        standing: &Standing,
    ) -> bool {
        standing.may_be_packed() && self.is_preferred(domain, here, group.preferred)
    }

    /// Whether a running task of `from` is to be pushed to `here`, which idles
    /// (`asym_active_balance()`).
    pub(super) fn packs_actively(&self, domain: &Domain, here: CpuId, from: CpuId) -> bool {
        let counts = self.priority_counts(domain, here);
        counts && (self.is_better(here, from) || !self.priority_counts(domain, from))
    }

    /// Whether an idle CPU of a higher priority could have the task of `cpu`.
    pub(super) fn could_be_packed(&self, cpu: CpuId) -> bool {
        let domains = self.cpu(cpu).domains.iter();
        let Some(widest) = domains.rev().find(|domain| domain.packs) else {
            return false;
        };
        let mut idle = self.resting.iter();
        idle.any(|idle| {
            widest.span.binary_search(idle).is_ok() && self.is_preferred(widest, *idle, cpu)
        })
    }
}
