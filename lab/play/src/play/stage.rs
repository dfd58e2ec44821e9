//! What all tasks of a scenario share: its objects, programs, counters and streams.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use warmq_kernel::{Boot, Mm};
use warmq_scenario::program::{Cpus, Planned, Program, SharedStreams, SourceProgram};
use warmq_scenario::{Bound, CounterId, Scenario, TaskKindId};
use warmq_units::{CpuId, Seed, Stream, TaskId};

use super::Trouble;
use super::inbox::Inboxes;
use super::objects::{Objects, make};
use crate::counter::{Counter, Counters};

/// A scenario that is being played.
pub(super) struct Stage {
    pub(super) bound: Bound,
    pub(super) seed: Seed,
    pub(super) line: u64,
    pub(super) objects: Objects,
    /// By table of tasks.
    programs: Vec<Program>,
    pub(super) sources: Vec<SourceProgram>,
    /// By counter of the scenario.
    counters: Vec<Counter>,
    rounds: Counter,
    /// Who sent what waits in the inboxes of rows.
    pub(super) inboxes: Inboxes,
    pub(super) cpus: Cpus,
    pub(super) changes: Vec<Planned>,
    /// An address space for each task, by table, for those that get one of their own.
    own_mms: Vec<Vec<Mm>>,
    /// The tasks that have started and not ended, by table and number.
    alive: RefCell<BTreeMap<(TaskKindId, u64), Vec<TaskId>>>,
    /// The streams that tasks and sources share.
    pub(super) shared: Shared,
}

impl Stage {
    /// Makes all objects.
    pub(super) fn new(
        bound: Bound,
        counters: &Counters,
        boot: &mut Boot<'_>,
    ) -> Result<Stage, Trouble> {
        let all = (0..boot.cpus()).map(CpuId);
        let places = all.map(|cpu| (boot.place(cpu), boot.socket_or_node(cpu)));
        let cpus = crate::cpus(places);
        let objects = make(&bound, &cpus, boot)?;
        let compiled = bound.compile();
        let seed = boot.seed();
        let shared = compiled.shared.iter();
        let shared = shared.map(|name| RefCell::new(seed.stream(name)));
        let scenario = bound.scenario();
        let named = scenario
            .counters()
            .iter()
            .map(|name| counters.counter(name));
        let named = named.collect();
        let kinds = (0..scenario.tasks().len() as u32).map(TaskKindId);
        let own_mms = kinds.map(|kind| (0..bound.tasks(kind)).map(|_| boot.mm()).collect());
        let own_mms = own_mms.collect();
        Ok(Stage {
            seed,
            line: boot.line(),
            objects,
            inboxes: Inboxes::of(&compiled.tasks),
            programs: compiled.tasks,
            sources: compiled.sources,
            counters: named,
            rounds: counters.counter("rounds"),
            changes: bound.planned(&cpus)?,
            cpus,
            own_mms,
            alive: RefCell::default(),
            shared: Shared(shared.collect()),
            bound,
        })
    }

    pub(super) fn scenario(&self) -> &Scenario {
        self.bound.scenario()
    }

    /// The address space that only the `number`th task of `kind` has.
    pub(super) fn own_mm(&self, kind: TaskKindId, number: u64) -> Mm {
        self.own_mms[kind.0 as usize][number as usize]
    }

    pub(super) fn program(&self, kind: TaskKindId) -> &Program {
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

    /// The tasks of `kind` with these numbers that have started and not ended.
    pub(super) fn alive(&self, kind: TaskKindId, numbers: &Range<u64>) -> Vec<TaskId> {
        let alive = self.alive.borrow();
        let tasks = alive.range((kind, numbers.start)..(kind, numbers.end));
        tasks.flat_map(|(_, tasks)| tasks.iter().copied()).collect()
    }
}

/// The streams that tasks and sources share.
#[derive(Clone)]
pub(super) struct Shared(Rc<[RefCell<Stream>]>);

impl SharedStreams for Shared {
    fn with<T>(&self, place: usize, draw: impl FnOnce(&mut Stream) -> T) -> T {
        draw(&mut self.0[place].borrow_mut())
    }
}

/// The streams that a task or a source draws from.
pub(super) type Drawn = warmq_scenario::program::Drawn<Shared>;
