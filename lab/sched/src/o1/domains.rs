//! Which CPU of its domains is the idlest, and how much load a group of CPUs is built for.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::domains::Domain;
use crate::fair::spans::descend;

use super::O1;
use super::queue::LOAD_SCALE;

/// How much load a group of `cpus` threads of one core is built for (`cpu_power`): each thread but
/// the first adds a tenth.
pub(super) fn power(cpus: usize) -> u64 {
    LOAD_SCALE + LOAD_SCALE * (cpus as u64 - 1) / 10
}

impl O1 {
    /// The idlest CPU for a program that is loaded on this CPU, from the largest domain down
    /// (`sched_balance_self()`).
    pub(super) fn idlest(&self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        let size = |domain: &Domain| domain.span.len();
        let idlest = descend(
            context.cpu(),
            |cpu| self.queue(cpu).domains.iter().map(size).collect(),
            |cpu, domain| self.idlest_in(context, task, &self.queue(cpu).domains[domain]),
        );
        context.allowed_near(task, idlest)
    }

    /// The idlest CPU of the idlest other group of a domain; `None` if the own group has no more
    /// load (`find_idlest_group()`).
    fn idlest_in(&self, context: &mut Context<'_>, task: TaskId, domain: &Domain) -> Option<CpuId> {
        let lines = domain.span.iter().map(|cpu| self.queue(*cpu).line);
        context.touch_all(lines, Access::Read);
        let (view, index) = (context.task(task), domain.level.forkexec_idx);
        let usable = |cpu: &&CpuId| view.may_run_on(**cpu);
        let load = |group: &[CpuId], of: &dyn Fn(CpuId) -> u64| {
            let sum: u64 = group.iter().map(|cpu| of(*cpu)).sum();
            sum * LOAD_SCALE / power(group.len())
        };
        let (own, others) = domain.groups.split_first()?;
        let this = load(own, &|cpu| self.queue(cpu).source_load(index));
        let target = |group: &[CpuId]| load(group, &|cpu| self.queue(cpu).target_load(index));
        let others = others.iter();
        let others = others.filter(|group| group.iter().any(|cpu| usable(&cpu)));
        let idlest = others.min_by_key(|group| target(group))?;
        let tolerated = 100 + (domain.level.imbalance_pct - 100) / 2;
        if own.iter().any(|cpu| usable(&cpu)) && 100 * this < tolerated * target(idlest) {
            return None;
        }
        let cpus = idlest.iter().filter(usable).copied();
        cpus.min_by_key(|cpu| self.queue(*cpu).source_load(0))
    }
}
