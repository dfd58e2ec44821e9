//! Everything that defines one run.

use std::collections::BTreeMap;
use std::fmt;

use warmq_units::{Duration, Seed};

use warmq_config::Value;

use crate::point::pairs;

warmq_units::named! {
    /// The parts that a run is made of, in the order in which they are named.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Part {
        /// Who plays: the laboratory, a guest, this machine.
        World = "world",
        /// The machine that the programs run on.
        Machine = "machine",
        /// The scheduler that decides which task runs.
        Scheduler = "scheduler",
        /// The programs that run.
        Workload = "workload",
    }
}

/// Names of world, machine, scheduler and workload, by the part.
pub(crate) fn named(names: [&str; 4]) -> BTreeMap<Part, String> {
    Part::ALL
        .into_iter()
        .zip(names.map(str::to_owned))
        .collect()
}

impl Part {
    /// The key by which an experiment names it.
    pub fn key(self) -> &'static str {
        self.name()
    }
}

/// The name of the world that simulates.
pub const LAB: &str = "lab";

/// A world, machine, scheduler or workload, with every setting it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Configured {
    /// Its name; for a machine also a path or `host`.
    pub name: String,
    /// All its settings, including those at their defaults, so that equal runs have equal plans.
    pub settings: BTreeMap<String, Value>,
}

/// Everything that defines one run. Equal plans give equal results, so results are stored by plan.
///
/// Made by checking an experiment, so every name is known and every setting present, of the right
/// kind and within its bounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan {
    /// Who plays.
    pub world: Configured,
    /// The machine that the programs run on.
    pub machine: Configured,
    /// The scheduler that decides which task runs.
    pub scheduler: Configured,
    /// The programs that run.
    pub workload: Configured,
    /// The seed of the run.
    pub seed: Seed,
    /// Simulated time before anything is measured.
    pub warmup: Duration,
    /// Simulated time that is measured.
    pub time: Duration,
}

/// A scheduler's name, and the settings of it alone that follow: `NAME:KEY=VALUE;KEY=VALUE`.
pub(crate) fn with_settings(name: &str) -> (&str, &str) {
    let parts = name.split_once(':');
    parts
        .filter(|(_, settings)| settings.contains('='))
        .unwrap_or((name, ""))
}

/// The kernel's own scheduler, in any world; and the setting of a world that says which kernel.
pub const KERNEL: &str = "kernel";

impl Plan {
    /// Whether the laboratory plays it.
    pub fn is_simulated(&self) -> bool {
        self.world.name == LAB
    }
}

impl fmt::Display for Configured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.name, pairs(&self.settings))
    }
}

impl fmt::Display for Plan {
    /// Every fact of the plan on one line; equal lines are equal plans.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            world,
            machine,
            scheduler,
            workload,
            seed: Seed(seed),
            warmup,
            time,
        } = self;
        let (warmup, time) = (warmup.exact(), time.exact());
        write!(
            formatter,
            "{workload} under {scheduler} on {machine}, seed {seed}, {time} after {warmup}, in {world}"
        )
    }
}
