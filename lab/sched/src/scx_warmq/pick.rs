//! Picking: a CPU goes on with its batch, or takes the entity with the least pick key, or a task
//! from elsewhere.

use warmq_decide as decide;
use warmq_kernel::{Context, Pick};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::entity::Coming;
use super::state::{EntityId, State, ns};

impl State {
    pub(super) fn pick(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.pick_cost);
        let here = context.cpu();
        context.touch(self.cpus[here.index()].line, Access::Write);
        let awake = prev.filter(|prev| context.task(*prev).is_runnable());
        let stays = awake.filter(|prev| self.may_stay(context, *prev));
        if let Some(awake) = awake {
            self.charge(context, awake);
            match stays {
                Some(_) => self.reweigh(context, awake),
                None => self.send_away(context, awake),
            }
        }
        match self.choose(context, stays) {
            Some(next) if stays == Some(next) => self.renew(context, next),
            Some(next) => {
                if let Some(stays) = stays {
                    self.put_back(context, stays);
                }
                self.start(context, next);
                Pick::Task(next)
            }
            None => self.idle(context),
        }
    }

    /// Whether the running task still belongs on this CPU.
    fn may_stay(&mut self, context: &Context<'_>, prev: TaskId) -> bool {
        let (here, view) = (context.cpu(), context.task(prev));
        let belongs = self.entity_for(view, here);
        view.may_run_on(here)
            && self.tasks[prev.index()].entity == Some(belongs)
            && self.serves(here, belongs)
    }

    /// Queues a task that belongs elsewhere there. When this CPU has switched away from it, an idle
    /// CPU is kicked for it.
    fn send_away(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let here = context.cpu();
        self.stop(prev);
        let view = context.task(prev);
        let cpu = match view.may_run_on(here) {
            true => here,
            false => self.topology.first_cpu(view).unwrap_or(here),
        };
        let entity = self.entity_for(view, cpu);
        // If the try-lock fails, the queue is changed without its lock. The BPF program has no such
        // path, because each of its queues has its own lock.
        let joined = self.under_lock_of(context, entity, |state, context| {
            state.settle(context, prev, cpu, Coming::Awake);
            state.queue(context, prev);
        });
        if joined.is_none() {
            self.settle(context, prev, cpu, Coming::Awake);
            self.queue(context, prev);
        }
        self.displaced.insert(prev);
    }

    /// Queues a task that loses the CPU to another. An idle CPU may have it.
    fn put_back(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.stop(prev);
        self.settle(context, prev, context.cpu(), Coming::Awake);
        self.queue(context, prev);
        if self.idle_for_queued(context, prev, context.cpu()).is_some() {
            self.displaced.insert(prev);
        }
    }

    /// The next task of this CPU, still queued unless it is `stays`.
    fn choose(&mut self, context: &mut Context<'_>, stays: Option<TaskId>) -> Option<TaskId> {
        if let Some(pulled) = self.pull_requested(context) {
            return Some(pulled);
        }
        let batch = self.batch_that_goes_on(context.cpu());
        let Some(entity) = batch.or_else(|| self.first_entity(context)) else {
            return stays.or_else(|| self.pull(context));
        };
        if let Some(stays) = stays.filter(|stays| self.goes_first(*stays, entity)) {
            return Some(stays);
        }
        self.first_of(context, entity)
            .or_else(|| self.first_of_any(context))
            .or(stays)
            .or_else(|| self.pull(context))
    }

    /// Whether a queued task can run here now. While its CPU still switches away from it, it
    /// cannot; an idle CPU is kicked for it when that is over.
    fn is_free(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let (view, here) = (context.task(task), context.cpu());
        let elsewhere = view.on_cpu().is_some_and(|there| there != here);
        if elsewhere {
            self.displaced.insert(task);
        }
        !elsewhere && view.may_run_on(here)
    }

    fn batch_that_goes_on(&self, cpu: CpuId) -> Option<EntityId> {
        let here = &self.cpus[cpu.index()];
        let entity = here.batch?;
        self.group_of_entity(entity)?;
        let goes_on = !self.entities[entity].queue.is_empty()
            && self.serves(cpu, entity)
            && decide::batch_goes_on(&self.policy, here.batch_used, true);
        goes_on.then_some(entity)
    }

    /// The entity with the least pick key for this CPU, of those with queued tasks.
    fn first_entity(&mut self, context: &mut Context<'_>) -> Option<EntityId> {
        let cpu = context.cpu();
        let (domain, place) = (self.topology.domain_of(cpu), self.topology.place_of(cpu));
        context.touch(self.domains[domain].line, Access::Read);
        let mut candidates = vec![self.unmanaged(domain), self.pinned(cpu)];
        if self.managed_queued > 0 {
            context.touch(self.places[place].line, Access::Read);
            let groups = self.places[place].groups.iter();
            candidates.extend(groups.map(|group| self.groups[*group].entity));
        }
        let mut first: Option<(EntityId, u64)> = None;
        for entity in candidates {
            let state = &self.entities[entity];
            // In the BPF program a group without runnable members has no bit in its place's mask,
            // so its line is not read.
            if state.time.weight > 0 {
                context.touch(state.line, Access::Read);
            }
            let Some(next) = state.queue.iter().next() else {
                continue;
            };
            context.touch(self.tasks[next.task.index()].node, Access::Read);
            let key = self.pick_key(entity, next.deadline);
            if first.is_none_or(|(_, best)| decide::before(key, best)) {
                first = Some((entity, key));
            }
        }
        first.map(|(entity, _)| entity)
    }

    /// Whether the task that ran so far comes before the first of `entity`, and keeps the CPU.
    fn goes_first(&mut self, prev: TaskId, entity: EntityId) -> bool {
        let state = &self.tasks[prev.index()];
        let Some(own) = state.entity.filter(|_| !state.yields) else {
            return false;
        };
        let Some(next) = self.entities[entity].queue.iter().next() else {
            return true;
        };
        let mine = self.deadline(prev, self.slice_in(self.domain_of_entity(own)));
        if own == entity {
            return decide::before(mine, next.deadline);
        }
        decide::before(
            self.pick_key(own, mine),
            self.pick_key(entity, next.deadline),
        )
    }

    /// The pick key of an entity for a CPU that would run its task with `deadline`.
    fn pick_key(&mut self, entity: EntityId, deadline: u64) -> u64 {
        let is_group = self.group_of_entity(entity).is_some();
        let succession = decide::succession(&self.policy, is_group);
        let domain = self.domains[self.domain_of_entity(entity)].time;
        let time = &mut self.entities[entity].time;
        decide::pick_key(&self.policy, time, &domain, succession, deadline)
    }

    /// The first task of `entity` that can run here.
    pub(super) fn first_of(
        &mut self,
        context: &mut Context<'_>,
        entity: EntityId,
    ) -> Option<TaskId> {
        let mut at = 0;
        loop {
            let task = self.entities[entity].queue.iter().nth(at)?.task;
            context.touch(self.tasks[task.index()].node, Access::Read);
            if self.is_free(context, task) {
                return Some(task);
            }
            at += 1;
        }
    }

    /// The picked entity had no task that can run here: takes any other.
    fn first_of_any(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let cpu = context.cpu();
        let own = [
            self.pinned(cpu),
            self.unmanaged(self.topology.domain_of(cpu)),
        ];
        let groups = self.places[self.topology.place_of(cpu)].groups.iter();
        let groups: Vec<EntityId> = groups.map(|group| self.groups[*group].entity).collect();
        own.into_iter()
            .chain(groups)
            .find_map(|entity| self.first_of(context, entity))
    }

    /// A task keeps the CPU for another slice.
    fn renew(&mut self, context: &mut Context<'_>, task: TaskId) -> Pick {
        let now = ns(context);
        let domain = self.topology.domain_of(context.cpu());
        let slice = self.slice_in(domain);
        let state = &mut self.tasks[task.index()];
        state.picked_at = now;
        state.slice = slice;
        state.yields = false;
        self.note_deadline(context.cpu(), task, slice);
        Pick::Task(task)
    }

    /// Notes what a wakeup on `cpu` must be earlier than: `task` runs there, and has `slice` ns left.
    pub(super) fn note_deadline(&mut self, cpu: CpuId, task: TaskId, slice: u64) {
        // A task that goes to sleep has left its entity, and is switched away from.
        let Some(entity) = self.tasks[task.index()].entity else {
            return;
        };
        let time = &self.entities[entity].time;
        let deadline = decide::vruntime(time, self.deadline(task, slice));
        self.cpus[cpu.index()].run_deadline = deadline;
    }

    /// A queued task gets this CPU.
    fn start(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.unqueue(context, task);
        self.displaced.remove(&task);
        self.renew(context, task);
        let (now, cpu) = (ns(context), context.cpu());
        let state = &mut self.tasks[task.index()];
        state.on = Some(cpu);
        state.charged_at = now;
        context.touch(state.line, Access::Write);
        let entity = state.entity.expect("runnable tasks have an entity");
        if let Some(group) = self.group_of_entity(entity) {
            self.groups[group].running += 1;
        }
        if self.cpus[cpu.index()].running.is_none() {
            context.touch(self.idle_line, Access::Write);
        }
        self.cpus[cpu.index()].running = Some(task);
        self.note_batch(cpu, entity);
    }

    /// Notes that a task of `entity` runs next on `cpu`, in the current batch or as the first of a
    /// new one.
    fn note_batch(&mut self, cpu: CpuId, entity: EntityId) {
        let budget_spent =
            !decide::batch_goes_on(&self.policy, self.cpus[cpu.index()].batch_used, true);
        let here = &mut self.cpus[cpu.index()];
        if here.batch != Some(entity) || budget_spent {
            here.batch = Some(entity);
            here.batch_used = 0;
        }
    }

    /// A task loses its CPU.
    pub(super) fn stop(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        let Some(cpu) = state.on.take() else { return };
        let entity = state.entity;
        self.cpus[cpu.index()].running = None;
        if let Some(group) = entity.and_then(|entity| self.group_of_entity(entity)) {
            self.groups[group].running -= 1;
        }
    }

    fn idle(&mut self, context: &mut Context<'_>) -> Pick {
        context.touch(self.idle_line, Access::Write);
        let here = &mut self.cpus[context.cpu().index()];
        here.batch = None;
        here.batch_used = 0;
        Pick::Idle
    }
}
