//! One CPU under the rules of a version, without machine and kernel, for tests of decisions.
//!
//! Weights are in those of nice 0, times in virtual or real ms. The rules are those of two CPUs,
//! where a slice is 1.4 ms, and of HZ 250.

#![expect(clippy::float_arithmetic, reason = "cases are given in ms")]

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::Chosen;
use warmq_units::{Address, CpuId, Cycles, LockId, TaskId};

use crate::affinity::Steering;
use crate::fair::tree::EntityId;

use super::effects::Effects;
use super::settings::Rules;
use super::settings::{Version, settings};
use super::state::{
    Contribution, CpuState, Entity, GroupState, Queue, QueueId, State, TaskState, What,
};
use super::wakeup::Woken;
use super::weights::NICE_0;

pub(super) const TICK: u64 = 4_000_000;
pub(super) const HERE: CpuId = CpuId(0);
pub(super) const AWAKE: Woken = Woken {
    is_new: false,
    sync: false,
    selected: true,
};

/// ms in ns.
pub(super) fn ns(ms: f64) -> i64 {
    (ms * 1e6).round() as i64
}

pub(super) fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// Whether a time in ns is `expected` ms, to half a us.
pub(super) fn close(ns: i64, expected: f64) -> bool {
    (ms(ns) - expected).abs() < 0.000_5
}

/// An empty CPU under the rules of `version`.
pub(super) fn bench(version: Version) -> State {
    let chosen = Chosen::new(settings(version), BTreeMap::new()).expect("its own defaults");
    let nowhere = Address(0);
    let rules = Rules::new(&chosen, 2, TICK);
    State {
        cpus: vec![CpuState::new(LockId(0), 0, nowhere, rules.fair_server)],
        rules,
        queues: vec![Queue::new(HERE, nowhere)],
        entities: Vec::new(),
        tasks: Vec::new(),
        groups: Vec::new(),
        capacities: Vec::new(),
        unlike: false,
        clustered: false,
        nodes_balanced_until: warmq_units::Instant::START,
        nohz: Default::default(),
        stop_cost: Cycles(0),
        resting: BTreeSet::new(),
        overloaded: false,
        effects: Effects::default(),
        cache_aware: None,
        timers: Vec::new(),
        servers: Vec::new(),
        deadlines: Vec::new(),
        period_ends: None,
        period_timer: Default::default(),
        hrtick_cost: Cycles(0),
        steering: Steering::default(),
        line: 64,
        round_robin: 25,
    }
}

impl State {
    pub(super) fn entity_in(&mut self, what: What, queue: QueueId, weight: f64) -> EntityId {
        let slice = self.rules.base_slice;
        self.entities
            .push(Entity::new(what, queue, slice, [Address(0); 2]));
        let entity = self.entities.len() - 1;
        self.entities[entity].weight = (weight * NICE_0 as f64).round() as u64;
        self.entities[entity].attached = true;
        entity
    }

    /// A task that is in no queue, and belongs in `queue`.
    pub(super) fn task_in(&mut self, queue: QueueId, weight: f64) -> EntityId {
        let task = TaskId(self.tasks.len() as u32);
        let entity = self.entity_in(What::Task(task), queue, weight);
        self.entities[entity].flat_weight = self.entities[entity].weight;
        self.tasks.push(TaskState::new(entity));
        entity
    }

    pub(super) fn id(&self, entity: EntityId) -> TaskId {
        match self.entities[entity].what {
            What::Task(task) => task,
            What::Group(_) => panic!("a group is no task"),
        }
    }

    /// A task that waits in `queue` at (w, v, d).
    pub(super) fn waits_in(&mut self, queue: QueueId, (weight, v, d): (f64, f64, f64)) -> EntityId {
        let entity = self.task_in(queue, weight);
        self.put_at(entity, v, d);
        entity
    }

    pub(super) fn waits(&mut self, at: (f64, f64, f64)) -> EntityId {
        self.waits_in(0, at)
    }

    pub(super) fn put_at(&mut self, entity: EntityId, v: f64, d: f64) {
        let state = &mut self.entities[entity];
        (state.vruntime, state.deadline) = (ns(v), ns(d));
        self.count_in(entity);
        self.join(entity);
        if let What::Task(task) = self.entities[entity].what {
            self.task_mut(task).runnable = true;
            self.count_runnable(entity, true);
        }
    }

    /// A task that runs at (w, v, d), protected as if it had just been picked.
    pub(super) fn runs(&mut self, at: (f64, f64, f64)) -> EntityId {
        let entity = self.waits(at);
        let task = self.id(entity);
        self.cpus[0].current = Some(task);
        self.set_current(task, None);
        entity
    }

    /// A group with `shares`, whose entity in the root queue is returned with its own queue.
    pub(super) fn group(&mut self, shares: f64) -> (EntityId, QueueId) {
        self.group_in(0, shares)
    }

    /// The same below `above`.
    pub(super) fn group_in(&mut self, above: QueueId, shares: f64) -> (EntityId, QueueId) {
        let own = self.queues.len();
        let entity = self.entity_in(What::Group(own), above, shares);
        let number = self.groups.len();
        self.queues.push(Queue {
            group: Some(number),
            owner: Some(entity),
            depth: self.queues[above].depth + 1,
            ..Queue::new(HERE, Address(0))
        });
        self.groups.push(GroupState {
            id: warmq_kernel::GroupId::ROOT,
            shares: (shares * NICE_0 as f64) as u64,
            idle: false,
            total: Contribution::default(),
            queues: vec![own],
            line: Address(0),
        });
        (entity, own)
    }

    pub(super) fn v(&self, entity: EntityId) -> i64 {
        self.entities[entity].vruntime
    }

    /// Time passes on the CPU, and what runs is charged.
    pub(super) fn passes(&mut self, span: f64) {
        self.cpus[0].clock += ns(span);
        self.charge(0);
    }

    /// Whether the wakeup of `woken`, which is queued, asks the CPU to pick again.
    pub(super) fn preempts(&mut self, woken: EntityId, how: Woken) -> bool {
        self.effects.take_requests();
        let task = self.id(woken);
        self.check_preempt(HERE, task, how, false);
        !self.effects.take_requests().is_empty()
    }
}
