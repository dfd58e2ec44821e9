//! A scenario that was read and checked.

use std::sync::Arc;

use warmq_config::{Document, Place, Problem, Problems, Setting};
use warmq_trace::Names;

use crate::change::{Change, Phase, Set, Target};
use crate::fidelity::{Note, WorldKind};
use crate::object::{Object, ObjectId, ObjectKind};
use crate::step::{Action, SpanId};
use crate::task::{TaskKind, TaskKindId};

/// In which order tasks start that start at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In that of the file, then by index.
    Listed,
    /// In a random one, from the stream "order of tasks".
    Random,
}

/// A latency span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// How many indexes it has.
    pub indexes: usize,
}

/// A workload as data.
///
/// Invariant: every id in it is of one of its own tables, and it can be bound to the defaults of
/// its settings.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) document: Arc<Document>,
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) work: String,
    pub(crate) order: Order,
    pub(crate) settings: Vec<Setting>,
    pub(crate) objects: Vec<Object>,
    pub(crate) tasks: Vec<TaskKind>,
    pub(crate) changes: Vec<Change>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) spans: Vec<Span>,
    pub(crate) counters: Vec<String>,
    /// The verbs, objects and keys that it uses, and what it uses some of them for, for its
    /// fidelity; sorted.
    pub(crate) uses: Vec<&'static str>,
    pub(crate) remarks: Vec<Problem>,
}

impl Scenario {
    /// Reads `text`, which messages call `name`, and checks it.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place and a fix.
    pub fn read(name: &str, text: &str) -> Result<Scenario, Problems> {
        Scenario::of(Document::parse(name, text)?)
    }

    /// Reads `text` as a script of rt-app if it looks like JSON, or if `name` ends with `.json`,
    /// and as TOML otherwise.
    ///
    /// # Errors
    /// As [`Scenario::read`] and [`Scenario::read_rt_app`].
    pub fn read_any(name: &str, text: &str) -> Result<Scenario, Problems> {
        match crate::rt_app::is_json(name, text) {
            true => Scenario::read_rt_app(name, text),
            false => Scenario::read(name, text),
        }
    }

    /// Whether `text` is a scenario, as [`Scenario::read_any`] reads it, and not another document:
    /// a script of rt-app, or TOML with tasks. A text that is neither is none, and no other
    /// document.
    pub fn is_one(name: &str, text: &str) -> bool {
        let has_tasks = || Document::parse(name, text).is_ok_and(|document| document.has("task"));
        crate::rt_app::is_json(name, text) || has_tasks()
    }

    /// What a script in another language says that is played otherwise, or not at all: what, why
    /// and where, each once. A scenario in TOML has none.
    pub fn remarks(&self) -> &[Problem] {
        &self.remarks
    }

    /// A refusal of the scenario, for what only its reader knows: what is wrong, and how to fix it.
    pub fn refused(&self, what: impl Into<String>, help: impl Into<String>) -> Problems {
        let place = Place::in_file(0..0);
        let list = vec![self.document.problem("", &place, what, help)];
        Problems { list }
    }

    /// Its title; empty where it has none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it is, in sentences.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The counter that is the work done; `rounds` counts completed bodies.
    pub fn work(&self) -> &str {
        &self.work
    }

    /// In which order its tasks start.
    pub fn order(&self) -> Order {
        self.order
    }

    /// What can be set.
    pub fn settings(&self) -> Vec<Setting> {
        self.settings.clone()
    }

    /// What there is; an [`ObjectId`] is a place in it.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// An object.
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    /// Who does what; a [`TaskKindId`] is a place in it.
    pub fn tasks(&self) -> &[TaskKind] {
        &self.tasks
    }

    /// A task.
    pub fn task(&self, id: TaskKindId) -> &TaskKind {
        &self.tasks[id.0 as usize]
    }

    /// What changes meanwhile, in the order of the file.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Everything that steps set, and then everything that changes set.
    pub fn sets(&self) -> impl Iterator<Item = &Set> {
        let changes = self.changes.iter().flat_map(|change| &change.set);
        self.set_by_steps().chain(changes)
    }

    /// Everything that steps set.
    pub fn set_by_steps(&self) -> impl Iterator<Item = &Set> {
        let steps = self.tasks.iter().flat_map(TaskKind::steps);
        steps.filter_map(|step| match &step.action {
            Action::Set(set) => Some(&**set),
            _ => None,
        })
    }

    /// Parts of the run that get metrics of their own, in the order of the file.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Its latency spans; a [`SpanId`] is a place in it.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// A latency span.
    pub fn span(&self, id: SpanId) -> &Span {
        &self.spans[id.0 as usize]
    }

    /// The names of its counters; a [`CounterId`] is a place in it.
    pub fn counters(&self) -> &[String] {
        &self.counters
    }

    /// The names that records of a run give by number. Rounds are the last counter.
    pub fn names(&self) -> Names {
        let tasks = self.tasks.iter().map(|task| task.key.clone());
        let spans = self.spans.iter().map(|span| span.name.clone());
        let phases = self.phases.iter().map(|phase| phase.name.clone());
        let rounds = std::iter::once("rounds".to_owned());
        Names {
            tasks: tasks.collect(),
            spans: spans.collect(),
            counters: self.counters.iter().cloned().chain(rounds).collect(),
            phases: phases.collect(),
            groups: self.limited_groups(),
            spinlocks: self.spinlocks().collect(),
            work: self.work.clone(),
        }
    }

    /// Whether it uses `feature`: a verb, an object or a key, or what a key is used for (`policy
    /// fifo or rr`). Schedulers of the lab say by these what they play otherwise.
    pub fn uses(&self, feature: &str) -> bool {
        self.uses.contains(&feature)
    }

    /// The tables of spin locks.
    fn spinlocks(&self) -> impl Iterator<Item = String> {
        let spinlocks = self
            .objects
            .iter()
            .filter(|object| matches!(object.kind, ObjectKind::Spinlock(_)));
        spinlocks.map(|object| object.name.clone())
    }

    /// The tables of groups that have a quota at some time.
    fn limited_groups(&self) -> Vec<String> {
        let sets_quota = |id: ObjectId| {
            let of_group = self
                .changes
                .iter()
                .filter(move |change| match &change.target {
                    Target::Group(group) => group.object == id,
                    Target::Groups(groups) => *groups == id,
                    _ => false,
                });
            let mut sets = of_group.flat_map(|change| &change.set);
            sets.any(|set| matches!(set, Set::Quota(_)))
        };
        let objects = (0..).map(ObjectId).zip(&self.objects);
        let limited = objects.filter(|(id, object)| match &object.kind {
            ObjectKind::Group { quota, .. } => quota.is_some() || sets_quota(*id),
            _ => false,
        });
        limited.map(|(_, object)| object.name.clone()).collect()
    }

    /// Where `world` plays this scenario otherwise than it says.
    pub fn fidelity(&self, world: WorldKind) -> Vec<Note> {
        crate::fidelity::notes(&self.uses, world)
    }
}
