//! A law as data.

use serde::{Deserialize, Serialize};
use warmq_scenario::{Scenario, WorldKind};
use warmq_units::{Duration, Release};

/// What any decent scheduler keeps: a scenario and bounds for its figures, with the reason.
#[derive(Clone, Debug)]
pub struct Law {
    /// Its name: that of its file, without the ending.
    pub name: String,
    /// What it is about; the matrix is in this order.
    pub family: Family,
    /// What it says, in a sentence: the scenario's title.
    pub says: String,
    /// Why the bounds are what they are.
    pub because: String,
    /// The machine: its description's name.
    pub machine: String,
    /// How many CPUs it has.
    pub cpus: u16,
    /// True if it asks only where tasks run and what they get over seconds, not how long they wait:
    /// then a guest of any number of CPUs may count instructions.
    pub counted: bool,
    /// How long it is played before anything is measured.
    pub warmup: Duration,
    /// How long it is measured.
    pub time: Duration,
    /// Worlds in which it says nothing, and why.
    pub skipped: Vec<(WorldKind, String)>,
    /// The fault under which the lab's scheduler `broken` breaks it; all shipped laws that the lab
    /// plays have one.
    pub broken_by: Option<String>,
    /// What is kept; none if it is a scenario that is compared alone.
    pub bounds: Vec<Bound>,
    /// What is played.
    pub scenario: Scenario,
}

warmq_units::named! {
    /// What a law is about, by its name in law files and in the order of the matrix. The last is of
    /// scenarios, which are no laws.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[allow(missing_docs, reason = "the names say it")]
    pub enum Family {
        Shares = "shares",
        Starvation = "starvation",
        Latency = "latency",
        Quota = "quota",
        Mixes = "mixes",
        WorkConservation = "work conservation",
        Locality = "locality",
        Robustness = "robustness",
        Scenarios = "scenarios",
    }
}

impl Family {
    /// Those that a law file may name.
    pub fn of_laws() -> &'static [(&'static str, Family)] {
        let [laws @ .., _] = &Family::NAMES;
        laws
    }
}

/// A figure and how large or small it may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The figure's name: `hog_share`, `storm.trip_p99`.
    pub figure: String,
    /// Its unit.
    pub unit: &'static str,
    /// The side on which it may not lie.
    pub side: Side,
    /// How far it may go.
    pub limit: Limit,
    /// How far it may go under the kernel's own scheduler, each from a release on, oldest first.
    pub since: Vec<(Release, Limit)>,
}

/// Which side of the limit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The limit and more.
    AtLeast,
    /// The limit and less.
    AtMost,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A number in the figure's unit.
    Number(f64),
    /// A part of another figure of the same run.
    Of {
        /// The part; 0.6 for `60 % of`.
        part: f64,
        /// The other figure.
        figure: String,
    },
}

impl Bound {
    /// How far it may go where `kernel` is the release whose own scheduler runs; none where another
    /// scheduler does.
    pub fn limit_in(&self, kernel: Option<Release>) -> &Limit {
        let mut since = self.since.iter();
        let last = since.rfind(|(release, _)| kernel.is_some_and(|kernel| kernel >= *release));
        last.map_or(&self.limit, |(_, limit)| limit)
    }

    /// Whether the figure is a time, which whatever takes CPUs away from the machine lengthens.
    pub fn is_time(&self) -> bool {
        self.unit == "us"
    }
}
