//! What all tasks of a scenario share: its objects, programs, counters and streams.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use warmq_kernel::{Boot, Mm};
use warmq_scenario::{Action, Bound, CounterId, ObjectId, Reference, Scenario, Step};
use warmq_scenario::{StreamName, TaskKind, TaskKindId};
use warmq_units::{Seed, Stream, TaskId};

use super::Trouble;
use super::inbox::Inboxes;
use super::objects::{Made, Queue, make};
use super::parts;
use super::program::Program;
use super::specs::Machine;
use crate::counter::{Counter, Counters};

/// The programs of a table of tasks.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) setup: Program,
    pub(super) body: Program,
    /// The tables of sockets whose datagrams it answers.
    pub(super) answered: BTreeSet<ObjectId>,
}

/// The tables of sockets on which tasks of `kind` answer.
fn answered(kind: &TaskKind) -> BTreeSet<ObjectId> {
    let mut answered = BTreeSet::new();
    let mut visit = |step: &Step| {
        if let Action::Reply { socket, .. } = &step.action {
            answered.insert(socket.object);
        }
    };
    kind.steps().for_each(|step| step.walk(&mut visit));
    answered
}

/// A scenario that is being played.
pub(super) struct Stage {
    pub(super) bound: Bound,
    pub(super) seed: Seed,
    pub(super) line: u64,
    /// By table of objects.
    pub(super) made: Vec<Made>,
    /// By table of tasks.
    programs: Vec<Programs>,
    /// By counter of the scenario.
    counters: Vec<Counter>,
    rounds: Counter,
    /// Who sent what waits in the inboxes of rows.
    pub(super) inboxes: Inboxes,
    pub(super) machine: Machine,
    /// An address space for each task, by table, for those that get one of their own.
    own_mms: Vec<Vec<Mm>>,
    /// The tasks that have started and not ended, by table and number.
    alive: RefCell<BTreeMap<(TaskKindId, u64), Vec<TaskId>>>,
    shared_streams: RefCell<BTreeMap<String, Rc<RefCell<Stream>>>>,
}

impl Stage {
    /// Makes all objects.
    pub(super) fn new(
        bound: Bound,
        counters: &Counters,
        boot: &mut Boot<'_>,
    ) -> Result<Stage, Trouble> {
        let made = make(&bound, boot)?;
        parts::name(&bound, &made, boot);
        let scenario = bound.scenario();
        let programs = scenario.tasks().iter().map(|kind| Programs {
            setup: Program::of(&kind.setup, &bound),
            body: Program::of(&kind.body, &bound),
            answered: answered(kind),
        });
        let programs = programs.collect();
        let named = scenario
            .counters()
            .iter()
            .map(|name| counters.counter(name));
        let named = named.collect();
        let kinds = (0..scenario.tasks().len() as u32).map(TaskKindId);
        let own_mms = kinds.map(|kind| (0..bound.tasks(kind)).map(|_| boot.mm()).collect());
        let own_mms = own_mms.collect();
        Ok(Stage {
            seed: boot.seed(),
            line: boot.line(),
            made,
            programs,
            counters: named,
            rounds: counters.counter("rounds"),
            inboxes: Inboxes::of(scenario),
            machine: Machine::new(boot),
            own_mms,
            alive: RefCell::default(),
            shared_streams: RefCell::default(),
            bound,
        })
    }

    pub(super) fn scenario(&self) -> &Scenario {
        self.bound.scenario()
    }

    /// The table of objects that `reference` is about.
    pub(super) fn made(&self, reference: &Reference) -> &Made {
        &self.made[reference.object.0 as usize]
    }

    /// The `number`th queue of the table that `reference` is about.
    pub(super) fn queue(&self, reference: &Reference, number: usize) -> &Queue {
        match self.made(reference) {
            Made::Queues(queues) => &queues[number],
            _ => unreachable!("the reader resolves queues to queues"),
        }
    }

    /// The address space that only the `number`th task of `kind` has.
    pub(super) fn own_mm(&self, kind: TaskKindId, number: u64) -> Mm {
        self.own_mms[kind.0 as usize][number as usize]
    }

    pub(super) fn programs(&self, kind: TaskKindId) -> &Programs {
        &self.programs[kind.0 as usize]
    }

    pub(super) fn count(&self, counter: CounterId, by: u64) {
        self.counters[counter.0 as usize].add(by);
    }

    /// Every counter with what it has counted since the start, in the order of the scenario's
    /// names: rounds are last.
    pub(super) fn counts(&self) -> Vec<(u32, u64)> {
        let all = self.counters.iter().chain([&self.rounds]);
        (0..).zip(all.map(Counter::get)).collect()
    }

    pub(super) fn count_round(&self) {
        self.rounds.add(1);
    }

    /// `task` starts, which is the `number`th of `kind`. There may be several of a spawned one.
    pub(super) fn starts(&self, kind: TaskKindId, number: u64, task: TaskId) {
        let mut alive = self.alive.borrow_mut();
        alive.entry((kind, number)).or_default().push(task);
    }

    /// `task` ends.
    pub(super) fn ends(&self, kind: TaskKindId, number: u64, task: TaskId) {
        if let Some(tasks) = self.alive.borrow_mut().get_mut(&(kind, number)) {
            tasks.retain(|other| *other != task);
        }
    }

    /// The tasks of `kind` that have started and not ended: those of `number`, or all.
    pub(super) fn alive(&self, kind: TaskKindId, number: Option<u64>) -> Vec<TaskId> {
        let numbers = match number {
            Some(number) => (number, number),
            None => (0, u64::MAX),
        };
        let alive = self.alive.borrow();
        let tasks = alive.range((kind, numbers.0)..=(kind, numbers.1));
        tasks.flat_map(|(_, tasks)| tasks.iter().copied()).collect()
    }

    /// The stream `name` for the `number`th task of `kind`: its own, or one for all.
    pub(super) fn stream(
        &self,
        name: &StreamName,
        kind: TaskKindId,
        number: u64,
    ) -> Rc<RefCell<Stream>> {
        let new = || Rc::new(RefCell::new(name.stream(self.seed, kind, number)));
        match name {
            StreamName::OfStep(_) => new(),
            StreamName::Shared(shared) => {
                let mut streams = self.shared_streams.borrow_mut();
                streams.entry(shared.clone()).or_insert_with(new).clone()
            }
        }
    }
}
