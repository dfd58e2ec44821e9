//! Picking: a CPU goes on with its batch, or takes the entity with the least pick key, or a task
//! from elsewhere.

use warmq_decide as decide;
use warmq_kernel::{Context, Pick};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::entity::Coming;
use super::state::{EntityId, State, ns};
use super::weight::weight_of;

/// The candidate with the least pick key so far.
#[derive(Default)]
struct First {
    entity: Option<EntityId>,
    key: Option<u64>,
}

impl State {
    pub(super) fn pick(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.costs.pick);
        let here = context.cpu();
        context.touch(self.cpus[here.index()].line, Access::Write);
        let mut awake = prev.filter(|prev| context.task(*prev).is_runnable());
        if let Some(task) = awake {
            let may_stay = context.task(task).may_run_on(here);
            // The kernel asks the program for another task only when the slice is over.
            let goes_on = may_stay && self.tasks[task.index()].slice_left(ns(context)) > 0;
            if !goes_on {
                self.count_late(context, task);
            }
            self.charge(context, task);
            if goes_on {
                return Pick::Task(task);
            }
            if !may_stay {
                self.migrate(context, task);
                awake = None;
            }
        }
        let sent = self.first_sent(context);
        let stays = awake.filter(|awake| self.tasks[awake.index()].goes_to.is_none());
        let mut next = sent.or_else(|| self.choose(context, stays));
        if let Some(awake) = awake {
            if next == Some(awake) {
                return self.renew(context, awake);
            }
            self.put_back(context, awake, here);
        }
        // A CPU that goes idle looks once more if anything waits for it.
        if next.is_none() && prev.is_some() && self.waits_at(here) {
            next = self.choose(context, None);
        }
        match next {
            Some(next) => self.start(context, next),
            None => self.idle(context),
        }
    }

    /// Whether a task that is, or will be, on `cpu` belongs to the unmanaged ones there.
    pub(super) fn is_unmanaged(&mut self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        self.entity_for(context.task(task), cpu) == self.unmanaged(self.topology.domain_of(cpu))
    }

    /// Whether a running task is not in the entity where it belongs.
    pub(super) fn is_misplaced(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let belongs = self.entity_for(context.task(task), context.cpu());
        self.tasks[task.index()].entity != Some(belongs)
    }

    /// Whether a task that runs away from its group's home goes on here while nobody else wants the
    /// CPU.
    fn is_split_off(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let view = context.task(task);
        let belongs = self.entity_for(view, context.cpu());
        let Some(group) = self.group_of_entity(belongs) else {
            return false;
        };
        let home = self.topology.cpus_of_place(self.groups[group].home);
        let has_room = home.iter().any(|cpu| self.is_idle(context, *cpu));
        let same = self.tasks[task.index()].entity == Some(belongs);
        view.may_run_on(context.cpu()) && same && !has_room
    }

    /// Brings the weight and the entity of the running task up to date. Returns whether it may go
    /// on here beside others: not if it belongs elsewhere.
    fn may_go_on(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let (here, view) = (context.cpu(), context.task(task));
        if !view.may_run_on(here) {
            return false;
        }
        let belongs = self.entity_for(view, here);
        if !self.serves(here, belongs) {
            return false;
        }
        if self.tasks[task.index()].entity == Some(belongs) {
            self.reweigh(context, task);
        } else {
            self.count_running(task, -1);
            self.settle(context, task, here, Coming::Awake);
            self.count_running(task, 1);
        }
        true
    }

    /// Counts a task in its group's running members, or no longer.
    pub(super) fn count_running(&mut self, task: TaskId, change: i64) {
        let entity = self.tasks[task.index()].entity;
        if let Some(group) = entity.and_then(|entity| self.group_of_entity(entity)) {
            let running = &mut self.groups[group].running;
            *running = running.saturating_add_signed(change);
        }
    }

    /// Queues a task that loses the CPU where it belongs on `cpu`. When this CPU has switched away
    /// from it, an idle CPU may have it.
    pub(super) fn put_back(&mut self, context: &mut Context<'_>, prev: TaskId, cpu: CpuId) {
        let here = context.cpu();
        self.stop(prev);
        self.tasks[prev.index()].queued_at = cpu;
        let view = context.task(prev);
        let entity = self.entity_for(view, cpu);
        let changes = self.tasks[prev.index()].entity != Some(entity);
        let moves = changes && self.group_of_entity(entity).is_some();
        self.settle(context, prev, cpu, Coming::Awake);
        if let Some(room) = self.take_room(context, prev) {
            self.send(context, prev, room);
            self.displaced.insert(prev, Some(room));
            return;
        }
        self.queue(context, prev);
        let mut asked = self.idle_for_queued(context, prev, cpu);
        if let Some(idle) = asked {
            self.claim(context, idle);
        } else if moves {
            let home = self.cpu_to_queue_at(context, prev, cpu);
            let least = self.policy.min_sleep;
            asked = Some(home).filter(|home| self.ends_slice(context, prev, *home, least));
        }
        if asked.is_some() || !self.serves(here, entity) {
            self.displaced.insert(prev, asked);
        }
    }

    /// Whether `cpu`, which was asked to take `task`, still would: members of a group are taken at
    /// its home only.
    pub(super) fn is_for(&self, task: TaskId, cpu: CpuId) -> bool {
        let entity = self.tasks[task.index()].entity;
        entity.is_none_or(|it| self.group_of_entity(it).is_none() || self.serves(cpu, it))
    }

    /// The first task that was sent to this CPU.
    fn first_sent(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let sent = self.cpus[context.cpu().index()].sent.clone();
        sent.into_iter().find(|task| self.is_free(context, *task))
    }

    /// The next task of this CPU, still queued unless it is `awake`, which ran until now.
    fn choose(&mut self, context: &mut Context<'_>, awake: Option<TaskId>) -> Option<TaskId> {
        let stays = awake.filter(|awake| self.may_go_on(context, *awake));
        let first = self.late(context).or_else(|| self.pull_requested(context));
        if first.is_some() {
            return first;
        }
        let batch = self.batch_that_goes_on(context.cpu());
        let Some(entity) = batch.or_else(|| self.first_entity(context)) else {
            return match awake.filter(|it| stays.is_some() || self.is_split_off(context, *it)) {
                Some(awake) => Some(awake),
                None => self.pull(context),
            };
        };
        if let Some(stays) = stays.filter(|stays| self.goes_first(*stays, entity)) {
            return Some(stays);
        }
        let taken = self
            .take(context, entity)
            .or_else(|| self.take_any(context));
        // What waits may not run here: the task goes on.
        taken.or(stays).or_else(|| self.pull(context))
    }

    /// Whether a queued task can run here now. While its CPU still switches away from it, it
    /// cannot; an idle CPU is kicked for it when that is over.
    pub(super) fn is_free(&mut self, context: &Context<'_>, task: TaskId) -> bool {
        let (view, here) = (context.task(task), context.cpu());
        let elsewhere = view.on_cpu().is_some_and(|there| there != here);
        if elsewhere {
            self.displaced.entry(task).or_insert(None);
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
        let mut first = First::default();
        for entity in candidates {
            // In the BPF program a group without runnable members has no bit in its place's mask,
            // so its line is not read.
            if self.entities[entity].time.weight > 0 {
                context.touch(self.entities[entity].line, Access::Read);
            }
            self.consider(context, &mut first, entity);
        }
        first.entity
    }

    /// Compares the pick key of `entity` with the least so far, which is computed only when there
    /// is a second candidate.
    fn consider(&mut self, context: &mut Context<'_>, first: &mut First, entity: EntityId) {
        if self.entities[entity].queue.is_empty() {
            return;
        }
        let Some(best) = first.entity else {
            first.entity = Some(entity);
            return;
        };
        let least = match first.key {
            Some(key) => key,
            None => self.next_pick_key(context, best),
        };
        let key = self.next_pick_key(context, entity);
        (first.entity, first.key) = match decide::before(key, least) {
            true => (Some(entity), Some(key)),
            false => (Some(best), Some(least)),
        };
    }

    /// The pick key of the first task in the queue of `entity`.
    fn next_pick_key(&mut self, context: &mut Context<'_>, entity: EntityId) -> u64 {
        let state = &self.entities[entity];
        let deadline = match state.queue.iter().next() {
            Some(next) => {
                context.touch(self.tasks[next.task.index()].node, Access::Read);
                next.deadline
            }
            None => state.time.avg_vruntime,
        };
        self.pick_key(entity, deadline)
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

    /// The first task of `entity` that can run here, which goes on with the batch or begins
    /// another.
    fn take(&mut self, context: &mut Context<'_>, entity: EntityId) -> Option<TaskId> {
        let task = self.first_of(context, entity)?;
        self.note_batch(context.cpu(), entity);
        Some(task)
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
    fn take_any(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let cpu = context.cpu();
        let own = [
            self.pinned(cpu),
            self.unmanaged(self.topology.domain_of(cpu)),
        ];
        let groups = self.places[self.topology.place_of(cpu)].groups.iter();
        let groups: Vec<EntityId> = groups.map(|group| self.groups[*group].entity).collect();
        own.into_iter()
            .chain(groups)
            .find_map(|entity| self.take(context, entity))
    }

    /// The running task keeps the CPU for another slice.
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

    /// Notes what a wakeup on `cpu` must be earlier than: `task` runs there, and has `slice` ns
    /// left.
    pub(super) fn note_deadline(&mut self, cpu: CpuId, task: TaskId, slice: u64) {
        // A task that goes to sleep has left its entity, and is switched away from.
        let Some(entity) = self.tasks[task.index()].entity else {
            return;
        };
        let time = &self.entities[entity].time;
        let deadline = decide::vruntime(time, self.deadline(task, slice));
        self.cpus[cpu.index()].run_deadline = deadline;
    }

    /// The same for a task that is not counted: as if it had neither lag nor cgroup.
    pub(super) fn note_uncounted(&mut self, context: &Context<'_>, task: TaskId, cpu: CpuId) {
        let state = &self.tasks[task.index()];
        let domain = &self.domains[self.topology.domain_of(cpu)].time;
        let request = decide::request(state.expected, state.ran, state.slice_left(ns(context)));
        let weight = weight_of(context.task(task));
        let deadline = decide::deadline(domain, domain.avg_vruntime, weight, request);
        self.cpus[cpu.index()].run_deadline = deadline;
    }

    /// A queued task gets this CPU, with the slice and the deadline with which it was queued.
    fn start(&mut self, context: &mut Context<'_>, task: TaskId) -> Pick {
        let (now, cpu) = (ns(context), context.cpu());
        let was_queued = self.tasks[task.index()].queued;
        self.unqueue(context, task);
        if let Some(Some(asked)) = self.displaced.remove(&task) {
            context.reschedule(asked);
        }
        let uncounted = self.tasks[task.index()].entity.is_none();
        let uncounted = uncounted && self.is_unmanaged(context, task, cpu);
        let was_elsewhere = !uncounted && self.is_misplaced(context, task);
        if was_elsewhere {
            let coming = self.coming(context, task);
            self.settle(context, task, cpu, coming);
        }
        let state = &mut self.tasks[task.index()];
        state.on = Some(cpu);
        state.waits_since = None;
        state.queued_at = cpu;
        state.charged_at = now;
        state.picked_at = now;
        state.yields = false;
        let (slice, deadline) = (state.slice, state.deadline);
        context.touch(state.line, Access::Write);
        self.count_running(task, 1);
        match self.tasks[task.index()].entity {
            None => {
                self.begin_period(task, now);
                self.note_uncounted(context, task, cpu);
            }
            Some(entity) if was_queued && !was_elsewhere => {
                let deadline = decide::vruntime(&self.entities[entity].time, deadline);
                self.cpus[cpu.index()].run_deadline = deadline;
            }
            Some(_) => self.note_deadline(cpu, task, slice),
        }
        if self.cpus[cpu.index()].running.is_none() {
            self.claim(context, cpu);
        }
        self.cpus[cpu.index()].running = Some(task);
        Pick::Task(task)
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
        self.cpus[cpu.index()].running = None;
        self.count_running(task, -1);
    }

    fn idle(&mut self, context: &mut Context<'_>) -> Pick {
        context.touch(self.idle_line, Access::Write);
        self.idle.insert(context.cpu());
        let here = &mut self.cpus[context.cpu().index()];
        here.batch = None;
        here.batch_used = 0;
        here.crowded_since = None;
        if context.cpu() == CpuId(0) && self.idle_ticks_stop {
            self.watch(context);
        }
        Pick::Idle
    }
}
