//! What this crate needs of the engine: the parts there are, and single runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warmq_config::{Problems, Setting};
pub use warmq_report::Parameter;
use warmq_report::Profile;

use crate::plan::{Part, Plan};

/// Who makes runs.
///
/// `Sync`, because runs execute on several threads at once; every run must be independent of the
/// others, and equal plans must give equal results.
pub trait Runner: Sync {
    /// Whether other runs would disturb this one.
    fn needs_quiet(&self, plan: &Plan) -> bool;

    /// Runs `plan` to its end.
    ///
    /// # Errors
    /// If settings of the plan that are each allowed contradict each other, or if the run ended
    /// without a measurement (the scheduler broke a rule, a stall).
    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError>;
}

/// The engine as experiments see it.
pub trait Simulator: Runner {
    /// The names of all parts of a kind that are built in, for suggestions and lists.
    fn names(&self, part: Part) -> Vec<String>;

    /// The settings of one part, given by its name or, for machines, a path or `host`.
    ///
    /// # Errors
    /// [`PartError::Unknown`] if there is none of that name, [`PartError::Broken`] if there is one
    /// (a machine's file) that cannot be used.
    fn settings(&self, part: Part, name: &str) -> Result<Vec<Setting>, PartError>;

    /// Whether the scheduler (or workload) called `name`, which is known, can be used in `world`.
    ///
    /// # Errors
    /// Why not, and what to use.
    fn takes(&self, world: &str, part: Part, name: &str) -> Result<(), String>;

    /// Why a scheduler that is known cannot be played in this world here: its program is missing.
    /// Its runs give no measurement ([`Cause::NoProgram`]).
    fn missing(&self, _world: &str, _scheduler: &str) -> Option<String> {
        None
    }

    /// Every figure that a run of these can give.
    fn metrics(&self, used: &Used<'_>) -> Vec<MetricDescription>;

    /// Every histogram that a run of these can give.
    fn histograms(&self, used: &Used<'_>) -> Vec<HistogramDescription>;
}

/// Why a part cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// There is no part of that name.
    #[error("there is none of that name")]
    Unknown,
    /// It exists but cannot be used; the text says why.
    #[error("{0}")]
    Broken(String),
    /// Its file describes no machine.
    #[error("{0}")]
    Problems(Problems),
}

/// A figure that a run can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricDescription {
    /// The name by which an experiment asks for it: `walk_l2_miss_ratio`.
    pub name: String,
    /// Its unit: `%`, `us`, `1/s`; empty for a plain number.
    pub unit: String,
    /// What it is, in a sentence.
    pub what: String,
}

/// A histogram that a run can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramDescription {
    /// The name by which an experiment asks for it: `bus_by_page_offset`.
    pub name: String,
    /// What is counted along the axis: `offset in the page`.
    pub along: String,
    /// The unit of the counts.
    pub unit: String,
    /// What it is, in a sentence.
    pub what: String,
}

/// Parts whose runs give figures of their own, by name. Unknown names are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used<'n> {
    /// Workloads: figures of their tasks, spans and counters.
    pub workloads: Vec<&'n str>,
    /// Schedulers: what they say of those tasks.
    pub schedulers: Vec<&'n str>,
}

/// The measurement of one run.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Measured {
    /// Metric to value. A metric that means nothing for this run (chat's messages in web) is
    /// absent.
    pub figures: BTreeMap<String, f64>,
    /// Histogram to its bins: (where on the axis, how much), ascending.
    pub histograms: BTreeMap<String, Vec<(f64, f64)>>,
    /// The digest of everything that happened, in hexadecimal.
    pub digest: String,
    /// How the run ended, in words: `time up`.
    pub ending: String,
    /// Every parameter of the model, with its source.
    pub parameters: Vec<Parameter>,
    /// What was not played as the workload says, a sentence each.
    pub notes: Vec<String>,
    /// What the program of a compiled scheduler did, if it was profiled.
    pub profile: Option<Profile>,
}

/// The ending of a run that lasted as long as it should.
pub const TIME_UP: &str = "time up";

/// Why a run gave no measurement.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Serialize, Deserialize,
)]
#[error("{what}")]
pub struct RunError {
    /// The kind of failure.
    pub cause: Cause,
    /// What happened, in a sentence: the task or scheduler, the rule, the time.
    pub what: String,
}

impl RunError {
    /// Whether the run was left out, as if nobody had asked for it.
    pub fn is_left_out(&self) -> bool {
        self.cause == Cause::NoProgram
    }
}

/// Why a run gave no measurement, by what the user should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The plan's settings contradict each other.
    Setting,
    /// The scheduler gave an answer that no kernel could act on.
    SchedulerBroke,
    /// Nothing can happen any more, or a runnable task did not run for too long.
    Stalled,
    /// The workload did not fit into the machine's memory.
    MemoryFull,
    /// Something happened that no machine can do, or a task was left waiting beside an idle CPU for
    /// longer than the scheduler promises.
    InvariantBroken,
    /// A program of the workload did something that no kernel or library allows.
    ProgramBroke,
    /// This machine, or the guest, did not let it be played.
    WorldRefused,
    /// The program of a compiled scheduler is not here: the run is left out.
    NoProgram,
}
