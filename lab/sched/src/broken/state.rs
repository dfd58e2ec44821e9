//! What the scheduler knows of CPUs, tasks, groups and fragments.

use std::collections::{BTreeMap, BTreeSet};

use warmq_kernel::{Attach, Context, Fragment, GroupId, Policy, UnknownCost, View, weight_of_nice};
use warmq_machine::{Access, CpuPlace};
use warmq_units::{Address, Bytes, CpuId, CpuSet, Cycles, Instant, LockId, TaskId};

use super::fault::Fault;
use super::time::{self, EntityId, NICE_0, ROOT, Tree};

/// Invariant: a task is in `queued` if and only if it is runnable, has no CPU and `queued_at` is
/// when it began to wait; `runnable` says whether its entity is.
#[derive(Default)]
pub(super) struct TaskState {
    pub(super) entity: EntityId,
    pub(super) runnable: bool,
    /// The CPU at which it is queued, or where it runs.
    pub(super) cpu: CpuId,
    pub(super) running: bool,
    pub(super) queued_at: i64,
    pub(super) charged_at: i64,
    pub(super) picked_at: i64,
    /// Nobody finds it before.
    pub(super) hidden_until: i64,
    /// It has slept since it was created.
    pub(super) woken: bool,
    /// Counts up with each task that becomes runnable.
    pub(super) arrived: u64,
    /// Who woke it last.
    pub(super) woken_by: Option<TaskId>,
    /// It leaves its CPU for a better one at the next pick.
    pub(super) leaves: bool,
    pub(super) yields: bool,
    pub(super) fragment: Option<Fragment>,
    /// Its affinity at fork, where changes are ignored.
    pub(super) allowed_at_fork: Option<CpuSet>,
    line: Address,
}

pub(super) struct State {
    pub(super) fault: Fault,
    pub(super) tree: Tree,
    pub(super) tasks: Vec<TaskState>,
    /// The entity of each group that was met.
    groups: BTreeMap<GroupId, EntityId>,
    pub(super) queued: BTreeSet<TaskId>,
    pub(super) places: Vec<CpuPlace>,
    /// The group that each CPU ran last.
    pub(super) last_group: Vec<EntityId>,
    /// The last-level cache where the tasks of a fragment belong.
    homes: BTreeMap<Fragment, u16>,
    pub(super) lock: LockId,
    pub(super) gaps_closed_at: i64,
    pub(super) arrivals: u64,
    pub(super) wakeups: u64,
    pub(super) line: Address,
    pub(super) pick_cost: Cycles,
    pub(super) wakeup_cost: Cycles,
}

/// Nanoseconds since time started.
pub(super) fn ns(context: &Context<'_>) -> i64 {
    (context.now() - Instant::START).as_ns() as i64
}

impl State {
    pub(super) fn new(attach: &mut Attach<'_>, fault: Fault) -> Result<State, UnknownCost> {
        let lock = attach.lock("queue");
        Ok(State {
            fault,
            tree: Tree::new(attach.cpus()),
            tasks: Vec::new(),
            groups: BTreeMap::new(),
            queued: BTreeSet::new(),
            places: (0..attach.cpus())
                .map(|cpu| attach.place(CpuId(cpu)))
                .collect(),
            last_group: vec![ROOT; attach.cpus().into()],
            homes: BTreeMap::new(),
            lock,
            gaps_closed_at: 0,
            arrivals: 0,
            wakeups: 0,
            line: attach.data(Bytes(1)),
            pick_cost: attach.cost("schedule_fixed")?,
            wakeup_cost: attach.cost("wakeup")?,
        })
    }

    pub(super) fn task(&self, task: TaskId) -> &TaskState {
        &self.tasks[task.index()]
    }

    pub(super) fn task_mut(&mut self, task: TaskId) -> &mut TaskState {
        &mut self.tasks[task.index()]
    }

    pub(super) fn touch(&self, context: &mut Context<'_>, task: TaskId) {
        context.touch(self.task(task).line, Access::Write);
    }

    /// Makes room for `task`, which was just created. Forks on two CPUs may be reported in another
    /// order than that of the task numbers.
    pub(super) fn admit(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = ns(context);
        while self.tasks.len() <= task.index() {
            let entity = self.tree.add(Some(ROOT), NICE_0);
            self.tasks.push(TaskState {
                entity,
                queued_at: now,
                charged_at: now,
                picked_at: now,
                line: context.data(Bytes(1)),
                ..TaskState::default()
            });
        }
        let allowed = context.task(task).allowed().cloned();
        self.task_mut(task).allowed_at_fork = allowed;
        self.bring_up_to_date(context, task);
    }

    /// Gives a task that is not runnable the weight and the group that it has.
    pub(super) fn bring_up_to_date(&mut self, context: &Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (weight, group) = (self.weight_of(view), view.group());
        let parent = self.entity_of(context, group);
        let entity = self.task(task).entity;
        self.tree.move_to(entity, parent);
        self.tree.reweigh(entity, weight);
    }

    /// The scheduling class of real-time tasks is not there: they have a weight beside which one of
    /// nice 0 has the 5 % that kernels keep for other tasks.
    fn weight_of(&self, view: View<'_>) -> i64 {
        if self.fault == Fault::IgnoresWeights {
            return NICE_0;
        }
        match view.policy() {
            Policy::Other | Policy::Batch => weight_of_nice(view.nice()) as i64,
            // WEIGHT_IDLEPRIO of kernel/sched/sched.h.
            Policy::Idle => 3,
            Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_) => 19 * NICE_0,
        }
    }

    fn entity_of(&mut self, context: &Context<'_>, group: GroupId) -> EntityId {
        if self.fault == Fault::IgnoresGroups {
            return ROOT;
        }
        if let Some(known) = self.groups.get(&group) {
            return *known;
        }
        let Some(parent) = context.group(group).parent else {
            return ROOT;
        };
        let parent = self.entity_of(context, parent);
        let weight = self.weight_of_group(context, group);
        let entity = self.tree.add(Some(parent), weight);
        self.groups.insert(group, entity);
        entity
    }

    fn weight_of_group(&self, context: &Context<'_>, group: GroupId) -> i64 {
        match self.fault {
            Fault::IgnoresWeights => NICE_0,
            _ => time::of_group(context.group(group).weight),
        }
    }

    pub(super) fn group_reweighed(&mut self, context: &Context<'_>, group: GroupId) {
        if let Some(entity) = self.groups.get(&group).copied() {
            let weight = self.weight_of_group(context, group);
            self.tree.reweigh(entity, weight);
        }
    }

    /// Whether `task` may run on `cpu`, and the scheduler believes so.
    pub(super) fn may_run(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        let view = context.task(task);
        let believed = self.task(task).allowed_at_fork.as_ref();
        let believed = believed.filter(|_| self.fault == Fault::IgnoresChanges);
        let possible = |set: &&CpuSet| set.iter().any(|cpu| view.may_run_on(cpu));
        let believed = believed.filter(possible);
        view.may_run_on(cpu) && believed.is_none_or(|set| set.contains(cpu))
    }

    pub(super) fn cache(&self, cpu: CpuId) -> u16 {
        self.places[cpu.index()].llc
    }

    /// The other CPUs of the core of `cpu`.
    pub(super) fn siblings(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> {
        let core = |cpu: CpuId| self.places[cpu.index()].core;
        let all = (0..self.places.len() as u16).map(CpuId);
        all.filter(move |other| *other != cpu && core(*other) == core(cpu))
    }

    /// The cache where `task` belongs by the fragment that it named, if it may run there.
    pub(super) fn home(&self, context: &Context<'_>, task: TaskId) -> Option<u16> {
        let home = *self.homes.get(&self.task(task).fragment?)?;
        let mut cpus = (0..context.cpus()).map(CpuId);
        cpus.any(|cpu| self.cache(cpu) == home && self.may_run(context, task, cpu))
            .then_some(home)
    }

    /// `task` names a fragment; a new one gets the cache with the fewest fragments, `here` if there
    /// are several.
    pub(super) fn follow(&mut self, task: TaskId, fragment: Option<Fragment>, here: CpuId) {
        if matches!(self.fault, Fault::IgnoresHints | Fault::IgnoresCaches) {
            return;
        }
        self.task_mut(task).fragment = fragment;
        let Some(fragment) = fragment else { return };
        if self.homes.contains_key(&fragment) {
            return;
        }
        let homed = |cache: u16| self.homes.values().filter(|home| **home == cache).count();
        let here = self.cache(here);
        let caches: BTreeSet<u16> = self.places.iter().map(|place| place.llc).collect();
        let caches = caches.into_iter();
        let least = caches.min_by_key(|cache| (homed(*cache), *cache != here));
        self.homes.insert(fragment, least.unwrap_or(here));
    }

    /// Charges a running task for what it ran since the last charge.
    pub(super) fn charge(&mut self, context: &Context<'_>, task: TaskId) {
        let now = ns(context);
        let state = self.task_mut(task);
        if !state.running {
            return;
        }
        let ran = (now - state.charged_at).max(0);
        state.charged_at = now;
        let entity = state.entity;
        self.tree.charge(entity, ran);
    }

    /// A task becomes runnable.
    pub(super) fn enter(&mut self, task: TaskId, forgiven: bool) {
        let state = self.task_mut(task);
        if !std::mem::replace(&mut state.runnable, true) {
            let entity = state.entity;
            self.tree.enter(entity, forgiven);
        }
    }

    /// A task is not runnable any more.
    pub(super) fn leave(&mut self, task: TaskId) {
        let state = self.task_mut(task);
        if std::mem::replace(&mut state.runnable, false) {
            let entity = state.entity;
            self.tree.leave(entity);
        }
    }

    /// A runnable task waits at `cpu` from now on.
    pub(super) fn queue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let now = ns(context);
        let state = self.task_mut(task);
        state.running = false;
        state.cpu = cpu;
        state.queued_at = now;
        self.queued.insert(task);
        context.touch(self.line, Access::Write);
        self.touch(context, task);
    }
}
