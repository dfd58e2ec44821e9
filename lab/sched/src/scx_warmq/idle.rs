//! Idle CPUs: the previous one, then its core, then its cache, then any. A member of a group looks
//! at its home only.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::state::{EntityId, Kind, State};

/// Whether `cpu` is idle and has not been asked to reschedule.
pub(super) fn is_free(context: &Context<'_>, cpu: CpuId) -> bool {
    context.running_on(cpu).is_none() && !context.will_reschedule(cpu)
}

fn first_free<'a>(
    context: &Context<'_>,
    task: TaskId,
    cpus: impl IntoIterator<Item = &'a CpuId>,
) -> Option<CpuId> {
    let view = context.task(task);
    cpus.into_iter()
        .copied()
        .find(|cpu| view.may_run_on(*cpu) && is_free(context, *cpu))
}

impl State {
    /// Where a task that wakes should go.
    pub(super) fn select(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        context.touch(self.tasks[task.index()].line, Access::Read);
        context.touch(self.idle_line, Access::Read);
        let view = context.task(task);
        let last = view.last_cpu();
        let prev = match view.may_run_on(last) {
            true => last,
            false => self.topology.first_cpu(view).unwrap_or(last),
        };
        // The CPU that still switches away from the task is the one that sees when it is done.
        if view.on_cpu() == Some(prev) {
            return prev;
        }
        let entity = self.entity_for(view, prev);
        let found = match self.entities[entity].kind {
            // Its CPU may have gone offline, of which nobody has told us yet.
            Kind::Pinned { cpu } => return if view.may_run_on(cpu) { cpu } else { prev },
            Kind::Unmanaged { .. } => self.idle_for_unmanaged(context, task, prev),
            Kind::Group { .. } => self.idle_at_home(context, task, entity, prev),
        };
        if found.is_some() {
            context.touch(self.idle_line, Access::Write);
        }
        found.unwrap_or_else(|| self.busy_cpu(entity, task, prev))
    }

    /// Where a task is queued if there is no idle CPU for it: where it was, or at its home.
    fn busy_cpu(&self, entity: EntityId, task: TaskId, prev: CpuId) -> CpuId {
        match self.group_of_entity(entity) {
            Some(group) if !self.serves(prev, entity) => {
                let home = self.topology.cpus_of_place(self.groups[group].home);
                home[task.index() % home.len()]
            }
            Some(_) | None => prev,
        }
    }

    fn idle_for_unmanaged(
        &self,
        context: &Context<'_>,
        task: TaskId,
        prev: CpuId,
    ) -> Option<CpuId> {
        let domain = self.topology.domain_of(prev);
        let near = self.topology.cpus_of_domain(domain);
        let others = self.topology.domains().filter(|other| *other != domain);
        first_free(context, task, [&prev])
            .or_else(|| first_free(context, task, self.topology.siblings(prev)))
            .or_else(|| first_free(context, task, near))
            .or_else(|| {
                let mut far = others.map(|other| self.topology.cpus_of_domain(other));
                far.find_map(|cpus| first_free(context, task, cpus))
            })
    }

    fn idle_at_home(
        &self,
        context: &Context<'_>,
        task: TaskId,
        entity: EntityId,
        prev: CpuId,
    ) -> Option<CpuId> {
        let group = self.group_of_entity(entity)?;
        let home = self.topology.cpus_of_place(self.groups[group].home);
        let first = home.contains(&prev).then_some(prev);
        first_free(context, task, first.as_ref()).or_else(|| first_free(context, task, &home))
    }

    /// An idle CPU that would take `task`, which is queued and was last on `cpu`.
    pub(super) fn idle_for_queued(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> Option<CpuId> {
        let entity = self.tasks[task.index()].entity?;
        match self.entities[entity].kind {
            Kind::Pinned { cpu: only } => Some(only).filter(|only| is_free(context, *only)),
            Kind::Unmanaged { .. } => self.idle_for_unmanaged(context, task, cpu),
            Kind::Group { .. } => self.idle_at_home(context, task, entity, cpu),
        }
    }

    /// Kicks an idle CPU, if there is one, for `task`, which was just queued. Returns whether there
    /// was one.
    pub(super) fn kick_idle(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> bool {
        let found = self.idle_for_queued(context, task, cpu);
        if let Some(idle) = found {
            context.touch(self.idle_line, Access::Write);
            context.reschedule(idle);
        }
        found.is_some()
    }
}
