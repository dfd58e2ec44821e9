//! Tasks that become runnable and stop being so (`enqueue_task_fair()`, `dequeue_entities()`).
//!
//! A task is queued with all entities above it that are not. When it sleeps, it leaves with those
//! above it whose queues become empty. But an entity that owes time is not let go: it stays queued,
//! *delayed*, counts as before in averages and weights, and leaves when it is picked or is taken
//! back when it wakes.

use warmq_classes::Joining;
use warmq_units::TaskId;

use crate::fair::tree::EntityId;

use super::state::{State, What};

/// Why an entity leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It sleeps, and may have to pay first.
    Sleeps,
    /// It sleeps, exits, or is stopped, and leaves at once.
    AtOnce,
    /// It has paid.
    Paid,
    /// It stays runnable, and moves to another CPU.
    Moves,
    /// It stays runnable, and is changed.
    Changes,
}

impl Leaving {
    fn sleeps(self) -> bool {
        self.comes_back() == Joining::Woken
    }

    /// How it comes onto its next queue.
    fn comes_back(self) -> Joining {
        match self {
            Leaving::Sleeps | Leaving::AtOnce | Leaving::Paid => Joining::Woken,
            Leaving::Moves => Joining::Moved,
            Leaving::Changes => Joining::Changed,
        }
    }
}

impl State {
    /// A task becomes runnable on its CPU (`activate_task()`). `is_new`: it was just created.
    pub(super) fn activate(&mut self, task: TaskId, is_new: bool) {
        let state = self.task_mut(task);
        state.runnable = true;
        let (entity, cpu) = (state.entity, state.cpu);
        self.effects.write(self.cpu(cpu).line);
        self.effects.write(self.entities[entity].line);
        if !self.entities[entity].delayed {
            self.overloaded |= self.nr_running(cpu) > 0;
        }
        if self.task(task).class.is_urgent() {
            return self.join_urgent(task);
        }
        if is_new {
            self.presume_util(entity, cpu);
        }
        let delayed = self.entities[entity].delayed;
        let had_none = self.queues[self.cpu(cpu).root].runnable + self.cpu(cpu).delayed == 0;
        match (delayed, self.rules.flat) {
            (true, _) => self.take_back(entity),
            (false, true) => self.enqueue_flat(entity, is_new),
            (false, false) => self.enqueue_task(entity, is_new),
        }
        self.count_runnable(entity, true);
        self.expect(entity, cpu);
        self.cpu_mut(cpu).recency.push(task);
        if had_none {
            self.start_server(cpu);
        }
        if !delayed {
            self.begin_hrtick(cpu);
        }
    }

    /// A task is no longer runnable on its CPU, or not for now (`deactivate_task()`).
    pub(super) fn deactivate(&mut self, task: TaskId, leaving: Leaving) {
        let state = self.task_mut(task);
        state.runnable = false;
        state.joining = leaving.comes_back();
        let (entity, cpu) = (state.entity, state.cpu);
        self.effects.write(self.cpu(cpu).line);
        self.effects.write(self.entities[entity].line);
        if self.task(task).class.is_urgent() {
            self.charge_urgent(task);
            self.cpu_mut(cpu).urgent.remove(task);
            return;
        }
        self.expect_no_more(entity, cpu, leaving != Leaving::Moves);
        self.dequeue(entity, leaving);
        self.count_runnable(entity, false);
        self.cpu_mut(cpu).recency.retain(|other| *other != task);
    }

    /// Counts a task in all queues above it, or no longer.
    pub(super) fn count_runnable(&mut self, entity: EntityId, runnable: bool) {
        let mut next = Some(entity);
        while let Some(entity) = next {
            let queue = &mut self.queues[self.entities[entity].queue];
            match runnable {
                true => queue.runnable += 1,
                false => queue.runnable -= 1,
            }
            next = queue.owner;
        }
    }

    fn enqueue_task(&mut self, entity: EntityId, is_new: bool) {
        let (mut next, mut slice, mut is_new) = (Some(entity), None, is_new);
        while let Some(entity) = next {
            if self.entities[entity].queued {
                if self.entities[entity].delayed {
                    self.take_back(entity);
                }
                break;
            }
            if let Some(slice) = slice {
                self.set_slice(entity, slice);
                self.entities[entity].custom_slice = true;
            }
            self.enqueue_entity(entity, is_new);
            is_new = false;
            slice = self.shortest_slice(self.entities[entity].queue);
            next = self.parent(entity);
        }
        self.refresh(next, slice);
    }

    /// An entity joins its queue (`enqueue_entity()`).
    fn enqueue_entity(&mut self, entity: EntityId, is_new: bool) {
        let runs = self.is_current(entity);
        if runs {
            self.place(entity, is_new);
        }
        self.charge(self.entities[entity].queue);
        self.update_load(entity, true);
        self.update_shares(entity);
        if !runs {
            self.place(entity, is_new);
        }
        self.count_in(entity);
        self.join(entity);
    }

    /// The levels from `next` up are queued already: their load, weights and slices are made up to
    /// date.
    fn refresh(&mut self, next: Option<EntityId>, slice: Option<i64>) {
        let (mut next, mut slice) = (next, slice);
        while let Some(entity) = next {
            self.update_load(entity, true);
            self.update_shares(entity);
            if let Some(slice) = slice {
                self.set_slice(entity, slice);
            }
            slice = self.shortest_slice(self.entities[entity].queue);
            next = self.parent(entity);
        }
    }

    /// An entity leaves its queue, or is delayed there.
    pub(super) fn dequeue(&mut self, entity: EntityId, leaving: Leaving) {
        match self.rules.flat {
            true => self.dequeue_flat(entity, leaving),
            false => self.dequeue_entities(entity, leaving),
        }
    }

    /// An entity and those above it whose queues become empty leave. Where one is delayed, those
    /// above it stay as they are.
    fn dequeue_entities(&mut self, entity: EntityId, leaving: Leaving) {
        let sleeps = leaving.sleeps();
        let (mut next, mut how) = (Some(entity), leaving);
        let mut slice = None;
        while let Some(at) = next {
            let queue = self.entities[at].queue;
            if !self.dequeue_entity(at, how) {
                if at == entity && matches!(self.entities[at].what, What::Task(_)) {
                    return;
                }
                slice = self.shortest_slice(queue);
                break;
            }
            next = self.queues[queue].owner;
            if self.queues[queue].weight > 0 {
                slice = self.shortest_slice(queue);
                if let Some(parent) = next.filter(|_| sleeps) {
                    self.make_buddy(parent);
                }
                break;
            }
            how = Leaving::Sleeps;
        }
        self.refresh(next, slice);
    }

    /// An entity leaves its queue, or is delayed there: then false (`dequeue_entity()`).
    fn dequeue_entity(&mut self, entity: EntityId, leaving: Leaving) -> bool {
        let queue = self.entities[entity].queue;
        self.charge(queue);
        self.clear_buddies(entity);
        if self.is_delayed_by(entity, leaving) {
            return false;
        }
        self.leave_load(entity, leaving);
        let lag = self.lag_on_leaving(entity, leaving);
        self.count_out(entity);
        self.leave(entity);
        self.has_left(entity, lag, leaving);
        self.update_shares(entity);
        true
    }

    /// Whether an entity that is about to leave stays queued, as it sleeps and owes time; if so, it
    /// is delayed from now on (`set_delayed()`).
    pub(super) fn is_delayed_by(&mut self, entity: EntityId, leaving: Leaving) -> bool {
        let may = leaving == Leaving::Sleeps && self.rules.delay_dequeue;
        if !may || self.is_eligible(entity) {
            return false;
        }
        self.update_load(entity, false);
        self.entities[entity].lag = self.lag_now(entity);
        self.set_delayed(entity, true);
        true
    }

    fn set_delayed(&mut self, entity: EntityId, delayed: bool) {
        let state = &mut self.entities[entity];
        let before = std::mem::replace(&mut state.delayed, delayed);
        if let What::Task(task) = state.what {
            let there = &mut self.cpus[self.tasks[task.index()].cpu.index()];
            there.delayed = there.delayed + u64::from(delayed) - u64::from(before);
        }
    }

    /// The averages of an entity that leaves are made up to date; those of a task that moves to
    /// another CPU go with it (`DO_DETACH`).
    pub(super) fn leave_load(&mut self, entity: EntityId, leaving: Leaving) {
        match leaving {
            Leaving::Moves => self.detach_load(entity),
            _ => self.update_load(entity, true),
        }
    }

    pub(super) fn lag_on_leaving(&self, entity: EntityId, leaving: Leaving) -> i64 {
        match leaving {
            Leaving::Paid => self.lag_after_delay(entity),
            _ => self.lag_now(entity),
        }
    }

    /// `entity` has left with `lag`. Unless it sleeps, it keeps the distance to its deadline.
    pub(super) fn has_left(&mut self, entity: EntityId, lag: i64, leaving: Leaving) {
        self.set_delayed(entity, false);
        let state = &mut self.entities[entity];
        state.lag = lag;
        if !leaving.sleeps() && self.rules.place_rel_deadline {
            state.deadline -= state.vruntime;
            state.relative = true;
        }
    }

    /// What a delayed entity is owed as it leaves or wakes: nothing, at best.
    fn lag_after_delay(&self, entity: EntityId) -> i64 {
        let now = self.lag_now(entity);
        let lag = match self.rules.delayed_lag_bounded {
            true => now.max(self.entities[entity].lag),
            false => now,
        };
        match self.rules.delay_zero {
            true => lag.min(0),
            false => now,
        }
    }

    /// A delayed entity is runnable again (`requeue_delayed_entity()`). If it has paid more than it
    /// owed, or its debt has grown, it is placed anew.
    pub(super) fn take_back(&mut self, entity: EntityId) {
        let queue = self.timeline(entity);
        if self.rules.requeue_charges {
            self.charge(queue);
        }
        let (now, lag) = (self.lag_now(entity), self.lag_after_delay(entity));
        let runs = self.is_current(entity);
        if now != lag {
            if !runs {
                self.remove(entity);
            }
            self.queues[queue].entities -= 1;
            self.entities[entity].lag = lag;
            self.place(entity, false);
            self.queues[queue].entities += 1;
            if !runs {
                self.insert(entity);
            }
        }
        self.update_load(entity, false);
        self.set_delayed(entity, false);
    }

    /// A delayed task leaves its queue for good, as it is about to be moved or changed.
    pub(super) fn finish_sleep(&mut self, task: TaskId) {
        let entity = self.entity_of(task);
        if self.entities[entity].delayed {
            self.dequeue(entity, Leaving::Paid);
        }
    }

    /// `entity` and those above it should be picked next (`set_next_buddy()`).
    pub(super) fn make_buddy(&mut self, entity: EntityId) {
        let mut next = Some(entity);
        while let Some(entity) = next.filter(|entity| self.entities[*entity].queued) {
            if self.is_idle_entity(entity) {
                break;
            }
            let queue = self.timeline(entity);
            self.queues[queue].buddy = Some(entity);
            next = self.queues[queue].owner;
        }
    }
}
