//! Everything that defines one run.

use std::collections::BTreeMap;
use std::fmt;

use warmq_units::{Duration, Seed};

use warmq_config::Value;

/// The three parts that a run is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What the programs run on.
    Machine,
    /// Who decides which runs.
    Scheduler,
    /// What runs.
    Workload,
}

impl Part {
    /// All parts, in the order in which they are named.
    pub const ALL: [Part; 3] = [Part::Machine, Part::Scheduler, Part::Workload];

    /// The key under which an experiment names it.
    pub fn key(self) -> &'static str {
        match self {
            Part::Machine => "machine",
            Part::Scheduler => "scheduler",
            Part::Workload => "workload",
        }
    }
}

/// A machine, scheduler or workload, with every setting it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chosen {
    /// Its name; for a machine also a path or `host`.
    pub name: String,
    /// All its settings, those left at their default too: so equal runs are equal plans.
    pub settings: BTreeMap<String, Value>,
}

/// Everything that defines one run. Equal plans give equal results, so results are kept by plan.
///
/// Made by checking an experiment, so every name is known and every setting present, of the right
/// kind and within its bounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan {
    /// What the programs run on.
    pub machine: Chosen,
    /// Who decides which runs.
    pub scheduler: Chosen,
    /// What runs.
    pub workload: Chosen,
    /// What makes one run differ from the next.
    pub seed: Seed,
    /// Simulated time before anything is measured.
    pub warmup: Duration,
    /// Simulated time that is measured.
    pub time: Duration,
}

impl Plan {
    /// The part `part` of this plan.
    pub fn part(&self, part: Part) -> &Chosen {
        match part {
            Part::Machine => &self.machine,
            Part::Scheduler => &self.scheduler,
            Part::Workload => &self.workload,
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        let settings: Vec<String> = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        write!(formatter, " ({})", settings.join(", "))
    }
}

impl fmt::Display for Plan {
    /// Every fact of the plan on one line; equal lines are equal plans.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            machine,
            scheduler,
            workload,
            seed,
            ..
        } = self;
        write!(
            formatter,
            "{workload} under {scheduler} on {machine}, seed {}, ",
            seed.0
        )?;
        let (warmup, time) = (self.warmup.exact(), self.time.exact());
        write!(formatter, "{time} after {warmup}")
    }
}
